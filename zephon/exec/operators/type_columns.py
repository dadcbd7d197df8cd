"""Columns of the kinds that later steps read, made of expression columns or of whole rows.

Whole rows are Python objects here. Where all values of a column are plain (text, lists of integers,
arrays of one type) they are joined at once; anything else is looked at value by value, in the same
words as rows in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zephon.errors import DataError, told
from zephon.exec.morsel import Morsel
from zephon.exec.operator import Operator, RowError
from zephon.io.exact_numbers import exactly
from zephon.io.faults import NULLED, RowFault
from zephon.io.fields import TEXT, Column, can_hold
from zephon.io.formats.arrow_columns import (
    converted,
    kind_of_type,
    number_lists,
    numbers_of_type,
)
from zephon.io.formats.arrow_values import python_value
from zephon.io.offsets import offsets_of
from zephon.io.values import value_of
from zephon.planner import physical

_MEND = "mend the row, or what made it"
_ABSENT = object()


class TypeColumnsOp(Operator):
    """Adds typed columns to those that are there; lets go of whole rows maybe.

    A null, or a row without the field, is a bad row, but for a text where its dataset says that it
    is empty or drops its row. What rows say of themselves always stays.
    """

    label = "made rows"

    def __init__(self, step: physical.TypeColumns, null_texts: Sequence[str] = ()) -> None:
        """Keep which columns to make, and what a null text means, of each component."""
        self._step = step
        self._null_texts = null_texts
        self._takes_nulls = any(each != "error" for each in null_texts)
        self.settles = "drop" in null_texts

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows with columns; raises what the first bad row raises."""
        names = list(rows.columns.schema.names)
        arrays = list(rows.columns.columns)
        missing = [column for column in self._step.columns if column.path not in names]
        whole: list[Any] | None = None
        nulls: set[int] = set()
        for column in missing:
            found = _in_frame(rows.frame, column)
            names.append(column.path)
            if found is not None:
                if column.kind == "text" and self._takes_nulls and found.null_count:
                    found = self._taken(rows, found, nulls)
                arrays.append(_from_frame(found, column))
                continue
            if rows.payload is None:  # no step gives the field
                arrays.append(_from_rows([{}] * len(rows.refs), column))
                continue
            whole = rows.payload.moved() if whole is None else whole  # nothing here changes them
            if column.kind == "text" and self._takes_nulls:
                arrays.append(_from_rows(self._without_nulls(rows, whole, column, nulls), column))
            else:
                arrays.append(_from_rows(whole, column))
        payload = rows.payload
        if payload is not None and not self._step.keep_payload:
            payload = payload.metas_only() if payload.has_metas else None
        columns = pa.RecordBatch.from_arrays(arrays, names=names) if missing else rows.columns
        made = replace(rows, columns=columns, payload=payload)
        return replace(made, faults=dict.fromkeys(nulls, RowFault(NULLED))) if nulls else made

    def _taken(self, rows: Morsel, found: pa.Array, nulls: set[int]) -> pa.Array:
        """Put "" where a null is no error; note the rows that it drops."""
        filled = np.zeros(len(found), np.bool_)
        for row in np.flatnonzero(found.is_null()).tolist():
            meaning = self._null_texts[int(rows.refs.component[row])]
            filled[row] = meaning != "error"
            if meaning == "drop":
                nulls.add(row)
        if found.null_count == len(found):
            found = pa.nulls(len(found), TEXT)
        elif kind_of_type(found.type) != "text":
            return found
        text = found.cast(TEXT)
        return pc.call_function("if_else", [pa.array(filled), pa.scalar("", TEXT), text])

    def _without_nulls(
        self, rows: Morsel, whole: list[Any], column: Column, nulls: set[int]
    ) -> list[Any]:
        """Do as ``_taken`` for whole rows."""
        given = list(whole)
        probe = replace(column, null="drop")
        for row, value in enumerate(whole):
            if type(value) is dict and type(value.get(column.path)) is str:
                continue
            meaning = self._null_texts[int(rows.refs.component[row])]
            if meaning != "error" and _is_null(value, probe):
                given[row] = {column.path: ""}
                if meaning == "drop":
                    nulls.add(row)
        return given


def _is_null(row: Any, column: Column) -> bool:
    try:
        value_of(row, column)
    except Exception as exc:  # what else is wrong with it is said when it is read
        return isinstance(exc, DataError) and str(exc) == NULLED
    return False


