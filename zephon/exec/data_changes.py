"""What became of the shards of a dataset since a checkpoint was taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zephon.exec.change import Change, cut, differences, part_of, without
from zephon.exec.data_change import DataChange, data_change
from zephon.exec.manifest import Manifest

_ONE_BY_ONE = 3
"""So many shards that fared alike get a line each; more of them share one."""

_RENAMED = "names are part of the order; rename it back"
_GONE = "its rows are part of the order; put it back"
_CHANGED = "rows are known by their places; put the old file back, and new rows into a new shard"
_UNKNOWN = "of so many shards only a digest is kept, so which differ is not known; put them back"

_REWRITTEN = "put the file back that it was, and new rows into a new shard"
_SOME_REWRITTEN = "of so many shards only a digest is kept; put back the files that were there"

_NULLS = (
    "rows with such texts are part of the order; say it as then. From 'error' to another word a "
    "run goes on where it met no bad row before"
)
_ERROR = "error"

_THERE = "there"  # of a size that is not recorded
_QUOTES = ("'", '"')

Recorded = list[Any] | Mapping[str, Any]


def data_changes(
    name: str, saved: Recorded, current: Recorded, found: DataChange | None = None
) -> Iterator[Change]:
    """List what differs between two recorded manifests of a dataset.

    Args:
        name: of the dataset.
        saved: what the checkpoint's recipe says of it.
        current: what the present one says.
        found: how shards differ; None: by name, rows and bytes alone.
    """
    owner = f"data of {name!r}"
    for path, was, now in differences(_told(saved, "types"), _told(current, "types"), "schema"):
        yield Change(part_of(owner, path), was, now, None, "declare the types of then")
    before, after = (_told(each, "format_options") or {} for each in (saved, current))
    for path, was, now in differences(before, after, "format_options"):
        yield Change(part_of(owner, path), was, now, None, "pass the options of then")
    was, now = (_told(each, "hive") for each in (saved, current))
    if was != now:
        before, after = (None if each is None else ", ".join(each) for each in (was, now))
        yield Change(part_of(owner, "keys of folders"), before, after, None, "pass hive as then")
    was, now = (_null_text(each) for each in (saved, current))
    if was != now:
        yield Change(part_of(owner, "null_text"), was, now, None, _NULLS)
    if found is None:
        found = data_change(*(Manifest.read(name, each, {}) for each in (saved, current)))
    if found.untold:
        for path, was, now in differences(_summed(saved), _summed(current)):
            yield Change(part_of(owner, path), was, now, None, _UNKNOWN)
    if found.some_rewritten:
        was, now = "with the content of then", "with another, in as many bytes"
        yield Change(part_of(owner, "some shards"), was, now, None, _SOME_REWRITTEN)
    yield from _shard_changes(owner, found, *(_sizes(each) for each in (saved, current)))


def shards_of(manifest: Recorded) -> list[tuple[str, int, int]] | None:
    """Give name, rows and bytes of each recorded shard; None where only a digest is recorded."""
    shards = manifest["shards"] if isinstance(manifest, Mapping) else manifest
    return [(*shard,) for shard in shards] if isinstance(shards, list) else None


def rows_of(manifest: Recorded) -> int:
    """Count the rows of all recorded shards."""
    shards = shards_of(manifest)
    if shards is None and isinstance(manifest, Mapping):
        return int(manifest["rows"])
    return sum(rows for _, rows, _ in shards or ())


def _sizes(manifest: Recorded) -> dict[str, str]:
    return {name: _size(rows, size) for name, rows, size in shards_of(manifest) or ()}


def _size(rows: int, size: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'} of {size:,} bytes"


def _told(manifest: Recorded, what: str) -> Any:
    return manifest.get(what) if isinstance(manifest, Mapping) else None


def _null_text(manifest: Recorded) -> str:
    return manifest.get("null_text", _ERROR) if isinstance(manifest, Mapping) else _ERROR


def with_null_texts(
    saved: Mapping[str, Recorded], current: Mapping[str, Recorded]
) -> dict[str, Recorded]:
    """Let nulls mean in a recorded manifest what they mean now, where they were errors till then.

    Args:
        saved: what the checkpoint's recipe says of each dataset.
        current: what the present one says.
    """
    found = dict(saved)
    for name, was in saved.items():
        now = _null_text(current[name]) if name in current else _ERROR
        if _null_text(was) == _ERROR != now:
            told = dict(was) if isinstance(was, Mapping) else {"shards": was}
            found[name] = {**told, "null_text": now}
    return found


def _summed(manifest: Recorded) -> dict[str, Any]:
    shards = shards_of(manifest)
    if shards is None and isinstance(manifest, Mapping):
        return without(manifest, ["types", "format_options", "null_text", "hive"])
    return {"shards": len(shards or ())}


def _shard_changes(
    owner: str, found: DataChange, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Change]:
    """Write what became of shards; of those whose sizes are not recorded, that they are there."""
    kinds: tuple[tuple[str, str | None, str, list[tuple[str, str | None, str | None]]], ...] = (
        ("renamed", None, _RENAMED, [(n, repr(n), repr(to)) for n, to in found.renamed]),
        ("gone", None, _GONE, [(n, before.get(n, _THERE), None) for n in found.gone]),
        ("changed", None, _CHANGED, [(n, before[n], after[n]) for n in found.resized]),
        (
            "rewritten",
            None,
            _REWRITTEN,
            [(n, before[n], "as large, with other content") for n in found.rewritten],
        ),
        ("added", "data", "", [(n, None, after.get(n, _THERE)) for n in found.added]),
    )
    for what, word, why, shards in kinds:
        if len(shards) <= _ONE_BY_ONE:
            for name, was, now in shards:
                yield Change(part_of(owner, f"shard {name!r}"), was, now, word, why)
        else:
            part = part_of(owner, f"{len(shards):,} shards {what}")
            first = [(n, was, now) for n, was, now in shards[:_ONE_BY_ONE]]
            yield Change(part, _first(first, 0), _first(first, 1), word, why)


def _first(shards: Sequence[tuple[str, str | None, str | None]], place: int) -> str | None:
    """Tell of the first shards what they were, or what they are."""
    told = []
    for name, *texts in shards:
        text = texts[place]
        if text == _THERE:
            told.append(repr(name))
        elif text is not None:  # a name, where they are renamed
            told.append(text if text.startswith(_QUOTES) else f"{name!r} {text}")
    return cut(f"{', '.join(told)}, ...") if told else None
