"""What first fit and best fit share: rows that stay open until nothing more is hoped for.

A document goes into one of at most ``num_bins`` open rows. A row is let go as soon as less than
``min_sequence_length`` is free in it or it has ``max_sequences_per_bin`` documents. If no row has
room and all may be open are open, the oldest ("fifo") or the fullest one ("fullest", of equally
full ones the oldest) is let go for a new one. A document that fills a row alone needs no other to
go. At the end of the lane open rows are let go from the oldest on.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from zephon.exec.policies.placed_rows import (
    NUMBERS,
    PlacedRows,
    flat_list,
    single_pieces,
)
from zephon.exec.policies.policy import AT_END, Documents, Held, Units
from zephon.exec.policies.whole_documents import (
    Thrown,
    WholeDocuments,
    read_thrown,
    thrown_numbers,
)


@dataclass(slots=True)
class Bin:
    """An open row: how much is free in it, and its pieces (see ``placed_rows``)."""

    room: int
    pieces: list[int]


State = TypeVar("State", bound=Thrown)


class OpenBins(WholeDocuments[State]):
    """A packer with open rows; which of them takes a document is for the class below to say.

    Args:
        max_length: what the documents of a row take together at most, >= 1.
        num_bins: rows that may be open, >= 1.
        max_sequences_per_bin: documents of a row at most, >= 1; None for any number.
        min_sequence_length: a row with less than this free is let go, >= 0; with 0 even a full
            row waits until it must make room.
        flush_strategy: which row makes room.
        components: how many components the lane's documents come from.
        by_length: see ``WholeDocuments``.
    """

    def __init__(
        self,
        *,
        max_length: int,
        num_bins: int,
        max_sequences_per_bin: int | None = None,
        min_sequence_length: int = 1,
        flush_strategy: str = "fifo",
        components: int,
        by_length: bool = False,
    ) -> None:
        super().__init__(max_length=max_length, components=components, by_length=by_length)
        self._num_bins = num_bins
        self._most_numbers = NUMBERS * (max_sequences_per_bin or 2**62)
        self._smallest = min_sequence_length
        self._fullest = flush_strategy == "fullest"

    def finish(self, state: State, documents: Documents) -> Units:
        """Let the open rows go, from the oldest on."""
        rows = PlacedRows()
        for one in self._bins(state):
            rows.add(one.pieces, AT_END)
        self._open(state, [])
        return rows.units()

    def held(self, state: State) -> Held:
        """Return the documents of the open rows, from the oldest on, and what was thrown away."""
        bins = self._bins(state)
        documents = np.array([len(one.pieces) // NUMBERS for one in bins], np.int64)
        numbers = chain.from_iterable(one.pieces for one in bins)
        return Held(
            single_pieces(numbers, int(documents.sum())),
            {
                "documents": documents,
                "room": np.array([one.room for one in bins], np.int64),
                **thrown_numbers(state),
            },
        )

    def resume(self, lane: int, held: Held, documents: Documents) -> State:
        """Open the rows again."""
        state = self.make_state(lane)
        numbers, at, bins = flat_list(held.units), 0, []
        for count, room in zip(
            held.numbers["documents"].tolist(), held.numbers["room"].tolist(), strict=True
        ):
            bins.append(Bin(room, numbers[at : at + NUMBERS * count]))
            at += NUMBERS * count
        self._open(state, bins)
        read_thrown(state, held)
        return state

    @abstractmethod
    def _bins(self, state: State) -> list[Bin]:
        """Return the open rows, from the oldest on."""

    @abstractmethod
    def _open(self, state: State, bins: list[Bin]) -> None:
        """Make these the only open rows; they come from the oldest on."""
