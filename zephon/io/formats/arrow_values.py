"""Arrow values as Python values.

Numbers stay NumPy scalars of their own type, timestamps and dates become datetime64, lists of
numbers read-only NumPy arrays, nulls None; everything else becomes plain Python objects. A column
takes a tenth of the time that its values take one by one, or less.

Durations and times of day, and timestamps within lists and structs, become what ``datetime`` has.
That counts microseconds: one with a nanosecond part is refused, never rounded.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_FIRST_DAY, _LAST_DAY = -719162, 2932896  # that Python's dates have, counted from 1970
_NUMBERS = {  # what holds a number of an Arrow type, by its id: to ask types for it takes longer
    pa.bool_().id: np.bool_,
    pa.int8().id: np.int8,
    pa.int16().id: np.int16,
    pa.int32().id: np.int32,
    pa.int64().id: np.int64,
    pa.uint8().id: np.uint8,
    pa.uint16().id: np.uint16,
    pa.uint32().id: np.uint32,
    pa.uint64().id: np.uint64,
    pa.float16().id: np.float16,
    pa.float32().id: np.float32,
    pa.float64().id: np.float64,
}
_PLAIN = {pa.string().id, pa.large_string().id, pa.binary().id, pa.large_binary().id}


def python_value(scalar: pa.Scalar) -> Any:
    """Convert one Arrow value; nothing in the result shares memory with it.

    Raises:
        UnicodeDecodeError: a text is not UTF-8.
        ValueError, OverflowError: Python has no such value; see ``unheld``.

    >>> python_value(pa.scalar(3, pa.int16())), python_value(pa.scalar("a"))
    (np.int16(3), 'a')
    """
    if not scalar.is_valid:
        return None
    dtype = scalar.type
    number = _NUMBERS.get(dtype.id)
    if number is not None:
        return number(scalar.as_py())
    if dtype.id in _PLAIN:
        return scalar.as_py()
    if pa.types.is_dictionary(dtype):
        return python_value(scalar.value)
    if isinstance(dtype, pa.BaseExtensionType):
        return python_value(scalar.value)
    if pa.types.is_timestamp(dtype):
        return np.datetime64(scalar.value, dtype.unit)
    if pa.types.is_date(dtype):
        return np.datetime64(scalar.as_py(), "D")
    if _is_number_list(dtype) and not scalar.values.null_count:
        array = scalar.values.to_numpy(zero_copy_only=False).copy()
        array.flags.writeable = False
        return array
    return _of_nanoseconds(scalar) if _counts_nanoseconds(dtype) else scalar.as_py()


def unheld(name: str, scalar: pa.Scalar, problem: Exception) -> str:
    """Say, as the end of a message, that Python has no such value, and what to do.

    Args:
        name: of its field.
        scalar: the value.
        problem: what ``python_value`` raised.
    """
    reason = " ".join(str(problem).split())
    return (
        f"field {name!r} must hold what Python has a value for, as datetime has whole "
        f"microseconds, got {scalar.type} ({reason:.120}); round or cast the field in "
        "with_columns, drop it, or mend the row"
    )


def python_values(array: pa.Array) -> list[Any]:
    """Convert a column; each value as ``python_value`` gives it, and shared with no other.

    Raises:
        pa.ArrowException: a column of this type can only be converted value by value.
        UnicodeDecodeError, ValueError, OverflowError: as ``python_value``.

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


@functools.cache
def _counts_nanoseconds(dtype: pa.DataType) -> bool:
    """Say whether a type that ``datetime`` is to hold counts nanoseconds, at any depth."""
    if pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype) or pa.types.is_time64(dtype):
        return dtype.unit == "ns"
    return any(_counts_nanoseconds(dtype.field(place).type) for place in range(dtype.num_fields))


def _of_nanoseconds(scalar: pa.Scalar) -> Any:
    """Convert a value of such a type: as all others, whether Pandas is installed or not."""
    dtype = scalar.type
    if not scalar.is_valid or not _counts_nanoseconds(dtype):
        return scalar.as_py()
    if pa.types.is_struct(dtype):
        names = [field.name for field in dtype]
        if len(set(names)) == len(names):
            return {name: _of_nanoseconds(scalar[name]) for name in names}
    if pa.types.is_map(dtype):
        keys, items = dtype.key_field.name, dtype.item_field.name
        return [(_of_nanoseconds(e[keys]), _of_nanoseconds(e[items])) for e in scalar.values]
    if hasattr(scalar, "values") and not pa.types.is_struct(dtype):
        return [_of_nanoseconds(each) for each in scalar.values]
    if pa.types.is_timestamp(dtype):
        return scalar.cast(pa.timestamp("us", dtype.tz)).as_py()
    if pa.types.is_duration(dtype):
        return scalar.cast(pa.duration("us")).as_py()
    if pa.types.is_time64(dtype):
        return scalar.cast(pa.time64("us")).as_py()
    return scalar.as_py()


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
        or pa.types.is_list_view(dtype)
        or pa.types.is_large_list_view(dtype)
    ) and _is_number(dtype.value_type)
