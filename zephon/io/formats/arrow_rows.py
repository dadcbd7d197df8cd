"""Rows of an Arrow table as Python values.

Numbers stay NumPy scalars of their own type, timestamps and dates become datetime64, lists of
numbers read-only NumPy arrays, nulls None; everything else becomes plain Python objects.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from zephon.io.payload import RowSource


class TableRows(RowSource):
    """The rows of one table; holds the table, copies a row at a time."""

    __slots__ = ("_columns", "_names")

    def __init__(self, table: pa.Table) -> None:
        self._names: tuple[str, ...] = tuple(table.column_names)
        self._columns: tuple[pa.ChunkedArray, ...] = tuple(table.columns)

    def row(self, index: int) -> dict[str, Any]:
        """Make one row: a dict of every column."""
        values = (python_value(column[index]) for column in self._columns)
        return dict(zip(self._names, values, strict=True))


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
        return dtype.to_pandas_dtype()(scalar.as_py())
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
