"""Several ranks' states as one: each rank's part holds the lanes that it runs."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zephon.errors import CheckpointError
from zephon.exec.checkpoint import checked, content_digest
from zephon.exec.fingerprint import digest
from zephon.exec.lane_table import Tree, table_of, trees_of
from zephon.exec.lanes import Topology
from zephon.exec.manifest import without_times
from zephon.exec.saved_values import told, whole

OWN = "own"
"""What of a state is of the rank that gave it, where that waits to go on from parts of others."""

_OF_RANKS = frozenset(
    {"position", "lanes", "ended", "digest", "library", "polars", "tokenizer_backends", OWN}
)
"""What parts of one checkpoint may differ in; releases while a run is being upgraded."""

_MOST_NAMED = 4


def from_parts(parts: Sequence[object]) -> dict[str, Any]:
    """Return the checkpoint dict of all lanes that are in some part.

    Args:
        parts: checkpoint dicts or bytes, one of each rank, in any order. Those of ranks whose lanes
            are all in others may be left out; the same part twice does no harm.

    Raises:
        TypeError: one is neither a dict nor bytes.
        CheckpointError: there is none, one is damaged, or they are not of one checkpoint; names
            the parts.
    """
    if not parts:
        raise CheckpointError("restore: no parts were given; pass those of all ranks")
    found: list[dict[str, Any]] = []
    like: dict[str, tuple[Any, str]] = {}
    for number, part in enumerate(parts):
        try:
            found.append(checked(part, like))
        except (CheckpointError, TypeError) as exc:
            said = str(exc).removeprefix("restore: ")
            raise type(exc)(f"restore: part {number}: {said}") from exc
        if not like:  # a recipe of many shards is long, and in each part
            whole_run = {name: found[0][name] for name in found[0].keys() - _OF_RANKS}
            like = {name: (value, digest(value)) for name, value in whole_run.items()}
    return copy.deepcopy(merged(found))


def merged(
    parts: Sequence[Mapping[str, Any]], called: str | Sequence[str] = "part"
) -> dict[str, Any]:
    """Unite the lanes of checkpoint dicts that were taken at one moment.

    Between two steps what comes out is what one rank with all lanes would have written. Ranks that
    have all ended, though not together, make a run that has ended, each lane where it was left by
    the last. It shares values with the parts.

    Args:
        parts: of the ranks.
        called: what messages call a part before its number, or the name of each.

    Raises:
        CheckpointError: they are not of one checkpoint; names the parts.
    """
    if len(parts) == 1:
        return dict(parts[0])
    names = _Names(called)
    parts = [_own_part(part) for part in parts]
    first = parts[0]
    for number, part in enumerate(parts):
        _refuse_others(first, number, part, names)
    trees = [trees_of(part["lanes"]) for part in parts]
    state = {name: value for name, value in first.items() if name not in ("ended", "digest")}
    state["position"] = _position(parts, trees, names)
    state["lanes"] = _lanes(parts, trees, names)
    if _ended(parts):
        state["ended"] = True
    return {**state, "digest": content_digest(state)}


def with_own(
    state: Mapping[str, Any], position: Mapping[str, Any], lanes: Sequence[int]
) -> dict[str, Any]:
    """Say of a state what is of the rank that waits to go on from it: others may have gone on.

    Args:
        state: a sound checkpoint dict, which is left as it is.
        position: where the rank stands.
        lanes: those that it runs.
    """
    plain = {name: value for name, value in state.items() if name != OWN}
    there = sorted(trees_of(state["lanes"]))
    own = {"position": dict(position), "lanes": [lane for lane in lanes if lane in there]}
    if own != {"position": state["position"], "lanes": there}:
        plain[OWN] = own
    if plain.get(OWN) != state.get(OWN):
        plain["digest"] = content_digest(plain)
    return plain


def _own_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out of a part what other ranks say of themselves."""
    own = part.get(OWN)
    if own is None:
        return part
    trees = trees_of(part["lanes"])
    lanes = table_of({lane: trees[lane] for lane in own["lanes"]})
    kept = {name: value for name, value in part.items() if name != OWN}
    return {**kept, "position": own["position"], "lanes": lanes}


