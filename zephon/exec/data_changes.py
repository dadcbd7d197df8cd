"""What became of the shards of a dataset since a checkpoint was taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zephon.exec.change import Change, cut, differences, part_of, without

_ONE_BY_ONE = 3
"""So many shards that fared alike get a line each; more of them share one."""

_RENAMED = "names are part of the order; rename it back"
_GONE = "its rows are part of the order; put it back"
_CHANGED = "rows are known by their places; put the old file back, and new rows into a new shard"
_UNKNOWN = "of so many shards only a digest is kept, so which differ is not known; put them back"

Manifest = list[Any] | Mapping[str, Any]


def data_changes(name: str, saved: Manifest, current: Manifest) -> Iterator[Change]:
    """List what differs between two recorded manifests of a dataset."""
    owner = f"data of {name!r}"
    for path, was, now in differences(_types(saved), _types(current), "schema"):
        yield Change(part_of(owner, path), was, now, None, "declare the types of then")
    before, after = shards_of(saved), shards_of(current)
    if before is None or after is None:
        for path, was, now in differences(_summed(saved), _summed(current)):
            yield Change(part_of(owner, path), was, now, None, _UNKNOWN)
        return
    sizes = [{name: _size(*of) for name, *of in shards} for shards in (before, after)]
    yield from _shard_changes(owner, *sizes)


def shards_of(manifest: Manifest) -> list[tuple[str, int, int]] | None:
    """Give name, rows and bytes of each recorded shard; None where only a digest is recorded."""
    shards = manifest["shards"] if isinstance(manifest, Mapping) else manifest
    return [(*shard,) for shard in shards] if isinstance(shards, list) else None


def _size(rows: int, size: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'} of {size:,} bytes"


def _types(manifest: Manifest) -> Any:
    return manifest.get("types") if isinstance(manifest, Mapping) else None


def _summed(manifest: Manifest) -> dict[str, Any]:
    shards = shards_of(manifest)
    if shards is None and isinstance(manifest, Mapping):
        return without(manifest, ["types"])
    return {"shards": len(shards or ())}


def _shard_changes(
    owner: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Change]:
    gone = [name for name in before if name not in after]
    added = [name for name in after if name not in before]
    renamed = _renamed([(name, before[name]) for name in gone], [(n, after[n]) for n in added])
    changed = [name for name, was in before.items() if after.get(name, was) != was]
    new_names = set(renamed.values())
    kinds: tuple[tuple[str, str | None, str, list[tuple[str, str | None, str | None]]], ...] = (
        ("renamed", None, _RENAMED, [(n, repr(n), repr(to)) for n, to in renamed.items()]),
        ("gone", None, _GONE, [(n, before[n], None) for n in gone if n not in renamed]),
        ("changed", None, _CHANGED, [(n, before[n], after[n]) for n in changed]),
        ("added", "data", "", [(n, None, after[n]) for n in added if n not in new_names]),
    )
    for what, word, why, shards in kinds:
        if len(shards) <= _ONE_BY_ONE:
            for name, was, now in shards:
                yield Change(part_of(owner, f"shard {name!r}"), was, now, word, why)
        else:
            part = part_of(owner, f"{len(shards):,} shards {what}")
            first = [(n, was, now) for n, was, now in shards[:_ONE_BY_ONE]]
            yield Change(part, _first(first, 1), _first(first, 2), word, why)


def _first(shards: Sequence[tuple[str, str | None, str | None]], place: int) -> str | None:
    """Tell of the first shards what they were, or what they are."""
    told = [f"{each[0]!r} {each[place]}" for each in shards if each[place] is not None]
    return cut(f"{', '.join(told)}, ...") if told else None


def _renamed(gone: Sequence[tuple[str, str]], added: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Pair shards that are gone with added ones that have as many rows and bytes, in order."""
    free: dict[str, list[str]] = {}
    for name, size in reversed(added):
        free.setdefault(size, []).append(name)
    return {name: free[size].pop() for name, size in gone if free.get(size)}
