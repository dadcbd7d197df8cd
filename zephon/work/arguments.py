"""What a work source accepts: each check names the argument, what it wanted and what came."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from zephon.errors import PlanError, nearest
from zephon.work.counted import check_unit
from zephon.work.finite import whole_int
from zephon.work.mixture import MixtureSpec
from zephon.work.schedule import MixtureSchedule
from zephon.work.token_estimation import TokenEstimation
from zephon.work.words import one_of

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

CALL = "StaticMixtureWorkSource"
POLICIES = ("stop", "repeat", "redistribute")


class Unset(Enum):
    """The kind of :data:`UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "<unset>"


UNSET = Unset.UNSET
"""Stands for an argument that was left out, where None has a meaning of its own."""


def checked_datasets(datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    """Check that these are datasets with names of their own, at least one."""
    wrong = hasattr(datasets, "counts") or isinstance(datasets, str | bytes | Mapping)
    if wrong or not isinstance(datasets, Iterable):
        raise PlanError(
            f"{CALL}: datasets must be a list of datasets, got {type(datasets).__name__}; "
            "write datasets=[...]"
        )
    found = tuple(datasets)
    if not found:
        raise PlanError(f"{CALL}: datasets must hold at least one dataset, got none")
    first_place: dict[str, int] = {}
    for place, dataset in enumerate(found):
        if not (hasattr(dataset, "name") and hasattr(dataset, "counts")):
            raise PlanError(
                f"{CALL}: datasets[{place}] must be a Dataset, got {dataset!r}; "
                "make one with Dataset.from_path(name, path)"
            )
        if dataset.name in first_place:
            raise PlanError(
                f"{CALL}: Duplicate dataset name {dataset.name!r} at datasets"
                f"[{first_place[dataset.name]}] and datasets[{place}]; give one another name"
            )
        first_place[dataset.name] = place
    return found


def whole_number(argument: str, value: object, *, least: int | None = None) -> int:
    """Check a whole number; NumPy's integers are welcome, True and False are not."""
    number = whole_int(value)
    if number is None or (least is not None and number < least):
        bound = "" if least is None else f" of at least {least}"
        raise PlanError(f"{CALL}: {argument} must be a whole number{bound}, got {value!r}")
    return number


def seed_number(value: object) -> int:
    """Check a seed: a whole number that a checkpoint can hold in 64 bits."""
    seed = whole_number("seed", value)
    if not -(2**63) <= seed < 2**63:
        raise PlanError(
            f"{CALL}: seed must be a whole number from -2**63 to 2**63 - 1, got {seed}; "
            "seed % 2**63 is one"
        )
    return seed


def flag(argument: str, value: object) -> bool:
    """Check a switch: True or False."""
    if not isinstance(value, bool):
        raise PlanError(f"{CALL}: {argument} must be True or False, got {value!r}")
    return value


def block_size(value: object) -> int | str | None:
    """Check shuffle_block_size: None, a number of rows, "auto" or "global"."""
    if value is None:
        return None
    if isinstance(value, str):
        return one_of(CALL, "shuffle_block_size", value, ("auto", "global"))
    return whole_number("shuffle_block_size", value, least=1)


@dataclass(frozen=True, slots=True)
class Ending:
    """When one dataset ends: see ``Rules`` for the words."""

    policy: str
    passes: int | None
    must: int | None


def endings(
    *,
    stop_after_passes: object,
    exhausted_policy: object,
    max_repeats: object,
    names: Sequence[str],
) -> tuple[Ending, ...]:
    """Check the arguments that say when a source ends; give what they mean for each dataset."""
    policies = _each("exhausted_policy", exhausted_policy, names)
    for place, policy in policies.items():
        one_of(CALL, place, policy, POLICIES)
    repeats = _each("max_repeats", max_repeats, names)
    for place, most in repeats.items():
        whole_number(place, most, least=0)
    if stop_after_passes is not None and stop_after_passes is not UNSET:
        must = whole_number("stop_after_passes", stop_after_passes, least=1)
        others = {place: policy for place, policy in policies.items() if policy != "repeat"}
        for place, other in (others | repeats).items():
            raise PlanError(
                f"{CALL}: stop_after_passes={must} cannot be combined with {place}={other!r}; "
                "leave one of them out"
            )
        silent = [name for name in names if isinstance(exhausted_policy, Mapping)]
        silent = [name for name in silent if f"exhausted_policy[{name!r}]" not in policies]
        if silent:
            raise PlanError(
                f"{CALL}: stop_after_passes={must} cannot be combined with exhausted_policy="
                f"{exhausted_policy!r}, under which {silent[0]!r} has the policy 'stop'; name it "
                "there, or leave one of them out"
            )
        return tuple(Ending("repeat", None, must) for _ in names)
    if exhausted_policy is None and max_repeats is None and stop_after_passes is UNSET:
        return tuple(Ending("repeat", None, 1) for _ in names)
    found = tuple(_ending(name, exhausted_policy, max_repeats) for name in names)
    if max_repeats is not None and not any(each.policy == "repeat" for each in found):
        warnings.warn(
            f"{CALL}: max_repeats={max_repeats!r} has no effect without a repeat component: "
            "every dataset has the policy 'stop' or 'redistribute'; set exhausted_policy='repeat'",
            RuntimeWarning,
            stacklevel=3,
        )
    elif isinstance(max_repeats, Mapping) and isinstance(exhausted_policy, Mapping):
        for name, most in max_repeats.items():
            policy = exhausted_policy.get(name, "stop")
            if policy != "repeat":
                raise PlanError(
                    f"{CALL}: max_repeats[{name!r}]={most!r} cannot be combined with "
                    f"exhausted_policy[{name!r}]={policy!r}; only 'repeat' repeats"
                )
    return found


def _ending(name: str, exhausted_policy: object, max_repeats: object) -> Ending:
    policy = exhausted_policy
    if isinstance(policy, Mapping):
        policy = policy.get(name, "stop")
    policy = "stop" if policy is None else str(policy)
    most = max_repeats.get(name) if isinstance(max_repeats, Mapping) else max_repeats
    if policy != "repeat":
        return Ending(policy, 1, None)
    most = whole_int(most)
    return Ending(policy, None if most is None else most + 1, None)


def fresh_passes(value: object, names: Sequence[str]) -> tuple[bool, ...]:
    """Check reshuffle_on_repeat; give its value for each dataset, True where none is given."""
    for place, each in _each("reshuffle_on_repeat", value, names).items():
        flag(place, each)
    if isinstance(value, Mapping):
        return tuple(bool(value.get(name, True)) for name in names)
    return (flag("reshuffle_on_repeat", value),) * len(names)


def counted_unit(mixture_unit: object, token_estimation: TokenEstimation | None) -> str:
    """Check what weights count: rows, tokens as they are, or tokens by an estimate.

    Returns:
        "samples", "tokens", or "estimated tokens".
    """
    unit = one_of(CALL, "mixture_unit", mixture_unit, ("samples", "tokens"))
    if token_estimation is None:
        return unit
    if not isinstance(token_estimation, TokenEstimation):
        raise PlanError(
            f"{CALL}: token_estimation must be a TokenEstimation, got "
            f"{type(token_estimation).__name__}; write token_estimation=TokenEstimation()"
        )
    if unit == "tokens":
        raise PlanError(
            f"{CALL}: mixture_unit='tokens' cannot be combined with token_estimation="
            f"{token_estimation!r}: exact counts need no estimate; leave one of them out"
        )
    return "estimated tokens"


def checked_schedule(
    schedule: object, names: Sequence[str], mixture: MixtureSpec, counted: str
) -> MixtureSchedule | None:
    """Check that a schedule weighs these datasets, in a unit that the mixture counts in."""
    if schedule is None:
        return None
    if not isinstance(schedule, MixtureSchedule):
        raise PlanError(
            f"{CALL}: schedule must be a MixtureSchedule, got {type(schedule).__name__}; write "
            "schedule=MixtureSchedule({1000: {...}}, unit='samples')"
        )
    try:
        schedule.validate_for(names, mixture)
    except PlanError as exc:
        raise PlanError(f"{CALL}: {exc}") from None
    if schedule.unit != "steps":
        what = f"{CALL}: schedule counts unit={schedule.unit!r}"
        check_unit(what, schedule.unit, counted, in_tokens="unit='tokens'")
    return schedule


def _each(argument: str, value: object, names: Iterable[str]) -> dict[str, object]:
    """List an argument's values by the words that name them: one, or one a dataset."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return {argument: value}
    for name in value:
        if name not in names:
            raise PlanError(
                f"{CALL}: {argument} names {name!r}, but no dataset has that name; "
                f"{nearest(str(name), names)}"
            )
    return {f"{argument}[{name!r}]": each for name, each in value.items()}


def lane_of(call: str, lane: int, lanes: int) -> tuple[int, int]:
    """Check that there is such a lane among so many; return both as plain integers."""
    lanes = whole_number("lanes", lanes, least=1)
    lane = whole_number("lane", lane, least=0)
    if lane >= lanes:
        raise PlanError(f"{call}: lane must be below lanes={lanes}, got {lane}")
    return lane, lanes
