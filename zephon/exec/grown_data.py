"""Datasets to which shards were added: which they are, when they join, and what refers to others.

References count shards by their places in the order of names. A state of before the edit, of all
its floors, is renumbered once, where the edit begins.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError, NotYetError, told
from zephon.exec.block import Known
from zephon.exec.data_changes import Recorded, shards_of
from zephon.exec.edits import Edit, Growth
from zephon.exec.former_mixtures import FormerMixtures, counts_of
from zephon.exec.history import Below, LaneState
from zephon.exec.kept_rows import Interval, KeptRows
from zephon.io.dataset import Dataset
from zephon.work.component import Rules
from zephon.work.refs import Refs
from zephon.work.static_mixture import StaticMixtureWorkSource


def known_shards(recorded: Recorded, dataset: Dataset) -> NDArray[np.bool_]:
    """Say which shards a recorded manifest tells of, shape [shards]; of very many, the first."""
    shards, names = shards_of(recorded), dataset.shards.names
    if shards is None:
        return np.arange(len(names)) < int(dict(recorded)["shards"])
    recorded_names = {name for name, *_ in shards}
    return np.fromiter((name in recorded_names for name in names.to_pylist()), bool, len(names))


def grown_datasets(recorded: Mapping[str, Recorded], datasets: Mapping[str, Dataset]) -> set[str]:
    """Name the datasets that have shards which their recorded manifests do not tell of.

    Raises:
        CheckpointError: what was recorded is damaged.
    """
    grown = set[str]()
    for name in datasets.keys() & recorded.keys():
        try:
            known = known_shards(recorded[name], datasets[name])
        except (TypeError, ValueError, KeyError) as exc:
            raise CheckpointError(
                f"restore: what the checkpoint says of the shards of {name!r} is damaged: "
                f"{told(exc)}; restore an earlier one"
            ) from exc
        if not known.all():
            grown.add(name)
    return grown


def shards_at_first(
    recorded: Recorded, dataset: Dataset, growths: Sequence[Growth]
) -> NDArray[np.int64] | None:
    """List the shards that a dataset had before any were added in a run, by where they are now.

    Args:
        recorded: its latest manifest.
        dataset: as it is now.
        growths: of it, in the order of time.

    Returns:
        None where some are gone: then it is another dataset.
    """
    there, shards = np.flatnonzero(known_shards(recorded, dataset)), shards_of(recorded)
    if len(there) != (int(dict(recorded)["shards"]) if shards is None else len(shards)):
        return None
    for growth in reversed(growths):
        there = growth.before(there)
    return there


def growth_of(recorded: Recorded, dataset: Dataset) -> Growth | None:
    """Say which shards were added to a dataset since; None if none were. When they join is open."""
    known = known_shards(recorded, dataset)
    if known.all():
        return None
    return Growth(0, int(dataset.counts()[known].sum()), np.flatnonzero(~known))


def joining(source: StaticMixtureWorkSource, edits: Sequence[Edit], lanes: int) -> Edit:
    """Return the last of some edits with the passes in which shards that it adds join.

    That is the first that no lane has begun: so each lane makes all passes before with the rows of
    then. Warns where the run is to end before.

    Args:
        source: from there on.
        edits: of the run, oldest first.
        lanes: how many there are.
    """
    edit = edits[-1]
    if not edit.grown:
        return edit
    numbers = {name: number for number, name in enumerate(edit.drawn)}
    former = FormerMixtures(edits, lanes, numbers, counts_of(source), len(numbers))
    begun = former.lanes(len(edits) - 1).passes_begun
    grown = {
        name: replace(growth, stop=begun(name, edit.drawn[name].tolist()))
        for name, growth in edit.grown.items()
    }
    for component, rules in source.rules():
        if component.name in grown:
            _warn_of_late(component.name, rules, grown[component.name].stop)
    return replace(edit, grown=grown)


def _warn_of_late(name: str, rules: Rules, stop: int) -> None:
    """Warn where a dataset, or the run, may end before the rows come that were added."""
    when = f"their rows join after {_passes(stop)}"
    if rules.passes is not None and rules.passes <= stop:
        why = f"and the dataset ends after {_passes(rules.passes)}: they never come"
    elif rules.must is not None and rules.must <= stop:
        why = (
            f"and the run ends once each dataset has made {_passes(rules.must)}: they come only "
            "while it waits for another dataset"
        )
    else:
        return
    warnings.warn(
        f"restore: shards were added to {name!r}, {when}, {why}", RuntimeWarning, stacklevel=7
    )


def _passes(count: int) -> str:
    return f"{count:,} pass{'' if count == 1 else 'es'}"


class ShardPlaces:
    """Lets the states of lanes refer to shards by the places that they have now.

    Args:
        grown: datasets to which shards were added, by name.
        source: that has them.
        numbers: that states have of components.
    """

    def __init__(
        self,
        grown: Mapping[str, Growth],
        source: StaticMixtureWorkSource,
        numbers: Mapping[str, int],
    ) -> None:
        self._places: dict[int, NDArray[np.int64]] = {}
        self._names: dict[int, str] = {}
        self._by_place: list[str] = []
        for each in source.components:
            if each.name not in grown:
                continue
            added = grown[each.name].added
            places = grown[each.name].before(np.arange(len(each.dataset.counts())))
            if int(added[0]) < len(places):  # else all were added behind the others
                self._places[numbers[each.name]] = places
                self._names[numbers[each.name]] = each.name
                if each.dataset.shard_ids is None:
                    self._by_place.append(each.name)

    def state(self, lane: int, state: LaneState) -> LaneState:
        """Renumber the shards in the state of a lane.

        Raises:
            CheckpointError: it refers to shards that were not there.
            NotYetError: an operator of the user wrote down what it remembers.
        """
        if not self._places:
            return state
        try:
            return self._state(state)
        except IndexError as exc:
            raise CheckpointError(
                f"restore: lane {lane} of the checkpoint is damaged: it holds rows of shards that "
                f"{', '.join(map(repr, self._names.values()))} did not have; restore an earlier one"
            ) from exc

    def _state(self, state: LaneState) -> LaneState:
        tick, log = state.tick, state.log
        return replace(
            state,
            tick=replace(tick, known=self._known(tick.known)),
            log=log if log.refs is None else replace(log, refs=self._refs(log.refs)),
            below=None if state.below is None else self._below(state.below),
        )

    def _below(self, below: Below) -> Below:
        intervals = []
        for each in below.intervals:
            if each.snapshot is not None and self._by_place:
                raise NotYetError(
                    f"restore: shards were added to {self._by_place[0]!r} between others, and an "
                    "operator that remembers rows wrote these down by the places of their shards; "
                    "give the new shards names behind all others"
                )
            groups = [KeptRows(rows.units, self._known(rows.known)) for rows in each.groups()]
            intervals.append(Interval(each.first, each.snapshot, groups))
        return replace(below, lane=self._state(below.lane), intervals=tuple(intervals))

    def _known(self, known: Known) -> Known:
        return replace(known, refs=self._refs(known.refs))

    def _refs(self, refs: Refs) -> Refs:
        shard = refs.shard.copy()
        for number, places in self._places.items():
            mine = refs.component == number
            shard[mine] = places[shard[mine]]
        return replace(refs, shard=shard)
