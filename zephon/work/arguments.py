"""What a work source accepts: each check names the argument, what it wanted and what came."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from zephon.errors import NotYetError, PlanError, nearest

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
    if hasattr(datasets, "counts") or isinstance(datasets, str | bytes | Mapping):
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
    bound = "" if least is None else f" of at least {least}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise PlanError(
            f"{CALL}: {argument} must be a whole number{bound}, got {value!r}"
        ) from None
    if least is not None and number < least:
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


def one_of(argument: str, value: object, choices: Sequence[str]) -> str:
    """Check a word from a short list."""
    if isinstance(value, str) and value in choices:
        return value
    hint = f"; {nearest(value, choices)}" if isinstance(value, str) else ""
    known = ", ".join(map(repr, choices))
    raise PlanError(f"{CALL}: {argument} must be one of {known}, got {value!r}{hint}")


def check_block_size(value: object) -> None:
    """Check shuffle_block_size, and refuse any but None."""
    if value is None:
        return
    if isinstance(value, str):
        one_of("shuffle_block_size", value, ("auto", "global"))
    else:
        whole_number("shuffle_block_size", value, least=1)
    raise _not_yet("shuffle_block_size", value, "leave it out, and use shuffle_within_shard=True")


def stop_passes(
    *,
    stop_after_passes: object,
    exhausted_policy: object,
    max_repeats: object,
    names: Sequence[str],
) -> int:
    """Check the arguments that say when a source ends, and refuse all but a number of passes."""
    policies = _each("exhausted_policy", exhausted_policy, names)
    for place, policy in policies.items():
        one_of(place, policy, POLICIES)
    repeats = _each("max_repeats", max_repeats, names)
    for place, most in repeats.items():
        whole_number(place, most, least=0)
    if stop_after_passes is not None and stop_after_passes is not UNSET:
        whole_number("stop_after_passes", stop_after_passes, least=1)
        others = {place: policy for place, policy in policies.items() if policy != "repeat"}
        for place, other in (others | repeats).items():
            raise PlanError(
                f"{CALL}: stop_after_passes={stop_after_passes!r} cannot be combined with "
                f"{place}={other!r}; leave one of them out"
            )
    advice = "leave it out: datasets repeat until the slowest has made stop_after_passes passes"
    if exhausted_policy is not None:
        raise _not_yet("exhausted_policy", exhausted_policy, advice)
    if max_repeats is not None:
        raise _not_yet("max_repeats", max_repeats, advice)
    if stop_after_passes is None:
        raise _not_yet("stop_after_passes", None, "give a number of passes")
    return 1 if stop_after_passes is UNSET else whole_number("stop_after_passes", stop_after_passes)


def fresh_passes(value: object, names: Sequence[str]) -> bool:
    """Check reshuffle_on_repeat, and refuse a value for each dataset."""
    for place, each in _each("reshuffle_on_repeat", value, names).items():
        flag(place, each)
    if isinstance(value, Mapping):
        raise _not_yet("reshuffle_on_repeat", value, "give one value for all datasets")
    return flag("reshuffle_on_repeat", value)


def check_units(
    *, token_estimation: object, mixture_unit: object, schedule: object, budget: object
) -> None:
    """Refuse what would make weights mean tokens, or change with time."""
    one_of("mixture_unit", mixture_unit, ("samples", "tokens"))
    if mixture_unit != "samples":
        raise _not_yet("mixture_unit", mixture_unit, "weights count samples")
    given = {"token_estimation": token_estimation, "schedule": schedule, "budget": budget}
    for argument, value in given.items():
        if value is not None:
            raise _not_yet(argument, value, "leave it out: weights are fixed and count samples")


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


def _not_yet(argument: str, value: object, advice: str) -> NotYetError:
    shown = value if isinstance(value, str | int | Mapping | None) else type(value).__name__
    return NotYetError(f"{CALL}: {argument}={shown!r} is not there yet; {advice}")
