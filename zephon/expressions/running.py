"""Run column steps on an Arrow frame: what is handed on stays Arrow, what is computed is Polars.

Each step is computed eagerly and by itself, on the rows that the filters before it left: so what
raises does not depend on how Polars orders work. A column that is only handed on is never
converted; text would be copied twice. Values have the types that expressions say, whatever came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from zephon.column_steps import ColumnStep, Expression, no_columns, renamed
from zephon.errors import ExecutionError
from zephon.expressions.arrow_types import array, polars_type, series
from zephon.expressions.refusing import first_line

_Columns = Callable[[str], pl.Series]

_ROW = "\0row"  # a column with a value a row, so that constants get as many
_ZERO = pl.Series(_ROW, [0], dtype=pl.UInt8)


def run(
    steps: Sequence[ColumnStep], frame: pa.RecordBatch
) -> tuple[pa.RecordBatch, NDArray[np.int64] | None]:
    """Run steps, in order.

    Args:
        steps: each on what the one before it made.
        frame: at least the columns that they read; one without columns still has rows.

    Returns:
        the frame after the steps, and which rows of ``frame`` are in it, ascending, shape [rows],
        int64; None: all.

    Raises:
        ExecutionError: Polars raised; names the expression, with the cause.
    """
    rows = _Rows(frame)
    for step in steps:
        if step.kind == "filter":
            rows.filter(step.expressions)
        elif step.kind == "rename":
            rows.rename(renamed(step))
        elif step.kind == "drop":
            rows.drop({str(name) for name in step.names})
        else:
            rows.compute(step.expressions, alone=step.kind == "select")
    return rows.to_arrow(), rows.kept


class _Rows:
    """Columns on their way through steps.

    kept: positions of the rows that are left; None: all.
    """

    def __init__(self, frame: pa.RecordBatch) -> None:
        self.kept: NDArray[np.int64] | None = None
        self._rows = frame.num_rows
        self._below: dict[str, pa.Array] = dict(
            zip(frame.schema.names, frame.columns, strict=True)
        )  # never filtered
        self._seen: dict[str, pl.Series] = {}  # of these, what Polars has of the rows left
        # by name: a column below, or computed values and their type
        self._columns: dict[str, str | tuple[pl.Series, pa.DataType]] = {
            name: name for name in self._below
        }

    def filter(self, predicates: Sequence[Expression]) -> None:
        mask = passing(predicates, self._rows, self._series)
        if mask.all():
            return
        left = np.flatnonzero(mask)
        self.kept = left if self.kept is None else self.kept[left]
        self._rows = len(left)
        chosen = pl.Series(mask)
        self._seen = {name: found.filter(chosen) for name, found in self._seen.items()}
        for name, column in self._columns.items():
            if not isinstance(column, str):
                self._columns[name] = (column[0].filter(chosen), column[1])

    def rename(self, new: Mapping[str, str]) -> None:
        self._columns = {new.get(name, name): column for name, column in self._columns.items()}

    def drop(self, names: set[str]) -> None:
        self._columns = {
            name: column for name, column in self._columns.items() if name not in names
        }

    def compute(self, expressions: Sequence[Expression], *, alone: bool) -> None:
        made: dict[str, str | tuple[pl.Series, pa.DataType]] = {}
        computed = [each for each in expressions if each.column is None]
        found = iter(evaluate(computed, self._rows, self._series) if computed else ())
        for each in expressions:
            column = each.column
            made[each.name] = (next(found), each.type) if column is None else self._columns[column]
        self._columns = made if alone else {**self._columns, **made}

    def to_arrow(self) -> pa.RecordBatch:
        indices = None if self.kept is None else pa.array(self.kept)
        arrays = []
        for column in self._columns.values():
            if isinstance(column, str):
                found = self._below[column]
                arrays.append(found if indices is None else found.take(indices))
            else:
                arrays.append(array(*column))
        if not arrays:
            return no_columns(self._rows)
        return pa.RecordBatch.from_arrays(arrays, names=list(self._columns))

    def _series(self, name: str) -> pl.Series:
        column = self._columns[name]
        if not isinstance(column, str):
            return column[0].alias(name)
        if column not in self._seen:
            found = self._below[column]
            taken = found if self.kept is None else found.take(pa.array(self.kept))
            self._seen[column] = series(taken)
        return self._seen[column].alias(name)


def passing(predicates: Sequence[Expression], rows: int, column: _Columns) -> NDArray[np.bool_]:
    """Say for which rows all predicates are true; each sees only rows for which those before are.

    Args:
        predicates: boolean expressions.
        rows: how many there are.
        column: gives a column by name.

    Raises:
        ExecutionError: Polars raised; names the expression, with the cause.
    """
    mask = np.ones(rows, bool)
    for predicate in predicates:
        left = np.flatnonzero(mask)
        some = column if len(left) == rows else partial(_filtered, column, pl.Series(mask))
        mask[left] = _true(evaluate([predicate], len(left), some)[0])
    return mask


def _filtered(column: _Columns, mask: pl.Series, name: str) -> pl.Series:
    return column(name).filter(mask)


def _true(found: pl.Series) -> NDArray[np.bool_]:
    return found.fill_null(False).to_numpy().astype(bool, copy=True)


def evaluate(expressions: Sequence[Expression], rows: int, column: _Columns) -> list[pl.Series]:
    """Compute expressions, each by itself on all rows.

    Args:
        expressions: over the columns that ``column`` gives.
        rows: how many there are.
        column: gives a column by name.

    Returns:
        A series of ``rows`` values for each, of its type.

    Raises:
        ExecutionError: Polars raised; names the expression, with the cause.
    """
    try:
        return _evaluated(expressions, rows, column)
    except (Exception, pl.exceptions.PanicException) as problem:
        for each in expressions:
            try:
                _evaluated([each], rows, column)
            except (Exception, pl.exceptions.PanicException) as exc:
                raise ExecutionError(f"{each} raised {first_line(exc)}") from exc
        raise ExecutionError(f"{expressions[0]} raised {first_line(problem)}") from problem


def _evaluated(expressions: Sequence[Expression], rows: int, column: _Columns) -> list[pl.Series]:
    names = dict.fromkeys(name for each in expressions for name in each.reads)
    counted = _ZERO.new_from_index(0, rows)
    frame = pl.DataFrame([counted, *(column(name) for name in names)])
    plain = [
        each.build().cast(_type(each)).alias(str(number))
        for number, each in enumerate(expressions)
        if not each.chooses
    ]
    # one after the other: the work is cut into tasks already
    found = frame.select_seq(pl.col(_ROW), *plain)
    several: dict[bytes, pl.DataFrame] = {}
    made = []
    for number, each in enumerate(expressions):
        if not each.chooses:
            made.append(found.get_column(str(number)))
            continue
        if each.data not in several:
            several[each.data] = frame.select(each.reads).select_seq(each.build())
        made.append(several[each.data].get_column(each.name).cast(_type(each)))
    return made


def _type(expression: Expression) -> pl.DataType:
    found = polars_type(expression.type)
    if found is None:
        raise TypeError(f"Polars holds no {expression.type}")
    return found
