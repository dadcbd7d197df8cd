"""What a file says of several row groups, column by column, as series that Polars compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from zephon.column_steps import Statistics
from zephon.expressions.arrow_types import series


@dataclass(frozen=True, slots=True, eq=False)
class ToldColumn:
    """Statistics of one column, an entry a row group.

    known: whether the file speaks of the column at all, shape [groups].
    nulls: how many there are, shape [groups], int64; -1: it does not say.
    rows: how many there are, shape [groups], int64; -1 where it does not speak of the column.
    low, high: bounds, null where there is none; None: there is none anywhere.
    """

    known: NDArray[np.bool_]
    nulls: NDArray[np.int64]
    rows: NDArray[np.int64]
    low: pl.Series | None
    high: pl.Series | None

    @property
    def all_null(self) -> NDArray[np.bool_]:
        """Where no row has a value, shape [groups]."""
        return self.known & (self.nulls >= self.rows)


class Told:
    """Statistics of several row groups of one file.

    Args:
        groups: of each, statistics of columns by name; one that is left out may hold anything.
    """

    def __init__(self, groups: Sequence[Mapping[str, Statistics]]) -> None:
        self._groups = groups
        self._columns: dict[str, ToldColumn] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def column(self, name: str) -> ToldColumn:
        """Give what is said of one column."""
        if name not in self._columns:
            self._columns[name] = _column(name, [told.get(name) for told in self._groups])
        return self._columns[name]


def _column(name: str, told: Sequence[Statistics | None]) -> ToldColumn:
    unknown = [-1 if each is None or each.nulls is None else each.nulls for each in told]
    rows = [-1 if each is None else each.rows for each in told]
    known = np.array([each is not None for each in told], np.bool_)
    return ToldColumn(
        known=known,
        nulls=np.array(unknown, np.int64),
        rows=np.array(rows, np.int64),
        low=_bounds(name, [None if each is None else each.low for each in told]),
        high=_bounds(name, [None if each is None else each.high for each in told]),
    )


def _bounds(name: str, scalars: Sequence[pa.Scalar | None]) -> pl.Series | None:
    """Put bounds into a series of their type; one of another type than the first says nothing."""
    dtype = next((each.type for each in scalars if each is not None and each.is_valid), None)
    if dtype is None:
        return None
    same = [each if each is not None and each.type == dtype else None for each in scalars]
    return series(pa.array(same, dtype)).alias(name)
