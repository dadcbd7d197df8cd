"""The matrix that the rows of one batch lie in, as wide as the longest of them or as asked for."""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zephon import collate
from zephon.batches.columns import TokenField
from zephon.errors import DataError

Field: TypeAlias = TokenField | NDArray[Any]  # the array: one value a row


class Grid:
    """How the rows of one batch lie in a matrix.

    width: its columns. rows: how many there are.
    lengths: tokens of each row, its packed padding included; int64, shape [rows].
    missing: columns without a token at the end of each row; None: every row fills the width.
    trailing: columns of padding at the end of each row, of either kind; None: there is none.

    Args:
        name, tokens: the token field.
        padding: pad tokens at the end of each row, shape [rows]; None: no row has any.
        pad_to: how wide; "longest": as the longest row; None: rows must be of one length.

    Raises:
        DataError: rows are of unequal length, or too long, or have more padding than tokens.
    """

    __slots__ = ("_offsets", "lengths", "missing", "rows", "trailing", "width")

    def __init__(
        self,
        name: str,
        tokens: TokenField,
        padding: NDArray[np.int64] | None,
        pad_to: int | str | None,
    ) -> None:
        self._offsets = tokens.offsets
        self.lengths = tokens.offsets[1:] - tokens.offsets[:-1]
        self.rows = len(self.lengths)
        longest, shortest = int(self.lengths.max()), int(self.lengths.min())
        self.width = pad_to if isinstance(pad_to, int) else longest
        if longest > self.width:
            i = int(self.lengths.argmax())
            raise DataError(
                f"to_training: pad_to must be at least the tokens of the longest row, which are "
                f"{longest} in row {i}, got {pad_to}; pass pad_to='longest', or pack shorter rows"
            )
        self.missing = None
        if shortest != self.width:
            if pad_to is None:
                self._refuse_unequal(name)
            self.missing = self.width - self.lengths
        self.trailing = self.missing
        if padding is not None and padding.any():
            self._check_padding(padding)
            self.trailing = padding if self.missing is None else padding + self.missing

    def matrix(self, name: str, field: Field, fill: int = 0) -> NDArray[Any]:
        """Lay out a field that has a value for every token; a view where no row is padded."""
        if not isinstance(field, TokenField):
            self._refuse_length(name, 0, "a single value")
        if field.offsets is not self._offsets:  # an engine's fields share one array of offsets
            lengths = field.offsets[1:] - field.offsets[:-1]
            differs = lengths != self.lengths
            if differs.any():
                i = int(differs.argmax())
                self._refuse_length(name, i, f"{lengths[i]} values")
        if self.missing is None:
            return collate.stack(field.values, field.offsets)
        return collate.pad_rows(field.values, field.offsets, self.width, fill)

    def positions(self, field: Field) -> NDArray[Any]:
        """Lay out positions; those of padding that the matrix adds go on from the row's own."""
        positions = self.matrix("positions", field)
        if self.missing is not None and self.trailing is not None:
            return collate.number_tails(positions, self.trailing, self.missing)
        return positions

    def tail(self) -> NDArray[np.bool_]:
        """Mark the padding: bool, shape [rows, width]."""
        if self.trailing is None:
            return np.zeros((self.rows, self.width), np.bool_)
        return collate.tail(self.width, self.trailing)

    def content(self) -> NDArray[np.int64] | None:
        """Give the column where each row's padding begins, shape [rows]; None: there is none."""
        return None if self.trailing is None else self.width - self.trailing

    def _check_padding(self, padding: NDArray[np.int64]) -> None:
        outside = (padding < 0) | (padding > self.lengths)
        if outside.any():
            i = int(outside.argmax())
            raise DataError(
                f"to_training: padding_length of row {i} must be 0 to {self.lengths[i]}, which is "
                f"the row's length, got {padding[i]}; keep the packing tag that pack_flat gave"
            )

    def _refuse_length(self, name: str, i: int, came: str) -> NoReturn:
        raise DataError(
            f"to_training: {name!r} must have one value a token, and row {i} has "
            f"{self.lengths[i]} tokens and {came}; make it as long as the tokens"
        )

    def _refuse_unequal(self, name: str) -> NoReturn:
        one, other = collate.unequal_rows(self.lengths) or (0, 0)
        raise DataError(
            f"to_training: {name!r} must be as long in every row, got {self.lengths[one]} in row "
            f"{one} and {self.lengths[other]} in row {other}; pack with pack_flat, or pass "
            "pad_to='longest'"
        )
