"""Run column steps on an Arrow frame: what is handed on stays Arrow, what is computed is Polars.

Each step is computed eagerly and by itself, on the rows that the filters before it left: so what
raises does not depend on how Polars orders work. A column that is only handed on is never
converted; text would be copied twice. Values have the types that expressions say, whatever came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from zephon.column_steps import ColumnStep, Expression, no_columns, renamed
from zephon.errors import ExecutionError
from zephon.expressions.arrow_types import array, polars_type, series
from zephon.expressions.refusing import first_line
from zephon.forks import polars_needed

_Columns = Callable[[str], pl.Series]

_ZERO = pl.Series([0], dtype=pl.UInt8)


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """What steps made of a frame.

    frame: after the steps. kept: which rows of the given frame are in it, ascending, shape [rows],
    int64; None: all. unknown: columns of it whose values nobody knows. problem: what raised first,
    predicates before computed fields, and the kind of its step; None: nothing did.
    """

    frame: pa.RecordBatch
    kept: NDArray[np.int64] | None
    unknown: frozenset[str] = frozenset()
    problem: tuple[str, ExecutionError] | None = None


def run(
    steps: Sequence[ColumnStep],
    frame: pa.RecordBatch,
    unknown: frozenset[str] = frozenset(),
    *,
    lenient: bool = False,
) -> Computed:
    """Run steps, in order.

    What is made of an unknown value is unknown, and a predicate that reads one keeps the row.

    Args:
        steps: each on what the one before it made.
        frame: at least the columns that they read; one without columns still has rows.
        unknown: columns of it whose values nobody knows; they hold some stand-in.
        lenient: what raises is unknown, too; for one row.

    Raises:
        ExecutionError: Polars raised; names the expression, with the cause.
    """
    rows = _Rows(frame, unknown, lenient)
    for step in steps:
        if step.kind == "filter":
            rows.filter(step.expressions)
        elif step.kind == "rename":
            rows.rename(renamed(step))
        elif step.kind == "drop":
            rows.drop({str(name) for name in step.names})
        else:
            rows.compute(step.expressions, step.kind)
    problem = min(rows.problems, key=lambda each: each[0] != "filter", default=None)
    return Computed(rows.to_arrow(), rows.kept, frozenset(rows.unknown), problem)


class _Rows:
    """Columns on their way through steps.

    kept: positions of the rows that are left; None: all. unknown: names of columns whose values
    nobody knows. problems: what raised, and the kind of its step.
    """

    def __init__(self, frame: pa.RecordBatch, unknown: Iterable[str], lenient: bool) -> None:
        self.kept: NDArray[np.int64] | None = None
        self.unknown = set(unknown)
        self.problems: list[tuple[str, ExecutionError]] = []
        self._lenient = lenient
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
        asked = [each for each in predicates if self.unknown.isdisjoint(each.reads)]
        for part in [[each] for each in asked] if self._lenient else [asked]:
            with self._noting("filter"):
                self._keep(passing(part, self._rows, self._series))

    def _keep(self, mask: NDArray[np.bool_]) -> None:
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
        self.unknown = {new.get(name, name) for name in self.unknown}

    def drop(self, names: set[str]) -> None:
        self._columns = {
            name: column for name, column in self._columns.items() if name not in names
        }
        self.unknown -= names

    def compute(self, expressions: Sequence[Expression], kind: str) -> None:
        made: dict[str, str | tuple[pl.Series, pa.DataType]] = {}
        found, unknown = self._evaluated(expressions, kind), set()
        for each in expressions:
            if each.column is not None:
                made[each.name] = self._columns[each.column]
                if each.column in self.unknown:
                    unknown.add(each.name)
            elif each.name in found:
                made[each.name] = (found[each.name], each.type)
            else:
                made[each.name] = (pl.Series([None] * self._rows, dtype=_type(each)), each.type)
                unknown.add(each.name)
        alone = kind == "select"
        self._columns = made if alone else {**self._columns, **made}
        self.unknown = unknown if alone else (self.unknown - made.keys()) | unknown

    def _evaluated(self, expressions: Sequence[Expression], kind: str) -> dict[str, pl.Series]:
        """Compute those expressions that read nothing unknown; gives values by name."""
        some = [e for e in expressions if e.column is None and self.unknown.isdisjoint(e.reads)]
        found: dict[str, pl.Series] = {}
        for part in [[each] for each in some] if self._lenient else [some]:
            with self._noting(kind):
                values = evaluate(part, self._rows, self._series) if part else ()
                found.update(zip((each.name for each in part), values, strict=True))
        return found

    @contextmanager
    def _noting(self, kind: str) -> Iterator[None]:
        """Go on after what raises, where that is wanted."""
        try:
            yield
        except ExecutionError as exc:
            if not self._lenient:
                raise
            self.problems.append((kind, exc))

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
        ForkedError: Polars lost its threads in a fork.
    """
    polars_needed()
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
    counted = max(names, key=len, default="") + "\0"  # a name that no column has
    # it has a value a row, so that constants get as many
    frame = _ZERO.new_from_index(0, rows).alias(counted).to_frame()
    frame = frame.hstack([column(name) for name in names])
    plain = [
        each.build().cast(_type(each)).alias(str(number))
        for number, each in enumerate(expressions)
        if not each.chooses
    ]
    # one after the other: the work is cut into tasks already
    found = frame.select_seq(pl.col(counted), *plain)
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
