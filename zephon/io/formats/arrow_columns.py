"""Arrow columns of any type that files hold, as the two types that plans read.

Text: string, large_string, string_view and dictionaries of them become ``TEXT``. Tokens: lists of
any integers become ``TOKENS``. Offsets are widened; characters and int32 values are shared with the
column that came in. Checking that text is UTF-8 runs at about 19 GB/s where it is ASCII.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.fields import TEXT, TOKENS, Column
from zephon.io.formats.format import Faults
from zephon.io.offsets import offsets_of

_INT32 = np.iinfo(np.int32)


def kind_of_type(dtype: pa.DataType) -> str:
    """Name the kind (see ``Field``) of an Arrow type.

    >>> kind_of_type(pa.list_(pa.uint16())), kind_of_type(pa.string()), kind_of_type(pa.int8())
    ('tokens', 'text', 'scalar')
    """
    dtype = _storage(dtype)
    if pa.types.is_null(dtype):
        return "unknown"
    if _is_text(dtype):
        return "text"
    if _is_list(dtype):
        item = dtype.value_type
        if pa.types.is_integer(item):
            return "tokens"
        if pa.types.is_floating(item) or pa.types.is_boolean(item):
            return "numbers"
        return "unknown" if pa.types.is_null(item) else "other"
    if pa.types.is_primitive(dtype) or pa.types.is_decimal(dtype):
        return "scalar"
    return "other"


def converted(column: pa.Array, wanted: Column) -> tuple[pa.Array, Faults]:
    """Convert one column to the type that a plan reads; bad rows become "" or [].

    Args:
        column: any type whose ``kind_of_type`` is the wanted kind or "unknown".
        wanted: what the plan reads.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_null(column.type):
        rows = np.arange(len(column))
        return empty_column(wanted, len(column)), _faults(rows, f"{_must_be(wanted)}, got null")
    return _text(column, wanted) if wanted.kind == "text" else _tokens(column, wanted)


def empty_column(wanted: Column, rows: int) -> pa.Array:
    """Make a column of empty values: "" or []."""
    if wanted.kind == "text":
        return pa.repeat(pa.scalar("", TEXT), rows)
    return token_lists(np.zeros(rows + 1, np.int64), pa.array([], pa.int32()))


def token_lists(offsets: NDArray[np.int64], values: pa.Array) -> pa.LargeListArray:
    """Join offsets, shape [rows + 1], and int32 values to a column; shares both."""
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), values)
    return lists if lists.type == TOKENS else lists.cast(TOKENS)


def _text(column: pa.Array, wanted: Column) -> tuple[pa.Array, Faults]:
    text = column if column.type == TEXT else column.cast(TEXT)
    problems: dict[int, str] = {}
    if text.null_count:
        nulls = np.flatnonzero(text.is_null().to_numpy(zero_copy_only=False))
        problems = dict.fromkeys(nulls.tolist(), f": {_must_be(wanted)}, got null{_REMEDY}")
        text = text.fill_null("")
    raw = text.view(pa.large_binary())
    if not _is_utf8(raw):
        broken = _not_utf8(raw, 0, len(raw))
        detail = f": {_must_be(wanted)}, got bytes that are not UTF-8{_REMEDY}"
        problems |= dict.fromkeys(broken, detail)
        picks = np.arange(len(raw))
        picks[broken] = len(raw)  # the empty text after the last row
        text = pa.concat_arrays([raw, pa.array([b""], pa.large_binary())]).take(pa.array(picks))
        text = text.cast(TEXT)
    return text, Faults.of(problems)


def _tokens(column: pa.Array, wanted: Column) -> tuple[pa.Array, Faults]:
    if column.type == TOKENS and not column.null_count and not column.values.null_count:
        return column, Faults.of({})
    problems: dict[int, str] = {}
    values = column.flatten()  # leaves out what lies under null lists
    if pa.types.is_null(values.type):
        values = values.cast(pa.int32())
    lengths = np.zeros(len(column), np.int64)
    if column.null_count:
        here = column.is_valid().to_numpy(zero_copy_only=False)
        lengths[here] = column.value_lengths().drop_null().to_numpy()
        nulls = np.flatnonzero(~here).tolist()
        problems = dict.fromkeys(nulls, f": {_must_be(wanted)}, got null{_REMEDY}")
    elif len(column):
        lengths = column.value_lengths().to_numpy().astype(np.int64)
    offsets = offsets_of(lengths)
    if values.null_count:
        missing = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
        rows = np.unique(np.searchsorted(offsets, missing, side="right") - 1).tolist()
        detail = f": {_must_be(wanted)}, got a list that holds null{_REMEDY}"
        problems |= dict.fromkeys(rows, detail)
        values = values.fill_null(0)
    if values.type != pa.int32():
        try:
            values = values.cast(pa.int32())
        except pa.ArrowInvalid:
            values, wide = _narrowed(values)
            for place in wide[::-1].tolist():  # backwards: the first of a row is named
                row = int(np.searchsorted(offsets, place, side="right")) - 1
                problems[row] = f": {_must_be(wanted)}, got {values[place]}{_REMEDY}"
            least = max(_INT32.min, int(np.iinfo(values.dtype).min))
            values = pa.array(np.clip(values, least, _INT32.max).astype(np.int32))
    return token_lists(offsets, values), Faults.of(problems)


def _narrowed(values: pa.Array) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    """Give integers as NumPy holds them, and the positions of those that int32 cannot hold."""
    wide = values.to_numpy()
    return wide, np.flatnonzero((wide < _INT32.min) | (wide > _INT32.max))


def _is_utf8(raw: pa.Array) -> bool:
    try:
        raw.cast(TEXT)  # checks, and shares the bytes
    except pa.ArrowInvalid:
        return False
    return True


def _not_utf8(raw: pa.Array, start: int, stop: int) -> list[int]:
    """Find the rows that are not UTF-8, by halves: few are bad, so most halves pass whole."""
    if _is_utf8(raw.slice(start, stop - start)):
        return []
    if stop - start == 1:
        return [start]
    middle = (start + stop) // 2
    return _not_utf8(raw, start, middle) + _not_utf8(raw, middle, stop)


_REMEDY = "; mend or remove the row"


def _must_be(wanted: Column) -> str:
    return f"field {wanted.path!r} must be {wanted.wanted}"


def _faults(rows: NDArray[np.int64], problem: str) -> Faults:
    return Faults(rows, [f": {problem}{_REMEDY}"] * len(rows))


def _storage(dtype: pa.DataType) -> pa.DataType:
    return dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype


def _is_text(dtype: pa.DataType) -> bool:
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return (
        pa.types.is_string(dtype)
        or pa.types.is_large_string(dtype)
        or pa.types.is_string_view(dtype)
    )


def _is_list(dtype: pa.DataType) -> bool:
    return (
        pa.types.is_list(dtype)
        or pa.types.is_large_list(dtype)
        or pa.types.is_fixed_size_list(dtype)
    )
