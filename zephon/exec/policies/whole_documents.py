"""What packers share that never cut a document: one that is longer than a row is thrown away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from zephon.exec.policies.policy import Documents, Held, Policy, Units
from zephon.exec.renumbering import Renumbering

OVERSIZED = "oversized"
"""Why documents are thrown away that are longer than a row."""


@dataclass(slots=True)
class Thrown:
    """What was thrown away since the lane began.

    oversized: shape [components], int64, tokens of documents longer than a row.
    oversized_documents: how many those were.
    """

    oversized: NDArray[np.int64]
    oversized_documents: int


State = TypeVar("State", bound=Thrown)


class WholeDocuments(Policy[State]):
    """A packer of whole documents.

    Args:
        max_length: what the documents of a row take together at most, >= 1.
        components: how many components the lane's documents come from.
        by_length: a document takes what the measure "length" says; otherwise its tokens, and a
            document without any vanishes.
    """

    packs = True

    def __init__(self, *, max_length: int, components: int, by_length: bool) -> None:
        self._max_length = max_length
        self._components = components
        self._by_length = by_length

    def dropped(self, state: State) -> Mapping[str, NDArray[np.int64]]:
        """Count the tokens of documents longer than a row."""
        return {OVERSIZED: state.oversized.copy()}

    def dropped_documents(self, state: State) -> int:
        """Count the documents longer than a row."""
        return state.oversized_documents

    def renumbered(self, held: Held, before: Policy[State], numbers: Renumbering) -> Held:
        """Count nothing thrown away of components that are new; see ``Policy.renumbered``."""
        oversized = numbers.amounts(held.numbers["oversized"])
        return Held(held.units, {**held.numbers, "oversized": oversized})

    def _nothing_thrown(self) -> NDArray[np.int64]:
        return np.zeros(self._components, np.int64)

    def _fitting(
        self, state: State, units: Units, documents: Documents
    ) -> Iterator[tuple[int, tuple[int, int, int], int]]:
        """Count and leave out what fits no row; yield size, piece and trigger of the others."""
        sizes = documents.measures("length", units.seq) if self._by_length else units.length
        fits = sizes <= self._max_length
        if not fits.all():
            self._throw(state, units.take(np.flatnonzero(~fits)), documents)
        wanted = fits if self._by_length else fits & (sizes > 0)
        if not wanted.all():
            wanted = np.flatnonzero(wanted)
            units, sizes = units.take(wanted), sizes[wanted]
        pieces = zip(units.seq.tolist(), units.start.tolist(), units.length.tolist(), strict=True)
        return zip(sizes.tolist(), pieces, units.trigger.tolist(), strict=True)

    def _throw(self, state: State, units: Units, documents: Documents) -> None:
        oversized = state.oversized.copy()
        np.add.at(oversized, documents.components(units.seq), units.length)
        state.oversized = oversized
        state.oversized_documents += len(units)


def thrown_numbers(state: Thrown) -> dict[str, NDArray[np.int64]]:
    """Write down what was thrown away."""
    return {
        "oversized": state.oversized,
        "oversized_documents": np.array([state.oversized_documents], np.int64),
    }


def read_thrown(state: Thrown, held: Held) -> None:
    """Put back what ``thrown_numbers`` wrote down."""
    state.oversized = held.numbers["oversized"]
    state.oversized_documents = int(held.numbers["oversized_documents"][0])
