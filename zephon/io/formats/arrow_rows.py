"""Rows of an Arrow table as Python values.

Numbers stay NumPy scalars of their own type, timestamps and dates become datetime64, lists of
numbers read-only NumPy arrays, nulls None; everything else becomes plain Python objects.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from zephon.errors import DataError
from zephon.io.payload import RowSource


class TableRows(RowSource):
    """The rows of one table; holds the table, copies a row at a time.

    place: dataset and shard, for messages. first_row: the table's first row in its shard.
    """

    __slots__ = ("_columns", "_first_row", "_names", "_place")

    def __init__(self, table: pa.Table, place: str = "a table", first_row: int = 0) -> None:
        self._place = place
        self._first_row = first_row
        self._names: tuple[str, ...] = tuple(table.column_names)
        self._columns: tuple[pa.ChunkedArray, ...] = tuple(table.columns)

    def row(self, index: int) -> dict[str, Any]:
        """Make one row: a dict of every column.

        Raises:
            DataError: a text is not UTF-8; names dataset, shard, row and field.
        """
        return {
            name: self._value(name, column[index], index)
            for name, column in zip(self._names, self._columns, strict=True)
        }

    def _value(self, name: str, scalar: pa.Scalar, index: int) -> Any:
        try:
            return python_value(scalar)
        except UnicodeDecodeError as exc:
            raise DataError(
                f"{self._place}, row {self._first_row + index}: field {name!r} must be UTF-8 "
                f"text, got bytes that are not ({exc.reason}); mend or remove the row"
            ) from exc


def python_value(scalar: pa.Scalar) -> Any:
    """Convert one Arrow value; nothing in the result shares memory with it.

    >>> python_value(pa.scalar(3, pa.int16())), python_value(pa.scalar("a"))
    (np.int16(3), 'a')
    """
    if not scalar.is_valid:
        return None
    dtype = scalar.type
    if pa.types.is_dictionary(dtype):
        return python_value(scalar.value)
    if isinstance(dtype, pa.BaseExtensionType):
        return python_value(scalar.value)
    if _is_number(dtype):
        return pa.array([scalar.as_py()], dtype).to_numpy(zero_copy_only=False)[0]
    if pa.types.is_timestamp(dtype):
        return np.datetime64(scalar.value, dtype.unit)
    if pa.types.is_date(dtype):
        return np.datetime64(scalar.as_py(), "D")
    if _is_number_list(dtype) and not scalar.values.null_count:
        array = scalar.values.to_numpy(zero_copy_only=False).copy()
        array.flags.writeable = False
        return array
    return scalar.as_py()


def _is_number(dtype: pa.DataType) -> bool:
    return pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_boolean(dtype)


def _is_number_list(dtype: pa.DataType) -> bool:
    return (
        pa.types.is_list(dtype)
        or pa.types.is_large_list(dtype)
        or pa.types.is_fixed_size_list(dtype)
    ) and _is_number(dtype.value_type)
