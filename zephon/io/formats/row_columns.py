"""Python rows as columns, value by value where there is no faster way; and copies of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pyarrow as pa

from zephon.errors import DataError
from zephon.io.exact_values import checked_column, exact_column
from zephon.io.faults import NULLED, Faults
from zephon.io.fields import TEXT, Column
from zephon.io.formats.arrow_columns import number_lists
from zephon.io.offsets import offsets_of
from zephon.io.values import raw_value_of, value_of


def column_of_rows(rows: Sequence[Any], column: Column, faults: list[Faults]) -> pa.Array:
    """Make the column that a plan reads of some rows.

    Args:
        rows: whatever the user or a format has as rows.
        column: what the plan reads.
        faults: takes up what is wrong with bad rows.
    """
    problems: dict[int, str] = {}
    if column.kind == "any":
        made = _of_any_type(rows, column, problems)
    else:
        made = (_texts if column.kind == "text" else _number_lists)(rows, column, problems)
    if problems:
        faults.append(Faults.of(problems, column))
    return made


def _of_any_type(rows: Sequence[Any], column: Column, problems: dict[int, str]) -> pa.Array:
    try:
        found = exact_column([raw_value_of(row, column) for row in rows], column.type)
    except Exception:  # whose row it is, and what is wrong with it, is said below
        found = None
    if found is not None:
        return found
    values: list[Any] = [None] * len(rows)
    _fill(values, rows, column, problems)
    return checked_column(values, column.type)


def _texts(rows: Sequence[Any], column: Column, problems: dict[int, str]) -> pa.Array:
    values = [""] * len(rows)
    _fill(values, rows, column, problems)
    return pa.array(values, TEXT)


def _number_lists(rows: Sequence[Any], column: Column, problems: dict[int, str]) -> pa.Array:
    values = [np.empty(0, column.dtype)] * len(rows)
    _fill(values, rows, column, problems)
    offsets = offsets_of([len(value) for value in values])
    joined = np.concatenate(values)
    if joined.dtype == np.bool_:
        joined = joined.view(np.uint8)
    return number_lists(offsets, pa.array(joined, column.type.value_type))


def _fill(values: list[Any], rows: Sequence[Any], column: Column, problems: dict[int, str]) -> None:
    """Put each row's value in its place; a row that has none is noted and keeps the empty value."""
    for index, row in enumerate(rows):
        try:
            values[index] = value_of(row, column)
        except DataError as exc:
            why = str(exc)
            problems[index] = why if why == NULLED else f": {why}; {_remedy(row, column)}"
        except Exception as exc:  # the row is an object of the user's, whose own code may fail
            reason = f"{type(exc).__name__}: {exc}"
            problems[index] = f": field {column.path!r} raised {reason}; mend the row"


def _remedy(row: object, column: Column) -> str:
    mend = "mend or remove the row"
    return column.remedy(mend) if isinstance(row, Mapping) else mend


def copied(row: Any) -> Any:
    """Copy a row as ``deepcopy`` does; plain dicts of plain values many times faster."""
    if type(row) is not dict or set(map(type, row)) != {str}:
        return deepcopy(row)
    made = {}
    for name, value in row.items():
        kind = type(value)
        if kind in _UNCHANGEABLE:
            made[name] = value
        elif kind is list and set(map(type, value)) <= _UNCHANGEABLE:
            made[name] = list(value)
        else:  # what is inside may be shared between fields
            return deepcopy(row)
    return made


_UNCHANGEABLE = {str, bytes, int, float, bool, type(None)}