@dataclass(frozen=True, slots=True)
class _Names:
    """How messages call parts, by their numbers.

    called: as ``merged`` takes it.
    """

    called: str | Sequence[str]

    def of(self, *numbers: int) -> str:
        """Name some parts in a list."""
        if isinstance(self.called, str):
            return told(self.called, numbers)
        shown = ", ".join(self.called[number] for number in numbers[:_MOST_NAMED])
        more = len(numbers) - _MOST_NAMED
        return f"{shown} and {more} more" if more > 0 else shown

    def both(self, one: int, other: int) -> str:
        """Name two parts."""
        if isinstance(self.called, str):
            return f"{self.called}s {one} and {other}"
        return f"{self.called[one]} and {self.called[other]}"


def _refuse_others(
    first: Mapping[str, Any], number: int, part: Mapping[str, Any], names: _Names
) -> None:
    for name in sorted({*first, *part} - _OF_RANKS):
        one, other = first.get(name), part.get(name)
        if name == "manifest":
            one, other = without_times(one), without_times(other)
        if one != other:
            raise CheckpointError(
                f"restore: {names.both(0, number)} differ in {name!r}; they are not of one run: "
                "pass the parts of one checkpoint"
            )
    if first["tokenizer_backends"] != part["tokenizer_backends"]:
        warnings.warn(
            f"restore: {names.of(0)} was taken with tokenizer back ends "
            f"{first['tokenizer_backends']}, {names.of(number)} with "
            f"{part['tokenizer_backends']}; they agree on the probe texts",
            RuntimeWarning,
            stacklevel=5,
        )


def _position(
    parts: Sequence[Mapping[str, Any]], trees: Sequence[Mapping[int, Tree]], names: _Names
) -> dict[str, Any]:
    positions = [part["position"] for part in parts]
    if "turns" in positions[0]:
        return _turns(positions, names)
    if len({position["step"] for position in positions}) > 1:
        _refuse_other_steps(parts, names)
        return _ended_apart(positions)
    within = [(n, each) for n, each in enumerate(positions) if "delivered" in each]
    if not within:
        return dict(positions[0])
    degree = within[0][1]["dp_degree"]
    delivered: list[int | None] = [None] * degree
    for number, position in within:
        _refuse_other_degree(within[0], number, degree=position["dp_degree"], names=names)
        for group, rows in enumerate(position["delivered"]):
            if rows is not None and delivered[group] not in (None, rows):
                raise CheckpointError(
                    f"restore: {names.of(number)} says that group {group} has handed out {rows} "
                    f"rows of step {position['step']}, another part says {delivered[group]}; they "
                    "are of different moments: pass the parts of one checkpoint"
                )
            delivered[group] = delivered[group] if rows is None else rows
    between = {
        n: tuple(sorted(trees[n])) for n, each in enumerate(positions) if "delivered" not in each
    }
    step = positions[0]["step"]
    silent = _silent_groups(delivered, parts[0])
    for number, lanes in between.items():
        if not any(silent.values()) or silent.get(lanes) == []:
            raise CheckpointError(
                f"restore: {names.of(number)} stands before step {step}, of which each rank that "
                "it can be of has handed out rows by the others; they are of different moments: "
                "pass the parts of one checkpoint"
            )
    there = Counter(between.values())
    for lanes, groups in silent.items():
        # Whoever stands between steps does not say who it is, but which lanes it runs.
        if len(groups) <= there[lanes]:
            delivered = [0 if group in groups else rows for group, rows in enumerate(delivered)]
    return {"step": step, "dp_degree": degree, "delivered": delivered}


def _silent_groups(
    delivered: Sequence[int | None], part: Mapping[str, Any]
) -> dict[tuple[int, ...], list[int]]:
    """List, by the lanes that they run, the groups that no part says to be inside the step."""
    found: dict[tuple[int, ...], list[int]] = {}
    for group, rows in enumerate(delivered):
        topology = Topology(
            lanes=part["lane_count"],
            dp_degree=len(delivered),
            dp_group_id=group,
            global_batch_size=part["recipe"]["global_batch_size"],
        )
        groups = found.setdefault(topology.own_lanes(), [])
        if rows is None:
            groups.append(group)
    return found


def _refuse_other_steps(parts: Sequence[Mapping[str, Any]], names: _Names) -> None:
    """Refuse parts of different steps, unless each of them has ended; says which had."""
    steps = {n: part["position"]["step"] for n, part in enumerate(parts)}
    ended = {n: step for n, step in steps.items() if "ended" in parts[n]}
    going = {n: step for n, step in steps.items() if n not in ended}
    if not ended:
        raise CheckpointError(
            f"restore: these parts are of different moments ({_standing(steps, names)}): pass the "
            "parts of one checkpoint"
        )
    if going:
        raise CheckpointError(
            f"restore: some of these parts have ended ({_standing(ended, names)}), others have not "
            f"({_standing(going, names)}); ranks end where their own lanes end if no coordinator "
            "joins them, so these have parted: pass the parts of all ranks once each has ended, or "
            f"parts that all stand at one step, {min(ended.values())} at most"
        )


