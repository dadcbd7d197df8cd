"""Arrow types of columns: the plain form of each, how two join, and which may become which.

A plain type is one of a few that hold the same values: every text is ``large_string``, every list
``large_list``, dictionaries and extensions are what they store. Joining goes upwards only, and it
does not matter in which order: the same types always give the same one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import pyarrow as pa

_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
_INTEGER_DIGITS = 20  # of any 64-bit integer
_UNITS = ("s", "ms", "us", "ns")


@functools.lru_cache(maxsize=4096)  # the same types come back for each shard and row group
def plain(dtype: pa.DataType) -> pa.DataType:
    """Give the plain type that holds the values of a type; others stay as they are.

    >>> plain(pa.list_(pa.dictionary(pa.int8(), pa.string())))
    LargeListType(large_list<item: large_string>)
    """
    types = pa.types
    if isinstance(dtype, pa.BaseExtensionType):
        return plain(dtype.storage_type)
    if types.is_dictionary(dtype) or types.is_run_end_encoded(dtype):
        return plain(dtype.value_type)
    if is_text(dtype):
        return pa.large_string()
    if is_binary(dtype):
        return pa.large_binary()
    if is_list(dtype):
        return pa.large_list(plain(dtype.value_type))
    if types.is_struct(dtype):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in dtype])
    if types.is_decimal(dtype) and not types.is_decimal256(dtype):
        return pa.decimal128(dtype.precision, dtype.scale)
    return dtype


def joined(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Give the narrowest plain type for the values of two types; None if there is none.

    Integers beside floats are float64, and unsigned 64-bit integers beside signed ones int64: a
    value that these do not hold is bad where it is read. A number is never text, nor a boolean a
    number.

    >>> joined(pa.int32(), pa.int64()), joined(pa.int8(), pa.string())
    (DataType(int64), None)
    """
    first, second = plain(first), plain(second)
    types = pa.types
    if first == second or types.is_null(second):
        return first
    if types.is_null(first):
        return second
    if is_list(first) and is_list(second):
        values = joined(first.value_type, second.value_type)
        return None if values is None else pa.large_list(values)
    if types.is_struct(first) and types.is_struct(second):
        return _joined_structs(first, second)
    if is_number(first) and is_number(second):
        return _joined_numbers(first, second)
    if types.is_date(first) and types.is_date(second):
        return pa.date64()
    if types.is_time(first) and types.is_time(second):
        unit = _finer(first, second)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    if types.is_duration(first) and types.is_duration(second):
        return pa.duration(_finer(first, second))
    if types.is_timestamp(first) and types.is_timestamp(second):
        if (first.tz is None) != (second.tz is None):
            return None
        zone = first.tz if first.tz == second.tz else "UTC"
        return pa.timestamp(_finer(first, second), zone)
    return None


def joined_all(dtypes: Iterable[pa.DataType]) -> pa.DataType | None:
    """Give the narrowest plain type for the values of one or more types; None if there is none."""
    found: pa.DataType | None = None
    for dtype in dtypes:
        found = plain(dtype) if found is None else joined(found, dtype)
        if found is None:
            return None
    return found


def may_become(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Say whether values of a type may be read in another; each of them is looked at then.

    Timestamps without a time zone are taken as those of UTC, which nobody does who is not told to.

    >>> may_become(pa.float64(), pa.int8()), may_become(pa.int8(), pa.large_string())
    (True, False)
    """
    types = pa.types
    if found == wanted or types.is_null(found):
        return True
    found = plain(found)
    if is_list(found) and is_list(wanted):
        return may_become(found.value_type, wanted.value_type)
    if types.is_struct(found) and types.is_struct(wanted):
        inner = {field.name: field.type for field in wanted}
        return len(inner) == wanted.num_fields and all(
            field.name in inner and may_become(field.type, inner[field.name]) for field in found
        )
    if is_number(found) and is_number(wanted):
        return types.is_decimal(found) + types.is_decimal(wanted) != 1 or not (
            types.is_floating(found) or types.is_floating(wanted)
        )
    pairs = (types.is_timestamp, types.is_date, types.is_time, types.is_duration, _is_characters)
    return any(known(found) and known(wanted) for known in pairs) or found == plain(wanted)


def holds_text(dtype: pa.DataType) -> bool:
    """Say whether values of a type may hold text, themselves or inside."""
    if is_list(dtype):
        return holds_text(dtype.value_type)
    if pa.types.is_struct(dtype):
        return any(holds_text(field.type) for field in dtype)
    return is_text(dtype)


def is_text(dtype: pa.DataType) -> bool:
    """Say whether a type is one of text, however it is laid out."""
    types = pa.types
    return types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)


def is_binary(dtype: pa.DataType) -> bool:
    """Say whether a type is one of bytes, however they are laid out."""
    types = pa.types
    return (
        types.is_binary(dtype)
        or types.is_large_binary(dtype)
        or types.is_binary_view(dtype)
        or types.is_fixed_size_binary(dtype)
    )


def is_list(dtype: pa.DataType) -> bool:
    """Say whether a type is one of lists, however they are laid out."""
    types = pa.types
    return (
        types.is_list(dtype)
        or types.is_large_list(dtype)
        or types.is_fixed_size_list(dtype)
        or types.is_list_view(dtype)
        or types.is_large_list_view(dtype)
    )


def is_number(dtype: pa.DataType) -> bool:
    """Say whether a type is one of numbers; booleans are none."""
    return pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)


def _is_characters(dtype: pa.DataType) -> bool:
    return is_text(dtype) or is_binary(dtype)


def _joined_numbers(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    types = pa.types
    decimals = [dtype for dtype in (first, second) if types.is_decimal(dtype)]
    floats = [dtype for dtype in (first, second) if types.is_floating(dtype)]
    if decimals:
        return None if floats else _joined_decimals(decimals, integers=len(decimals) == 1)
    if len(floats) == 1:
        return pa.float64()
    if floats:
        return max(floats, key=lambda dtype: dtype.bit_width)
    signed = [dtype.bit_width for dtype in (first, second) if types.is_signed_integer(dtype)]
    unsigned = [dtype.bit_width for dtype in (first, second) if not types.is_signed_integer(dtype)]
    if not signed:
        return _UNSIGNED[max(unsigned)]
    return _SIGNED[min(64, max(*signed, *(2 * width for width in unsigned), 8))]


def _joined_decimals(decimals: list[pa.DataType], *, integers: bool) -> pa.DataType | None:
    scale = max(dtype.scale for dtype in decimals)
    whole = max(dtype.precision - dtype.scale for dtype in decimals)
    precision = scale + (max(whole, _INTEGER_DIGITS) if integers else whole)
    if precision > 76:
        return None
    wide = precision > 38 or any(pa.types.is_decimal256(dtype) for dtype in decimals)
    return pa.decimal256(precision, scale) if wide else pa.decimal128(precision, scale)


def _joined_structs(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Join field by field; where the fields differ, they stand in order of their names."""
    names = [field.name for field in first], [field.name for field in second]
    if any(len(set(each)) < len(each) for each in names):
        return None
    order = names[0] if names[0] == names[1] else sorted({*names[0], *names[1]})
    fields: list[pa.Field] = []
    for name in order:
        each = [
            dtype.field(name).type
            for dtype, known in ((first, names[0]), (second, names[1]))
            if name in known
        ]
        found = joined_all(each)
        if found is None:
            return None
        fields.append(pa.field(name, found))
    return pa.struct(fields)


def _finer(first: pa.DataType, second: pa.DataType) -> str:
    return max(first.unit, second.unit, key=_UNITS.index)
