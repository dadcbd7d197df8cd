"""How the samples of a chunk are read: which component next, and in which order inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.errors import PlanError
from zephon.work.chunks.round_robin import smooth_round_robin
from zephon.work.finite import whole_int
from zephon.work.words import one_of

_Word = TypeVar("_Word", bound=StrEnum)


class MixtureReadMode(StrEnum):
    """How components take turns.

    weighted_random: every arrangement of the chunk's samples over its components is equally
    likely. weighted_round_robin: the smooth one, which keeps every prefix close to the counts.
    """

    WEIGHTED_RANDOM = "weighted_random"
    WEIGHTED_ROUND_ROBIN = "weighted_round_robin"


class ComponentOrder(StrEnum):
    """In which order a component's samples come: as they are listed, or permuted."""

    AS_IS = "as_is"
    SHUFFLE = "shuffle"


@dataclass(frozen=True, slots=True)
class MixtureReadConfig:
    """How the samples of a chunk are read; a word does as well as a member of its enumeration.

    mode: how components take turns.
    seed: decides what is random; None: the chunk's seed, or 0 if it has none.
    precompute: accepted; an order costs the same either way, and is the same.
    within_component: the order inside each component.

    >>> MixtureReadConfig("weighted_random", seed=3).mode is MixtureReadMode.WEIGHTED_RANDOM
    True

    Raises:
        PlanError: a word that is none of these, or a value of another kind.
    """

    mode: MixtureReadMode = MixtureReadMode.WEIGHTED_ROUND_ROBIN
    seed: int | None = None
    precompute: bool = False
    within_component: ComponentOrder = ComponentOrder.AS_IS

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _word("mode", self.mode, MixtureReadMode))
        object.__setattr__(
            self,
            "within_component",
            _word("within_component", self.within_component, ComponentOrder),
        )
        object.__setattr__(self, "seed", checked_seed("MixtureReadConfig", self.seed))
        if not isinstance(self.precompute, bool):
            raise PlanError(
                f"MixtureReadConfig: precompute must be True or False, got {self.precompute!r}"
            )


def read_order(
    names: Sequence[str], counts: NDArray[np.int64], config: MixtureReadConfig, seed: int | None
) -> NDArray[np.int64]:
    """Order samples that are listed component after component.

    Args:
        names: of the components.
        counts: samples of each, shape [components], int64.
        config: how to read.
        seed: the chunk's, for a configuration without one.

    Returns:
        Positions in the list, shape [samples], int64; read-only.
    """
    seed = next(s for s in (config.seed, seed, 0) if s is not None)
    if config.mode is MixtureReadMode.WEIGHTED_ROUND_ROBIN:
        component = smooth_round_robin(counts)
    else:
        listed = np.repeat(np.arange(len(names)), counts)
        component = listed[_permutation(len(listed), seed, "components")]
    places = np.arange(len(component), dtype=np.int64)
    if config.within_component is ComponentOrder.SHUFFLE:
        stops = np.cumsum(counts)
        for name, start, stop in zip(names, (stops - counts).tolist(), stops.tolist(), strict=True):
            places[start:stop] = start + _permutation(stop - start, seed, "within", name)
    order = np.empty_like(places)
    order[np.argsort(component, kind="stable")] = places
    order.flags.writeable = False
    return order


def _permutation(count: int, *parts: int | str) -> NDArray[np.int64]:
    keys = seeds.subkeys(seeds.key("chunk", *parts), np.arange(count))
    return np.argsort(keys, kind="stable")


def checked_seed(call: str, seed: object) -> int | None:
    """Check a seed: a whole number, or None.

    Raises:
        PlanError: it is something else; True and False are.
    """
    number = whole_int(seed)
    if number is None and seed is not None:
        raise PlanError(f"{call}: seed must be a whole number or None, got {seed!r}")
    return number


def _word(argument: str, value: object, words: type[_Word]) -> _Word:
    return words(one_of("MixtureReadConfig", argument, value, [str(each) for each in words]))
