"""What a chunk accepts beside its samples: each check names the argument and what came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from zephon.errors import PlanError
from zephon.work.finite import finite_float


def checked_target(weights: Any) -> dict[str, float] | None:
    """Check a target mixture: names with weights, none negative, at least one positive.

    Raises:
        PlanError: it is something else.
    """
    if weights is None:
        return None
    weights = getattr(weights, "weights", weights)  # a MixtureSpec does as well
    if not isinstance(weights, Mapping):
        raise PlanError(
            f"WorkChunk: target_mixture must map names to weights, got {type(weights).__name__}"
        )
    found = {name: _weight(name, weight) for name, weight in weights.items()}
    if not any(found.values()):
        raise PlanError(f"WorkChunk: target_mixture must have a weight above 0, got {found!r}")
    return found


def _weight(name: object, weight: Any) -> float:
    number = finite_float(weight)
    if not isinstance(name, str) or number is None or number < 0:
        raise PlanError(
            f"WorkChunk: target_mixture[{name!r}] must be a finite number of at least 0 for a "
            f"component's name, got {weight!r}"
        )
    return number


def checked_exhausted(names: Any) -> tuple[str, ...]:
    """Check the names of exhausted components: unique and non-empty; a set is put in order.

    Raises:
        PlanError: they are something else.
    """
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise PlanError(
            f"WorkChunk: source_exhausted must be a sequence of component names, got {names!r}"
        )
    found = list(names)
    for name in found:
        if not isinstance(name, str) or not name:
            raise PlanError(f"WorkChunk: source_exhausted must hold non-empty names, got {name!r}")
    if isinstance(names, set | frozenset):
        found.sort()
    repeated = [name for place, name in enumerate(found) if name in found[:place]]
    if repeated:
        raise PlanError(f"WorkChunk: source_exhausted names {repeated[0]!r} twice; name it once")
    return tuple(found)
