"""Arrow values as Python values.

Numbers stay NumPy scalars of their own type, timestamps and dates become datetime64, lists of
numbers read-only NumPy arrays, nulls None; everything else becomes plain Python objects. A column
takes a tenth of the time that its values take one by one, or less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_FIRST_DAY, _LAST_DAY = -719162, 2932896  # that Python's dates have, counted from 1970


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


def python_values(array: pa.Array) -> list[Any]:
    """Convert a column; each value as ``python_value`` gives it, and shared with no other.

    Raises:
        pa.ArrowException: a column of this type can only be converted value by value.
        UnicodeDecodeError: a text is not UTF-8.

    >>> python_values(pa.array([3, None], pa.int16()))
    [np.int16(3), None]
    """
    dtype = array.type
    if isinstance(array, pa.ExtensionArray):
        return python_values(array.storage)
    if pa.types.is_dictionary(dtype):
        return python_values(array.dictionary_decode())
    if _is_number(dtype):
        filled = array.fill_null(False if pa.types.is_boolean(dtype) else 0)
        return _with_nulls(list(filled.to_numpy(zero_copy_only=False)), array)
    if pa.types.is_timestamp(dtype):
        ticks = array.view(pa.int64()).fill_null(0).to_numpy()
        return _with_nulls(list(ticks.view(f"M8[{dtype.unit}]")), array)
    if pa.types.is_date32(dtype):
        days = array.view(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
        if len(days) and int(days.min()) >= _FIRST_DAY and int(days.max()) <= _LAST_DAY:
            return _with_nulls(list(days.view("M8[D]")), array)
    if _is_number_list(dtype):
        return _number_lists(array)
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return array.to_numpy(zero_copy_only=False).tolist()
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        return array.to_numpy(zero_copy_only=False).tolist()
    return [python_value(scalar) for scalar in array]


def _with_nulls(values: list[Any], array: pa.Array) -> list[Any]:
    if array.null_count:
        for place in np.flatnonzero(array.is_null()).tolist():
            values[place] = None
    return values


def _number_lists(array: pa.Array) -> list[Any]:
    """Copy each list into an array of its own; those that hold nulls are converted one by one."""
    flat = array.flatten()  # leaves out what lies under null lists
    lengths = array.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    ends = np.cumsum(lengths)
    filled = flat.fill_null(False if pa.types.is_boolean(flat.type) else 0)
    numbers = filled.to_numpy(zero_copy_only=False)
    made: list[Any] = [
        _own(numbers[stop - length : stop])
        for stop, length in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]
    if flat.null_count:
        holes = np.flatnonzero(flat.is_null())
        for place in np.unique(np.searchsorted(ends, holes, side="right")).tolist():
            made[place] = python_value(array[place])
    return _with_nulls(made, array)


def _own(numbers: NDArray[Any]) -> NDArray[Any]:
    own = numbers.copy()
    own.flags.writeable = False
    return own


def _is_number(dtype: pa.DataType) -> bool:
    return pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_boolean(dtype)


def _is_number_list(dtype: pa.DataType) -> bool:
    return (
        pa.types.is_list(dtype)
        or pa.types.is_large_list(dtype)
        or pa.types.is_fixed_size_list(dtype)
    ) and _is_number(dtype.value_type)
