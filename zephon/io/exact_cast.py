"""Arrow columns in another type, value by value the same; which rows that cannot be.

Where nothing needs to change, what comes out shares the memory of what came in. Arrow's own casts
refuse most values that they would change, but they round floats, and let bytes pass as text: both
are looked at here. Rows that cannot be are found by halves, so few of them cost little.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.column_types import holds_text, is_list, is_text, may_become
from zephon.io.exact_numbers import exactly
from zephon.io.fields import TEXT
from zephon.io.offsets import offsets_of

_NONE = np.empty(0, np.int64)

Cast = tuple[pa.Array, NDArray[np.int64]]


def exact_cast(column: pa.Array, wanted: pa.DataType) -> Cast:
    """Convert a column; nulls stay.

    Args:
        column: of a type that may become the wanted one (``column_types.may_become``).
        wanted: any Arrow type.

    Returns:
        the column, null where a value cannot be, and the positions of those rows, ascending.

    Raises:
        TypeError: the column is of a type that may not.
    """
    if not may_become(column.type, wanted):
        raise TypeError(f"values of type {column.type} cannot be read as {wanted}")
    column = _unwrapped(column)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), wanted), _NONE
    if column.type == wanted and not holds_text(wanted):
        return column, _NONE
    if is_list(wanted):
        return _lists(column, wanted)
    if pa.types.is_struct(wanted) and wanted.num_fields:
        return _structs(column, wanted)
    if is_text(wanted):
        return _text(column, wanted)
    source, types = column.type, pa.types
    if types.is_floating(wanted) and (types.is_integer(source) or types.is_floating(source)):
        return _floats(column, wanted)
    return _halved(column, wanted)


def not_utf8(raw: pa.Array) -> list[int]:
    """Find the values of a column of bytes that are not UTF-8; nulls are fine."""
    return _refused(raw, TEXT, 0, len(raw))


def nulled(column: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """Copy a column with nulls at some rows."""
    if not len(rows):
        return column
    kept = np.zeros(len(column), bool)
    kept[rows] = True
    return column.take(pa.array(np.arange(len(column)), mask=kept))


def _unwrapped(column: pa.Array) -> pa.Array:
    while True:
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        elif pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        elif pa.types.is_run_end_encoded(column.type):
            import pyarrow.compute as pc  # late: it takes 30 ms to import, and few need it

            column = pc.call_function("run_end_decode", [column])
        else:
            return column


def _lists(column: pa.Array, wanted: pa.DataType) -> Cast:
    values = column.flatten()  # leaves out what lies under null lists
    mask = _nulls(column)
    lengths = np.zeros(len(column), np.int64)
    lengths[~mask] = _lengths(column)
    offsets = offsets_of(lengths)
    values, bad = exact_cast(values, wanted.value_type)
    rows = np.unique(np.searchsorted(offsets, bad, side="right") - 1)
    mask[rows] = True
    plain_list = pa.LargeListArray.from_arrays(
        pa.array(offsets),
        values,
        type=pa.large_list(wanted.value_field),
        mask=pa.array(mask) if mask.any() else None,
    )
    return plain_list if plain_list.type == wanted else plain_list.cast(wanted), rows


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    found = column.value_lengths()
    found = found.drop_null() if found.null_count else found
    return found.to_numpy().astype(np.int64)


def _structs(column: pa.Array, wanted: pa.DataType) -> Cast:
    there = {field.name: place for place, field in enumerate(column.type)}
    inner = column.flatten()  # gives fields the nulls of their struct
    arrays: list[pa.Array] = []
    found: list[NDArray[np.int64]] = [_NONE]
    for field in wanted:
        if field.name in there:
            array, bad = exact_cast(inner[there[field.name]], field.type)
            found.append(bad)
        else:
            array = pa.nulls(len(column), field.type)
        arrays.append(array)
    rows, mask = np.unique(np.concatenate(found)), _nulls(column)
    mask[rows] = True
    made = pa.StructArray.from_arrays(arrays, fields=list(wanted), mask=pa.array(mask))
    return made, rows


def _text(column: pa.Array, wanted: pa.DataType) -> Cast:
    raw = column.view(pa.large_binary()) if column.type == TEXT else column.cast(pa.large_binary())
    bad = np.array(not_utf8(raw), np.int64)
    text = nulled(raw, bad).view(TEXT)
    return text if wanted == TEXT else text.cast(wanted), bad


def _floats(column: pa.Array, wanted: pa.DataType) -> Cast:
    mask = _nulls(column)
    filled = column.fill_null(pa.scalar(0).cast(column.type)) if mask.any() else column
    made, bad = exactly(filled.to_numpy(zero_copy_only=False), np.dtype(wanted.to_pandas_dtype()))
    mask[bad] = True
    return pa.array(made, wanted, mask=mask), bad


def _halved(column: pa.Array, wanted: pa.DataType) -> Cast:
    try:
        return column.cast(wanted), _NONE
    except pa.ArrowInvalid:
        bad = np.array(_refused(column, wanted, 0, len(column)), np.int64)
        return nulled(column, bad).cast(wanted), bad


def _refused(column: pa.Array, wanted: pa.DataType, start: int, stop: int) -> list[int]:
    """Find the rows that a cast refuses, by halves: few are bad, so most halves pass whole."""
    try:
        column.slice(start, stop - start).cast(wanted)
    except pa.ArrowInvalid:
        if stop - start == 1:
            return [start]
        middle = (start + stop) // 2
        return _refused(column, wanted, start, middle) + _refused(column, wanted, middle, stop)
    return []


def _nulls(column: pa.Array) -> NDArray[np.bool_]:
    """Say which rows are null; new memory."""
    if not column.null_count:
        return np.zeros(len(column), bool)
    return np.array(column.is_null().to_numpy(zero_copy_only=False))
