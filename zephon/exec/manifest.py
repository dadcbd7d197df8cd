"""What a state says of a dataset's shards, written and read back.

The recipe tells names, rows and bytes; ``state["manifest"]`` tells what the shards hold. Both tell
of each of up to 4,096 shards, and of more by digests alone.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.saved_values import pack, unpack
from zephon.io.contents import Contents, Hashes
from zephon.io.recorded import RECORDED_SHARDS
from zephon.io.shards import Shards

_HASH_BYTES = 6
COLUMNS = ("marks", "written", "full", "versions")
URL = "url"
_OF_COPIES = ("written", "versions", URL)


def _unknown(*_: object) -> None:
    return None


def _no_names(_: int) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Manifest:
    """The shards of a dataset at some time.

    count: how many. sizes: rows and bytes of each by name, in order; None where only digests are
    known. marks, written, full, versions: what is known of each, by name, as ``Contents`` has it.
    digest: of names, rows and bytes of the first so many shards; None where that is not known.
    names: of the shards from a position on, where they are known.
    hashes: of a column of the first so many shards; None where that is not known.
    """

    count: int
    sizes: Mapping[str, tuple[int, int]] | None = None
    marks: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    full: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    digest: Callable[[int], str | None] = _unknown
    names: Callable[[int], Sequence[str]] = _no_names
    hashes: Callable[[str, int], str | None] = _unknown

    @classmethod
    def read(cls, name: str, recorded: Any, held: Mapping[str, Any]) -> Manifest:
        """Read what a state says of a dataset.

        Args:
            name: of the dataset, for messages.
            recorded: what the recipe says of it.
            held: what the manifest says of it; may be empty.

        Raises:
            CheckpointError: it is damaged.
        """
        shards = recorded["shards"] if isinstance(recorded, Mapping) else recorded
        try:
            if not isinstance(held, Mapping):
                raise TypeError(f"its manifest must be an object, got {type(held).__name__}")
            if isinstance(shards, list):
                sizes = {shard: (rows, size) for shard, rows, size in shards}
                if unknown := held.keys() - {*COLUMNS, URL}:
                    raise ValueError(f"it tells of {min(unknown)!r:.40}")
                marks, written, full, versions = (_numbers(key, held, sizes) for key in COLUMNS)
                return cls(
                    count=len(sizes),
                    sizes=sizes,
                    marks=marks,
                    written=written,
                    full=full,
                    versions=versions,
                )
            known = {(key, shards): str(value) for key, value in held.items()}
            return cls(
                count=int(shards),
                digest=lambda count, told=str(recorded["sha256"]): (
                    told if count == shards else None
                ),
                hashes=lambda *key: known.get(key),
            )
        except (KeyError, TypeError, ValueError, MemoryError) as exc:
            raise CheckpointError(
                f"restore: what the checkpoint says of the shards of {name!r} is damaged: {exc}; "
                "restore an earlier one"
            ) from exc

    @classmethod
    def of(
        cls,
        shards: Shards,
        contents: Contents,
        *,
        listed: bool,
        places: Sequence[int] | None = None,
    ) -> Manifest:
        """Describe the shards of a dataset.

        Args:
            shards: all of them.
            contents: what is known of them.
            listed: tell of each; else by digests alone.
            places: of the shards that ``contents`` is of; None: it is of all.
        """
        columns = _columns(contents)
        if not listed:
            return cls(
                count=len(shards),
                digest=shards.digest,
                names=lambda start: shards.names[start:].to_pylist(),
                hashes=lambda key, count: _digest(columns[key], count),
            )
        names = shards.names.to_pylist()
        sizes = zip(shards.rows.tolist(), shards.bytes.tolist(), strict=True)
        told = names if places is None else [names[place] for place in places]
        known = (
            {} if column is None else dict(zip(told, column.tolist(), strict=True))
            for column in columns.values()
        )
        marks, written, full, versions = known
        return cls(
            count=len(shards),
            sizes=dict(zip(names, sizes, strict=True)),
            marks=marks,
            written=written,
            full=full,
            versions=versions,
        )


def to_dict(contents: Contents) -> dict[str, str]:
    """Write what shards hold as JSON values: six bytes a mark, and times; digests of very many."""
    there = {name: column for name, column in _columns(contents).items() if column is not None}
    url = {URL: contents.url} if contents.url else {}
    if any(len(column) > RECORDED_SHARDS for column in there.values()):
        return url | {name: str(_digest(column, len(column))) for name, column in there.items()}
    return url | {
        name: pack(column) if name == "written" else _packed(column)
        for name, column in there.items()
    }


def without_times(manifest: Any) -> Any:
    """Leave out when files were written, and where: ranks may have copies of their own."""
    if not isinstance(manifest, Mapping):
        return manifest
    return {
        name: {key: value for key, value in held.items() if key not in _OF_COPIES}
        if isinstance(held, Mapping)
        else held
        for name, held in manifest.items()
    }


def _columns(contents: Contents) -> dict[str, NDArray[Any] | None]:
    found = (contents.marks, contents.written, contents.full_hashes, contents.versions)
    return dict(zip(COLUMNS, found, strict=True))


def _digest(column: NDArray[Any] | None, count: int) -> str | None:
    if column is None:
        return None
    return hashlib.sha256(np.ascontiguousarray(column[:count], "<i8").data).hexdigest()


def _packed(hashes: Hashes) -> str:
    """Write integers of 48 bits, six bytes each."""
    octets = np.ascontiguousarray(hashes, "<u8").view(np.uint8).reshape(-1, 8)
    return base64.b64encode(octets[:, :_HASH_BYTES].tobytes()).decode("ascii")


def _numbers(key: str, held: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, int]:
    """Read a column of ``to_dict``; empty if it is not there."""
    if key not in held:
        return {}
    if key == "written":
        column = unpack(held[key])
    else:
        octets = np.frombuffer(base64.b64decode(held[key], validate=True), np.uint8)
        wide = np.zeros((len(octets) // _HASH_BYTES, 8), np.uint8)
        wide[:, :_HASH_BYTES] = octets.reshape(-1, _HASH_BYTES)
        column = wide.view("<u8")[:, 0]
    return dict(zip(names, column.tolist(), strict=True))
