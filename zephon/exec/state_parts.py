"""Several ranks' states as one: each rank's part holds the lanes that it runs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zephon.errors import CheckpointError
from zephon.exec.checkpoint import checked, content_digest
from zephon.exec.fingerprint import digest
from zephon.exec.lane_table import Tree, table_of, trees_of
from zephon.exec.manifest import without_times
from zephon.exec.saved_values import told, whole

OWN = "own"
"""What of a state is of the rank that gave it, where that waits to go on from parts of others."""

_OF_RANKS = frozenset(
    {"position", "lanes", "ended", "digest", "library", "polars", "tokenizer_backends", OWN}
)
"""What parts of one checkpoint may differ in; releases while a run is being upgraded."""


def from_parts(parts: Sequence[object]) -> dict[str, Any]:
    """Return the checkpoint dict of all lanes that are in some part.

    Args:
        parts: checkpoint dicts or bytes, one of each rank, in any order. Those of ranks whose lanes
            are all in others may be left out.

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


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Unite the lanes of checkpoint dicts that were taken at one moment.

    Between two steps what comes out is what one rank with all lanes would have written. Ranks that
    have all ended, though not together, make a run that has ended, each lane where it was left by
    the last. It shares values with the parts.

    Raises:
        CheckpointError: they are not of one checkpoint; names the parts.
    """
    if len(parts) == 1:
        return dict(parts[0])
    parts = [_own_part(part) for part in parts]
    first = parts[0]
    for number, part in enumerate(parts):
        _refuse_others(first, number, part)
    state = {name: value for name, value in first.items() if name not in ("ended", "digest")}
    state["position"] = _position(parts)
    state["lanes"] = _lanes(parts)
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


def _refuse_others(first: Mapping[str, Any], number: int, part: Mapping[str, Any]) -> None:
    for name in sorted({*first, *part} - _OF_RANKS):
        one, other = first.get(name), part.get(name)
        if name == "manifest":
            one, other = without_times(one), without_times(other)
        if one != other:
            raise CheckpointError(
                f"restore: parts 0 and {number} differ in {name!r}; they are not of one run: pass "
                "the parts of one checkpoint"
            )
    if first["tokenizer_backends"] != part["tokenizer_backends"]:
        warnings.warn(
            f"restore: part 0 was taken with tokenizer back ends {first['tokenizer_backends']}, "
            f"part {number} with {part['tokenizer_backends']}; they agree on the probe texts",
            RuntimeWarning,
            stacklevel=5,
        )


def _position(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    positions = [part["position"] for part in parts]
    if "turns" in positions[0]:
        return _turns(positions)
    if len({position["step"] for position in positions}) > 1:
        _refuse_other_steps(parts)
        return _ended_apart(positions)
    within = [(n, each) for n, each in enumerate(positions) if "delivered" in each]
    if not within:
        return dict(positions[0])
    degree = within[0][1]["dp_degree"]
    delivered: list[int | None] = [None] * degree
    for number, position in within:
        _refuse_other_degree(within[0], number, position["dp_degree"])
        for group, rows in enumerate(position["delivered"]):
            if rows is not None and delivered[group] not in (None, rows):
                raise CheckpointError(
                    f"restore: part {number} says that group {group} has handed out {rows} rows "
                    f"of step {position['step']}, another part says {delivered[group]}; they are "
                    "of different moments: pass the parts of one checkpoint"
                )
            delivered[group] = delivered[group] if rows is None else rows
    if None not in delivered and len(within) < len(parts):
        number = next(n for n, each in enumerate(positions) if "delivered" not in each)
        raise CheckpointError(
            f"restore: part {number} stands before step {positions[0]['step']}, of which each of "
            f"the {degree} ranks has handed out a part by the others; they are of different "
            "moments: pass the parts of one checkpoint"
        )
    if len(parts) >= degree:  # whoever stands between steps does not say who it is
        delivered = [0 if rows is None else rows for rows in delivered]
    return {"step": positions[0]["step"], "dp_degree": degree, "delivered": delivered}


def _refuse_other_steps(parts: Sequence[Mapping[str, Any]]) -> None:
    """Refuse parts of different steps, unless each of them has ended; says which had."""
    ended = _ended_at(parts)
    if not ended:
        steps = [part["position"]["step"] for part in parts]
        number = next(number for number, step in enumerate(steps) if step != steps[0])
        raise CheckpointError(
            f"restore: part {number} stands at step {steps[number]}, part 0 at step {steps[0]}; "
            "they are of different moments: pass the parts of one checkpoint"
        )
    going = {n: part["position"]["step"] for n, part in enumerate(parts) if "ended" not in part}
    if going:
        raise CheckpointError(
            f"restore: some of these parts have ended ({_standing(ended)}), others have not "
            f"({_standing(going)}); ranks end where their own lanes end if no coordinator joins "
            "them, so these have parted: pass the parts of all ranks once each has ended, or parts "
            "that all stand at one step, "
            f"{min(ended.values())} at most"
        )


def _ended_at(parts: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    return {n: part["position"]["step"] for n, part in enumerate(parts) if "ended" in part}


def _standing(parts: Mapping[int, int]) -> str:
    """Say at which steps some parts stand, given by their numbers."""
    steps = {step: [n for n in parts if parts[n] == step] for step in sorted({*parts.values()})}
    said = [f"{told('part', numbers)} at step {step}" for step, numbers in steps.items()]
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


def _refuse_other_degree(first: tuple[int, Mapping[str, Any]], number: int, degree: int) -> None:
    if degree != first[1]["dp_degree"]:
        raise CheckpointError(
            f"restore: part {number} was taken with dp_degree={degree}, part {first[0]} with "
            f"{first[1]['dp_degree']}; pass the parts of one checkpoint"
        )


def _turns(positions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    turns: dict[str, int] = {}
    for number, position in enumerate(positions):
        _refuse_other_degree((0, positions[0]), number, position["dp_degree"])
        if position["mapping"] != positions[0]["mapping"]:
            raise CheckpointError(
                f"restore: part {number} was taken with mapping_strategy={position['mapping']!r}, "
                f"part 0 with {positions[0]['mapping']!r}; pass the parts of one checkpoint"
            )
        turns |= position["turns"]
    return {**positions[0], "turns": dict(sorted(turns.items(), key=lambda each: int(each[0])))}


def _lanes(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[int, Tree] = {}
    said_by: dict[int, int] = {}
    apart = "turns" not in parts[0]["position"] and len(_ended_at(parts)) == len(parts)
    for number, part in enumerate(parts):
        for lane, tree in trees_of(part["lanes"]).items():
            # Of ranks that ended apart and share a lane, one has handed out more of it.
            if lane not in found or (apart and whole(tree, "rows") > whole(found[lane], "rows")):
                found[lane], said_by[lane] = tree, number
            elif apart and whole(tree, "rows") < whole(found[lane], "rows"):
                continue
            elif not _equal(tree, found[lane]):
                _refuse_lane(lane, (said_by[lane], found[lane]), (number, tree))
    return table_of(found)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other


def _refuse_lane(lane: int, one: tuple[int, Tree], other: tuple[int, Tree]) -> None:
    rows = [whole(each[1], "rows") for each in (one, other)]
    how = "in different states" if rows[0] == rows[1] else "at different rows"
    raise CheckpointError(
        f"restore: parts {one[0]} and {other[0]} hold lane {lane} {how} ({rows[0]} and {rows[1]}); "
        "a part of another run or moment is among them, leave it out"
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
