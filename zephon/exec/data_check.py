"""Compares the data that a checkpoint was taken of with what lies there now, and records it anew.

Each of up to 4,096 shards is looked at before the first batch, whatever an index tells of it: some
0.1 s for 1,000 files that are in the page cache. Of more shards what is known of them is compared;
where an index tells their marks, each file is held against its mark when it is opened.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from zephon.errors import CheckpointError
from zephon.exec.data_change import DataChange, data_change
from zephon.exec.manifest import URL, Manifest, to_dict
from zephon.io.contents import Contents, contents_seen, contents_told, hashed_whole
from zephon.io.dataset import Dataset
from zephon.io.recorded import RECORDED_SHARDS

FULL = "full"
"""The ``verify_data`` that reads every shard whole."""

_NAMED = 3


def data_now(
    restored: Mapping[str, Any], datasets: Mapping[str, Dataset], verify: str
) -> dict[str, DataChange]:
    """Say how the data of each dataset differs from what a checkpoint was taken of.

    Args:
        restored: the checkpoint.
        datasets: by name; those of which the checkpoint says nothing are left out.
        verify: the option ``verify_data``.

    Raises:
        CheckpointError: what the checkpoint says of the data is damaged.
        ShardError: a file cannot be read, or is not what an index tells of it.
    """
    recorded, held = restored["recipe"]["data"], restored.get("manifest")
    if not isinstance(held, Mapping):
        raise CheckpointError(
            "restore: the checkpoint's manifest is damaged: it must be an object, got "
            f"{type(held).__name__}; restore an earlier one"
        )
    found = {}
    for name, dataset in datasets.items():
        if name in recorded:
            then = Manifest.read(name, recorded[name], held.get(name, {}))
            found[name] = _compared(then, dataset, whole=verify == FULL)
            _warn_of_touched(name, found[name])
            if verify == FULL and not _knows_all(held.get(name, {})):
                _warn_of_samples(name)
    return found


def data_notes(datasets: Collection[Dataset]) -> tuple[str, ...]:
    """Say of which data a checkpoint knows too little to find a file rewritten in the same size."""
    found = (
        f"{each.name}: of more than {RECORDED_SHARDS:,} shards a checkpoint knows names, rows, "
        f"bytes and times alone, unless an index tells content marks: `zephon index {each.path}`"
        for each in datasets
        if len(each.shards) > RECORDED_SHARDS and each.path and each.shards.marks is None
    )
    return tuple(dict.fromkeys(found))  # two components may read one dataset


def manifest_of(
    datasets: Mapping[str, Dataset],
    verify: str,
    restored: Mapping[str, Any] | None = None,
    unchanged: Collection[str] = (),
) -> Callable[[], dict[str, Any]]:
    """Give what tells states of what the data holds.

    With ``verify_data="full"`` every shard is read now, else files are looked at when the first
    state is taken, where that must be.

    Args:
        datasets: of the run, by name.
        verify: the option ``verify_data``.
        restored: the checkpoint that the run goes on from.
        unchanged: the datasets of which what it says holds on.
    """
    kept = {name: dict(restored["manifest"][name]) for name in unchanged} if restored else {}
    # Of far places the manifest says where they are: they may be elsewhere now.
    kept = {n: held for n, held in kept.items() if URL not in held and not _is_far(datasets[n])}
    if verify != FULL:
        return partial(_recorded, datasets, kept)
    kept = {name: held for name, held in kept.items() if _knows_all(held)}
    whole = {
        name: to_dict(replace(contents_told(dataset), full_hashes=hashed_whole(dataset)))
        for name, dataset in datasets.items()
        if name not in kept
    }
    return partial(_recorded, datasets, {**kept, **whole})


def _recorded(datasets: Mapping[str, Dataset], known: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: known[name] if name in known else to_dict(contents_told(dataset))
        for name, dataset in datasets.items()
    }


def _is_far(dataset: Dataset) -> bool:
    return dataset.shards.far is not None


def _knows_all(held: Mapping[str, Any]) -> bool:
    return "full" in held


def _compared(then: Manifest, dataset: Dataset, *, whole: bool) -> DataChange:
    shards = dataset.shards
    if then.sizes is None:
        contents = Contents(None, None, None)
        if len(shards) > RECORDED_SHARDS:
            contents = contents_told(dataset)
        if whole:
            contents = replace(contents, full_hashes=hashed_whole(dataset))
        return data_change(then, Manifest.of(shards, contents, listed=False))
    names = shards.names.to_pylist()
    places = [place for place, name in enumerate(names) if name in then.sizes]
    if len(shards) <= RECORDED_SHARDS:  # added ones too: one may be another that was renamed
        places = [*range(len(names))]
    contents = contents_seen(dataset, places)
    if whole and then.full:
        contents = replace(contents, full_hashes=hashed_whole(dataset, places))
    now = Manifest.of(shards, contents, listed=True, places=places)
    found = data_change(then, now)
    known = [name for name in found.touched if name in then.full]
    if known:
        at = {name: place for place, name in enumerate(names)}
        full = hashed_whole(dataset, [at[name] for name in known]).tolist()
        found = data_change(then, replace(now, full=dict(zip(known, full, strict=True))))
    return found


def _warn_of_touched(name: str, found: DataChange) -> None:
    touched: Sequence[str] = found.touched
    if not touched and not found.some_touched:
        return
    named = ", ".join(repr(shard) for shard in touched[:_NAMED])
    more = f" and {len(touched) - _NAMED:,} more" if len(touched) > _NAMED else ""
    which = f"shard {named} was" if len(touched) == 1 else f"shards {named}{more} were"
    if found.some_touched:
        which = "some shards were"
    warnings.warn(
        f"restore: data of {name!r}: {which} written again since the checkpoint; size and content "
        "mark are the same, and the rest is not known: it was sampled only (a run with "
        "options(verify_data='full') takes checkpoints that tell all of it)",
        RuntimeWarning,
        stacklevel=6,
    )


def _warn_of_samples(name: str) -> None:
    warnings.warn(
        f"restore: the checkpoint has content marks of the shards of {name!r}, no full hashes, so "
        "verify_data='full' could compare no more than these; states have full hashes from here on",
        RuntimeWarning,
        stacklevel=6,
    )