def _in_frame(frame: pa.RecordBatch | None, column: Column) -> pa.Array | None:
    """Find a column, or a field inside the objects of one; None if there is none."""
    if frame is None:
        return None
    names = frame.schema.names
    if column.path in names:
        return frame.column(column.path)
    head, *inner = column.path.split(".")
    if head not in names:
        return None
    found = frame.column(head)
    for name in inner:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(name) < 0:
            return None
        found = pc.call_function("struct_field", [found], pc.StructFieldOptions([name]))
    return found


def _from_frame(found: pa.Array, column: Column) -> pa.Array:
    if found.null_count == len(found):
        found = pa.nulls(len(found))
    elif not _can_become(found.type, column):
        row = int(np.argmax(found.is_valid()))
        try:
            value = python_value(found[row])
        except (ValueError, OverflowError):
            pass  # Python has no such value: its type says enough
        else:
            _value({column.path: value}, column, row)
        problem = f"field {column.path!r} must be {column.wanted}, got one of type {found.type}"
        raise RowError(row, problem, _MEND)
    array, faults = converted(found, column)
    if len(faults.rows):
        problem = faults.details[0].removeprefix(": ").rpartition("; ")[0]
        raise RowError(int(faults.rows[0]), problem, column.remedy(_MEND))
    return array


def _can_become(dtype: pa.DataType, column: Column) -> bool:
    kind = kind_of_type(dtype)
    if column.kind == "text":
        return kind == "text"
    return kind in ("tokens", "numbers", "unknown") and can_hold(
        column.kind, numbers_of_type(dtype)
    )


def _from_rows(rows: Sequence[Any], column: Column) -> pa.Array:
    values = _plain_values(rows, column)
    if values is not None:
        joined = _texts(values) if column.kind == "text" else _lists(values, column)
        if joined is not None:
            return joined
    looked_at = [_value(row, column, number) for number, row in enumerate(rows)]
    if column.kind == "text":
        return pa.array(looked_at, TEXT)
    return _number_lists(looked_at, np.concatenate([np.empty(0, column.dtype), *looked_at]), column)


def _plain_values(rows: Sequence[Any], column: Column) -> list[Any] | None:
    """List the values of a top-level field that every row has; None: look at each row."""
    path = column.path
    if set(map(type, rows)) != {dict}:
        return None
    values = [row.get(path, _ABSENT) for row in rows]
    if any(row.get(name) is not None for name in column.without for row in rows):
        return None
    return None if any(value is _ABSENT for value in values) else values


def _texts(values: list[Any]) -> pa.Array | None:
    if set(map(type, values)) != {str}:
        return None
    try:
        return pa.array(values, TEXT)
    except UnicodeEncodeError:  # a lone surrogate
        return None


def _lists(values: list[Any], column: Column) -> pa.Array | None:
    """Join lists of plain integers, or arrays of one type; None if they are anything else."""
    kinds = set(map(type, values))
    if kinds == {list} and column.dtype.kind == "i":
        items = list(chain.from_iterable(values))
        if not set(map(type, items)) <= {int}:
            return None
        try:
            joined = np.array(items, np.int64)
        except OverflowError:
            return None
    elif kinds == {np.ndarray}:
        types = {(value.dtype, value.ndim) for value in values}
        if len(types) > 1 or values[0].ndim != 1 or values[0].dtype.kind != column.dtype.kind:
            return None
        joined = np.concatenate(values)
    else:
        return None
    if column.dtype.kind != "b":
        joined, wrong = exactly(joined, column.dtype)
        if len(wrong):
            return None
    return _number_lists(values, joined, column)


def _number_lists(values: Sequence[Any], joined: NDArray[Any], column: Column) -> pa.Array:
    if joined.dtype == np.bool_:
        joined = joined.view(np.uint8)
    offsets = offsets_of([len(value) for value in values])
    return number_lists(offsets, pa.array(joined, column.type.value_type))


def _value(row: Any, column: Column, number: int) -> Any:
    """Read one value; what is wrong with it is said of its row."""
    try:
        return value_of(row, column)
    except DataError as exc:
        way_out = column.remedy(_MEND) if isinstance(row, Mapping) else _MEND
        raise RowError(number, str(exc), way_out) from None
    except Exception as exc:  # the row is an object of the user's, whose own code may fail
        problem = f"field {column.path!r} raised {told(exc)}"
        raise RowError(number, problem, _MEND) from exc
