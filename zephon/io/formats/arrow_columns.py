"""Arrow columns of any type that files hold, as the few types that plans read.

Text: string, large_string, string_view and dictionaries of them become ``TEXT``, as do bytes that
are UTF-8, which some writers have for text. Tokens: lists of
any integers become ``TOKENS``. Lists of numbers beside them become those of ``fields.NUMBERS``; a
value that would be changed by that is a fault of its row. Offsets are widened; characters and
values of the wanted type are shared with the column that came in. Checking that text is UTF-8 runs
at about 19 GB/s where it is ASCII.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.column_types import is_binary, is_text
from zephon.io.exact_cast import exact_cast, not_utf8
from zephon.io.exact_numbers import exactly
from zephon.io.exact_values import shown
from zephon.io.faults import NULLED, Faults, unknown_by
from zephon.io.fields import TEXT, Column
from zephon.io.list_kinds import field_kind
from zephon.io.offsets import offsets_of

_INT32_AND_NARROWER = tuple(map(pa.type_for_alias, ("i1", "i2", "i4", "u1", "u2")))


def kind_of_type(dtype: pa.DataType) -> str:
    """Name the kind (see ``Field``) of an Arrow type.

    >>> kind_of_type(pa.list_(pa.uint16())), kind_of_type(pa.string()), kind_of_type(pa.int8())
    ('tokens', 'text', 'scalar')
    """
    dtype = _storage(dtype)
    if pa.types.is_null(dtype):
        return "unknown"
    values = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    if is_text(values):
        return "text"
    if is_binary(values):
        return "bytes"
    if _is_counted_list(dtype):
        return field_kind(numbers_of_type(dtype))
    if pa.types.is_primitive(dtype) or pa.types.is_decimal(dtype):
        return "scalar"
    return "other"


def numbers_of_type(dtype: pa.DataType) -> str | None:
    """Name the narrowest of ``fields.NUMBERS`` that holds lists of a type; None: no such lists.

    >>> numbers_of_type(pa.list_(pa.uint16())), numbers_of_type(pa.list_(pa.float16()))
    ('int32', 'float32')
    """
    dtype = _storage(dtype)
    if pa.types.is_null(dtype):
        return ""
    if not _is_counted_list(dtype):
        return None
    item = dtype.value_type
    if pa.types.is_null(item):
        return ""
    if pa.types.is_boolean(item):
        return "bool"
    if pa.types.is_floating(item):
        return "float64" if item == pa.float64() else "float32"
    if pa.types.is_integer(item):
        return "int32" if item in _INT32_AND_NARROWER else "int64"
    return None


def converted(column: pa.Array, wanted: Column) -> tuple[pa.Array, Faults]:
    """Convert one column to the type that a plan reads; bad rows become "" or [], or null.

    Args:
        column: text where text is wanted; where any type is, one that may become it
            (``column_types.may_become``); else lists of a type that the wanted kind can hold
            (``fields.can_hold``); or nulls alone.
        wanted: what the plan reads.
    """
    if wanted.kind == "any":
        return _of_any_type(column, wanted)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_null(column.type):
        rows = np.arange(len(column) if wanted.null != "empty" else 0)
        return empty_column(wanted, len(column)), _nulls(rows, wanted)
    return _text(column, wanted) if wanted.kind == "text" else _lists(column, wanted)


def converted_column(table: pa.Table, column: Column) -> tuple[pa.Array, Faults]:
    """Convert a column of a table, chunk by chunk, as ``converted`` does each."""
    chunks = _chunks(table, column.path)
    if len(chunks) == 1:
        return converted(chunks[0], column)
    parts = [converted(chunk, column) for chunk in chunks]
    if not parts:
        return empty_column(column, 0), Faults.of({}, column)
    starts = offsets_of([len(chunk) for chunk in chunks])
    rows = [bad.rows + start for (_, bad), start in zip(parts, starts, strict=False)]
    details = [detail for _, bad in parts for detail in bad.details]
    joined = pa.concat_arrays([array for array, _ in parts])
    return joined, Faults(np.concatenate(rows), details, unknown_by(column))


def _chunks(table: pa.Table, path: str) -> list[pa.Array]:
    if path in table.column_names:
        return table.column(path).chunks
    first, *inner = path.split(".")
    chunks: list[pa.Array] = table.column(first).chunks
    for name in inner:  # flatten() gives children the nulls of their parent
        chunks = [chunk.flatten()[chunk.type.get_field_index(name)] for chunk in chunks]
    return chunks


def empty_column(wanted: Column, rows: int) -> pa.Array:
    """Make a column of empty values: "" or []; nulls where any type is wanted."""
    if wanted.kind == "any":
        return pa.nulls(rows, wanted.type)
    if wanted.kind == "text":
        return pa.repeat(pa.scalar("", TEXT), rows)
    return number_lists(np.zeros(rows + 1, np.int64), pa.array([], wanted.type.value_type))


def number_lists(offsets: NDArray[np.int64], values: pa.Array) -> pa.LargeListArray:
    """Join offsets, shape [rows + 1], and values to a column of lists; shares both."""
    return pa.LargeListArray.from_arrays(pa.array(offsets), values, type=pa.large_list(values.type))


def _of_any_type(column: pa.Array, wanted: Column) -> tuple[pa.Array, Faults]:
    made, bad = exact_cast(column, wanted.type)
    problems = {row: _said(wanted, _got(column, row)) for row in bad.tolist()}
    return made, Faults.of(problems, wanted)


def _got(column: pa.Array, row: int) -> str:
    try:
        return f"got {shown(column[row].as_py())}"
    except UnicodeDecodeError:
        return "got bytes that are not UTF-8"
    except (ValueError, OverflowError):
        return f"got one of type {column.type} that Python has no value for"


def _text(column: pa.Array, wanted: Column) -> tuple[pa.Array, Faults]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_binary(column.type):  # cast as text, one that is not would be an error of all
        column = column.cast(pa.large_binary()).view(TEXT)
    text = column if column.type == TEXT else column.cast(TEXT)
    problems: dict[int, str] = {}
    if text.null_count:
        nulls = np.flatnonzero(text.is_null().to_numpy(zero_copy_only=False))
        if wanted.null != "empty":
            problems = dict.fromkeys(nulls.tolist(), _null(wanted))
        text = text.fill_null("")
    raw = text.view(pa.large_binary())
    broken = not_utf8(raw)
    if broken:
        problems |= dict.fromkeys(broken, _said(wanted, "got bytes that are not UTF-8"))
        picks = np.arange(len(raw))
        picks[broken] = len(raw)  # the empty text after the last row
        text = pa.concat_arrays([raw, pa.array([b""], pa.large_binary())]).take(pa.array(picks))
        text = text.cast(TEXT)
    return text, Faults.of(problems, wanted)


def _lists(column: pa.Array, wanted: Column) -> tuple[pa.Array, Faults]:
    if column.type == wanted.type and not column.null_count and not column.values.null_count:
        return column, Faults.of({}, wanted)
    problems: dict[int, str] = {}
    values = column.flatten()  # leaves out what lies under null lists
    target = wanted.type.value_type
    if pa.types.is_null(values.type):
        values = values.cast(target)
    lengths = np.zeros(len(column), np.int64)
    if column.null_count:
        here = column.is_valid().to_numpy(zero_copy_only=False)
        lengths[here] = column.value_lengths().drop_null().to_numpy()
        nulls = np.flatnonzero(~here).tolist()
        problems = dict.fromkeys(nulls, _said(wanted, "got null"))
    elif len(column):
        lengths = column.value_lengths().to_numpy().astype(np.int64)
    offsets = offsets_of(lengths)
    if values.null_count:
        missing = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
        rows = np.unique(np.searchsorted(offsets, missing, side="right") - 1).tolist()
        problems |= dict.fromkeys(rows, _said(wanted, "got a list that holds null"))
        values = values.fill_null(pa.scalar(0).cast(values.type))
    if values.type != target:
        values, odd = _in_type(values, wanted)
        for place, value in reversed(odd):  # backwards: the first of a row is named
            row = int(np.searchsorted(offsets, place, side="right")) - 1
            allowance = wanted.allowance if isinstance(value, float | np.floating) else ""
            problems[row] = _said(wanted, f"got {value}{allowance}")
    return number_lists(offsets, values), Faults.of(problems, wanted)


def _in_type(values: pa.Array, wanted: Column) -> tuple[pa.Array, list[tuple[int, object]]]:
    """Convert values, and list those that the type cannot hold, each with its position."""
    target = wanted.type.value_type
    if pa.types.is_integer(target):  # and from booleans, which become 0 and 1
        try:
            return values.cast(target), []
        except pa.ArrowInvalid:
            pass
    found = values.to_numpy(zero_copy_only=False)
    made, wrong = exactly(found, wanted.dtype)
    return pa.array(made, target), [(place, found[place]) for place in wrong.tolist()]


def _said(wanted: Column, got: str) -> str:
    said = f": field {wanted.path!r} must be {wanted.wanted}, {got}"
    return f"{said}; {wanted.remedy('mend or remove the row')}"


def _null(wanted: Column) -> str:
    return NULLED if wanted.null == "drop" else _said(wanted, f"got null{wanted.null_allowance}")


def _nulls(rows: NDArray[np.int64], wanted: Column) -> Faults:
    return Faults(rows, [_null(wanted)] * len(rows))


def _storage(dtype: pa.DataType) -> pa.DataType:
    return dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype


def _is_counted_list(dtype: pa.DataType) -> bool:
    return (
        pa.types.is_list(dtype)
        or pa.types.is_large_list(dtype)
        or pa.types.is_fixed_size_list(dtype)
        or _is_view(dtype)
    )


def _is_view(dtype: pa.DataType) -> bool:
    return pa.types.is_list_view(dtype) or pa.types.is_large_list_view(dtype)
