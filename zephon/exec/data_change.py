"""How the shards of a dataset differ from those that a checkpoint was taken of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zephon.exec.manifest import COLUMNS, Manifest
from zephon.io.marks import WHOLE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class DataChange:
    """How the shards of a dataset differ from those of a checkpoint, by their names.

    added: were not there. gone: are no longer there. renamed: what was under the first name is
    under the second. resized: have another number of rows or bytes. rewritten: hold something else
    in as many rows and bytes. touched: were written again, and what was compared of them is the
    same; not a difference. untold: which shards differ is not known, since there are too many to
    record each. some_touched, some_rewritten: likewise, of shards that are still there.
    """

    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    resized: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    untold: bool = False
    some_rewritten: bool = False
    some_touched: bool = False

    def __bool__(self) -> bool:
        return self != DataChange(touched=self.touched, some_touched=self.some_touched)


def data_change(then: Manifest, now: Manifest) -> DataChange:
    """Say how shards differ; of those of the same size, what is known of both is compared."""
    if then.sizes is None or now.sizes is None:
        return _summed(then, now)
    was, is_now = then.sizes, now.sizes
    gone = {name: (*was[name], then.marks.get(name)) for name in was if name not in is_now}
    added = {name: (*is_now[name], now.marks.get(name)) for name in is_now if name not in was}
    renamed = _renamed(gone, added)
    new_names = set(renamed.values())
    both = [name for name in was if name in is_now]
    same = [name for name in both if was[name] == is_now[name]]
    other = {
        name: _differ(then.marks, now.marks, name)
        or _differ(then.full, now.full, name)
        # Another version may hold the same; where nothing else is known, nobody says so.
        or (_differ(then.versions, now.versions, name) and not _compared(then, now, name))
        for name in same
    }
    return DataChange(
        added=tuple(name for name in added if name not in new_names),
        gone=tuple(name for name in gone if name not in renamed),
        renamed=tuple(renamed.items()),
        resized=tuple(name for name in both if was[name] != is_now[name]),
        rewritten=tuple(name for name in same if other[name]),
        touched=tuple(
            name
            for name in same
            if not other[name]
            and _differ(then.written, now.written, name)
            and not _same(then.versions, now.versions, name)
            and was[name][1] > WHOLE_BYTES  # else its mark is of all of it
            and not (name in then.full and name in now.full)
        ),
    )


def between_states(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, DataChange]:
    """Say how the data of two states differs, of each dataset that both are of.

    Raises:
        CheckpointError: what one says of the data is damaged.
    """
    both = [name for name in one["recipe"]["data"] if name in other["recipe"]["data"]]
    return {name: data_change(*(_read(state, name) for state in (one, other))) for name in both}


def _read(state: Mapping[str, Any], name: str) -> Manifest:
    return Manifest.read(name, state["recipe"]["data"][name], state["manifest"].get(name, {}))


def _summed(then: Manifest, now: Manifest) -> DataChange:
    """Compare digests: of all shards, or of as many as there were if all that are new come last."""
    count = then.count
    if count > now.count or None in (then.digest(count), now.digest(count)):
        return DataChange(untold=True)
    if then.digest(count) != now.digest(count):
        return DataChange(untold=True)
    pairs = {key: (then.hashes(key, count), now.hashes(key, count)) for key in COLUMNS}
    other = {key: None not in pair and pair[0] != pair[1] for key, pair in pairs.items()}
    known = None not in pairs["full"]
    return DataChange(
        added=tuple(now.names(count)),
        some_rewritten=other["marks"]
        or other["full"]
        or (other["versions"] and None in pairs["marks"] and not known),
        some_touched=other["written"]
        and not known
        and (None in pairs["versions"] or other["versions"]),
    )


def _differ(before: Mapping[str, int], after: Mapping[str, int], name: str) -> bool:
    return name in before and name in after and before[name] != after[name]


def _same(before: Mapping[str, int], after: Mapping[str, int], name: str) -> bool:
    return name in before and name in after and before[name] == after[name]


def _compared(then: Manifest, now: Manifest, name: str) -> bool:
    """Say whether the content of a shard is known of both."""
    return (name in then.marks and name in now.marks) or (name in then.full and name in now.full)


def _renamed(
    gone: Mapping[str, tuple[Any, ...]], added: Mapping[str, tuple[Any, ...]]
) -> dict[str, str]:
    """Pair shards that are gone with added ones of the same size and content, in order."""
    free: dict[tuple[Any, ...], list[str]] = {}
    for name, key in reversed([*added.items()]):
        free.setdefault(key, []).append(name)
    return {name: free[key].pop() for name, key in gone.items() if free.get(key)}
