"""What a checkpoint records of a dataset's shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zephon.io.shards import Shards

RECORDED_SHARDS = 4096
"""Of up to so many shards a checkpoint tells one by one."""


def recorded_manifest(
    shards: Shards,
    types: Mapping[str, str],
    options: Mapping[str, Any],
    null_text: str = "error",
    keys: Sequence[str] = (),
) -> list[Any] | dict[str, Any]:
    """Give what a checkpoint says of a dataset, as JSON values.

    Name, rows and bytes of each shard; above 4,096 shards, how many they are, their rows and bytes,
    and the digest of all names, rows and bytes. Beside it, types that were declared, options of the
    format that were given, what a null text means where it is no error, and which keys of
    folders are columns.

    Args:
        shards: of the dataset.
        types: those declared, in words, by field.
        options: those of the format that are not its defaults.
        null_text: of the dataset.
        keys: of folders.
    """
    declared: dict[str, Any] = {"types": dict(types)} if types else {}
    if options:
        declared["format_options"] = dict(options)
    if null_text != "error":
        declared["null_text"] = null_text
    if keys:
        declared["hive"] = sorted(keys)
    if len(shards) <= RECORDED_SHARDS:
        told = [list(shard) for shard in shards.manifest()]
        return {"shards": told, **declared} if declared else told
    return {
        "shards": len(shards),
        "rows": int(shards.rows.sum()),
        "bytes": int(shards.bytes.sum()),
        "sha256": shards.digest(),
        **declared,
    }