def _standing(steps: Mapping[int, int], names: _Names) -> str:
    """Say at which steps some parts stand, given by their numbers."""
    by_step = {step: [n for n in steps if steps[n] == step] for step in sorted({*steps.values()})}
    said = [f"{names.of(*numbers)} at step {step}" for step, numbers in by_step.items()]
    return ", ".join([*said[:3], *([f"{len(said) - 3} more steps"] if len(said) > 3 else [])])


def _ended_apart(positions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Unite the positions of ranks that have all ended: at the least end, the run had its steps."""
    steps = sorted({position["step"] for position in positions})
    warnings.warn(
        f"restore: the ranks of these parts ended apart, at steps {steps[0]} to {steps[-1]}, since "
        f"no coordinator joined them: the run has {steps[0]} whole steps, and nothing follows; "
        "accounting() counts each lane as far as it was handed out",
        RuntimeWarning,
        stacklevel=5,
    )
    return {"step": steps[0]}


def _refuse_other_degree(
    first: tuple[int, Mapping[str, Any]], number: int, *, degree: int, names: _Names
) -> None:
    if degree != first[1]["dp_degree"]:
        raise CheckpointError(
            f"restore: {names.of(number)} was taken with dp_degree={degree}, {names.of(first[0])} "
            f"with {first[1]['dp_degree']}; pass the parts of one checkpoint"
        )


def _turns(positions: Sequence[Mapping[str, Any]], names: _Names) -> dict[str, Any]:
    turns: dict[str, int] = {}
    for number, position in enumerate(positions):
        _refuse_other_degree((0, positions[0]), number, degree=position["dp_degree"], names=names)
        if position["mapping"] != positions[0]["mapping"]:
            raise CheckpointError(
                f"restore: {names.of(number)} was taken with "
                f"mapping_strategy={position['mapping']!r}, {names.of(0)} with "
                f"{positions[0]['mapping']!r}; pass the parts of one checkpoint"
            )
        turns |= position["turns"]
    return {**positions[0], "turns": dict(sorted(turns.items(), key=lambda each: int(each[0])))}


def _lanes(
    parts: Sequence[Mapping[str, Any]], trees: Sequence[Mapping[int, Tree]], names: _Names
) -> dict[str, Any]:
    found: dict[int, Tree] = {}
    said_by: dict[int, int] = {}
    ended = all("ended" in part for part in parts)
    apart = "turns" not in parts[0]["position"] and ended
    for number, lanes in enumerate(trees):
        for lane, tree in lanes.items():
            # Of ranks that ended apart and share a lane, one has handed out more of it.
            if lane not in found or (apart and whole(tree, "rows") > whole(found[lane], "rows")):
                found[lane], said_by[lane] = tree, number
            elif apart and whole(tree, "rows") < whole(found[lane], "rows"):
                continue
            elif not _equal(tree, found[lane]):
                both = names.both(said_by[lane], number)
                _refuse_lane(lane, both, found[lane], tree)
    return table_of(found)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other


def _refuse_lane(lane: int, both: str, one: Tree, other: Tree) -> None:
    rows = [whole(each, "rows") for each in (one, other)]
    how = "in different states" if rows[0] == rows[1] else "at different rows"
    raise CheckpointError(
        f"restore: {both} hold lane {lane} {how} ({rows[0]} and {rows[1]}); a part of another run "
        "or moment is among them, leave it out"
    )


def _ended(parts: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether nothing follows: with a global batch one rank knows, else each of its lanes."""
    ended = ["ended" in part for part in parts]
    return all(ended) if "turns" in parts[0]["position"] else any(ended)


def refuse_missing(missing: Sequence[int], there: Sequence[int]) -> None:
    """Refuse a checkpoint that lacks lanes that a rank runs.

    Raises:
        CheckpointError: there are such.
    """
    if missing:
        raise CheckpointError(
            f"restore: the checkpoint lacks {told('lane', missing)}, which this rank runs; it "
            f"holds {told('lane', there)}: pass the parts of all ranks, restore([part, part, ...])"
        )
