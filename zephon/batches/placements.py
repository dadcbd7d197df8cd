"""What the tags of records say about how an engine laid them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The documents that lie end to end in each row: row r has splits[r] to splits[r + 1].

    lengths: tokens of each, int64, shape [pieces]. splits: int64, shape [rows + 1].
    """

    lengths: NDArray[np.int64]
    splits: NDArray[np.int64]

    @classmethod
    def one_a_row(cls, lengths: NDArray[np.int64]) -> Pieces:
        """Make every row one document, of so many tokens."""
        return cls(lengths=lengths, splits=np.arange(len(lengths) + 1))


@dataclass(frozen=True, slots=True)
class Placements:
    """How the records of one batch were laid out, one dict each, with the names of ``PLACEMENT``.

    of_rows: {} for a record that no engine made.
    """

    of_rows: Sequence[Mapping[str, Any]]

    @property
    def all_known(self) -> bool:
        """Whether an engine made every record."""
        return all(self.of_rows)

    @property
    def all_packed(self) -> bool:
        """Whether packing made every record."""
        return all(placement.get("lengths") is not None for placement in self.of_rows)

    @property
    def tokens_field(self) -> str | None:
        """The field that all records were tokenized into or packed by; None: there is not one."""
        names = {placement.get("tokens_field") for placement in self.of_rows}
        return names.pop() if len(names) == 1 else None

    @property
    def pad_token_ids(self) -> set[Any]:
        """The pad tokens of all records, one as a rule."""
        return {placement.get("pad_token_id") for placement in self.of_rows} - {None}

    def left_out(self, name: str) -> bool:
        """Whether documents may have a field, but as one of their source rows alone."""
        packed = [placement.get("fields") for placement in self.of_rows]
        return all(names is not None and name not in names for names in packed)

    def pieces(self, content: NDArray[np.int64]) -> Pieces:
        """Give the documents of each record, all of them known.

        Args:
            content: tokens of each without padding, shape [rows]; those of a record that is one
                document, however much of it is left.
        """
        found = [
            (length,) if placement["lengths"] is None else placement["lengths"]
            for placement, length in zip(self.of_rows, content.tolist(), strict=True)
        ]
        lengths = np.concatenate([np.array(row, np.int64) for row in found])
        return Pieces(lengths=lengths, splits=np.cumsum([0, *map(len, found)]))
