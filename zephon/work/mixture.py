"""The weights of a mixture: how much of each dataset a model sees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from zephon.errors import PlanError, nearest
from zephon.work.finite import finite_float


@dataclass(frozen=True, slots=True)
class MixtureSpec:
    """Weights by dataset name; they need not add up to one.

    Weight zero means that a dataset is never read.

    >>> MixtureSpec({"prose": 3, "code": 1}).normalized
    {'prose': 0.75, 'code': 0.25}

    Raises:
        PlanError: no weights, a weight that is negative or not a finite number, or all zero.
    """

    weights: Mapping[str, float]
    _normalized: Mapping[str, float] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise PlanError(
                "MixtureSpec: weights must be a non-empty mapping from dataset name to weight, "
                f"got {self.weights!r}"
            )
        for name in self.weights:
            if not isinstance(name, str):
                raise PlanError(f"MixtureSpec: component names must be strings, got {name!r}")
        weights = {name: _checked_weight(name, weight) for name, weight in self.weights.items()}
        if not any(weights.values()):
            raise PlanError(
                "MixtureSpec: at least one weight must be positive, got zero for "
                f"{', '.join(map(repr, weights))}"
            )
        object.__setattr__(self, "weights", MappingProxyType(weights))
        object.__setattr__(self, "_normalized", _normalized(weights))

    @classmethod
    def scaled(cls, weights: Mapping[str, float]) -> MixtureSpec:
        """Make a mixture of weights that add up to one as they are: to scale again may round."""
        spec = cls(weights)
        object.__setattr__(spec, "_normalized", dict(spec.weights))
        return spec

    @property
    def normalized(self) -> dict[str, float]:
        """The weights, scaled to add up to one."""
        return dict(self._normalized)

    def validate_for(self, names: Iterable[str]) -> None:
        """Check that the mixture names exactly these components.

        Raises:
            PlanError: a component has no weight, or a weight has no component.
        """
        wanted = list(names)
        known = set(wanted)
        for name in self.weights:
            if name not in known:
                raise PlanError(
                    f"MixtureSpec: weight for component {name!r}, but no dataset has that name; "
                    f"{nearest(name, wanted)}"
                )
        missing = [name for name in wanted if name not in self.weights]
        if missing:
            raise PlanError(
                f"MixtureSpec: every dataset needs a weight, got none for "
                f"{', '.join(map(repr, missing))}; weight 0 means never read; "
                f"{nearest(missing[0], self.weights)}"
            )

    def normalized_for(self, names: Iterable[str]) -> dict[str, float]:
        """Give the normalized weights in the order of ``names``, which must match exactly."""
        wanted = list(names)
        self.validate_for(wanted)
        normalized = self.normalized
        return {name: normalized[name] for name in wanted}

    def __hash__(self) -> int:
        return hash(frozenset(self.weights.items()))

    def __reduce__(self) -> tuple[type[MixtureSpec], tuple[dict[str, float]]]:
        return MixtureSpec, (dict(self.weights),)


def _checked_weight(name: str, weight: object) -> float:
    number = finite_float(weight)
    if number is not None and number >= 0:
        return number
    raise PlanError(
        f"MixtureSpec weight for component {name!r} must be positive and finite, or zero for a "
        f"dataset that is never read, got {weight!r}"
    )


def _normalized(weights: Mapping[str, float]) -> dict[str, float]:
    largest = max(weights.values())
    # Only weights whose sum is no finite number are scaled first: scaling rounds.
    scale = largest if math.isinf(sum(weights.values())) else 1.0
    scaled = {name: weight / scale for name, weight in weights.items()}
    total = math.fsum(scaled.values())
    return {name: weight / total for name, weight in scaled.items()}
