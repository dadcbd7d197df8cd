"""Rows of a block as Python values, some of which may be bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import DataError
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.row_columns import copied
from zephon.io.payload import RowSource


class BlockRows(RowSource):
    """The rows of one block; a bad one is said to be so when it is looked at.

    rows: Python values, or the rows of a table.
    place: dataset and shard, for messages. first_row: the first row of the block in its shard.
    details: what is wrong with bad rows, right after their place in a message.
    numbers: of these rows in their block, shape [rows], int64; None: all of it.
    """

    __slots__ = ("_details", "_first_row", "_numbers", "_place", "_rows")

    def __init__(
        self,
        rows: Sequence[Any] | TableRows,
        place: str,
        first_row: int,
        details: Mapping[int, str],
        numbers: NDArray[np.int64] | None = None,
    ) -> None:
        self._rows = rows
        self._place = place
        self._first_row = first_row
        self._details = details
        self._numbers = numbers

    def row(self, index: int) -> Any:
        """Make one row.

        Raises:
            DataError: it is bad; names dataset, shard, row and byte.
        """
        number = self._number(index)
        if number in self._details:
            raise DataError(f"{self.place(index)}{self._details[number]}")
        if isinstance(self._rows, TableRows):
            return self._rows.row(index)
        return copied(self._rows[index])

    def place(self, index: int) -> str:
        """Say where one row lies."""
        return f"{self._place}, row {self._first_row + self._number(index)}"

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Keep some rows alone."""
        kept, places = np.unique(rows, return_inverse=True)
        numbers = kept if self._numbers is None else self._numbers[kept]
        few: Sequence[Any] | TableRows
        if isinstance(self._rows, TableRows):
            source, order = self._rows.some(kept)
            if not isinstance(source, TableRows) or not np.array_equal(order, np.arange(len(kept))):
                return self, rows
            few = source
        else:
            few = [self._rows[at] for at in kept.tolist()]
        details = {at: self._details[at] for at in numbers.tolist() if at in self._details}
        return BlockRows(few, self._place, self._first_row, details, numbers), places

    def _number(self, index: int) -> int:
        return index if self._numbers is None else int(self._numbers[index])
