"""What a Parquet footer says of the columns of a row group, where it can be relied on.

Wrong bounds lose rows without a word, so what is not sure is not said: bounds of types whose order
is disputed, of values that reading converts in any way but widening, that contradict each other or
the type, and of texts that may have been cut off. What Arrow itself distrusts (old writers, orders
that are not defined) it does not hand out. A text that is not UTF-8 goes unnoticed in a row group
that is skipped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from zephon.column_steps import Statistics
from zephon.io.fields import Column

_LONGEST_TEXT = 32  # bytes; writers that cut bounds off leave more
_WHOLE_BOUNDS = "parquet-cpp"  # the beginning of a writer's name: it leaves out what is too long
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())
_WHOLE_BITS = {pa.float32(): 16, pa.float64(): 32}  # integers so wide are the same as floats
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


def statistics_of(
    footer: pq.FileMetaData, groups: Sequence[int], schema: pa.Schema, columns: Sequence[Column]
) -> list[dict[str, Statistics]]:
    """Give the statistics of columns of kind "any", by path, of each of some row groups.

    A column is left out if one of its values may be a bad one: then rows must be read to find it.

    Args:
        footer: of the file.
        groups: which of its row groups.
        schema: of the file.
        columns: what is read; bounds are of their types.
    """
    leaves = _leaves(schema)
    found: list[dict[str, Statistics]] = [{} for _ in groups]
    told = [
        (about, into)
        for about, into in zip(map(footer.row_group, groups), found, strict=True)
        if about.num_columns == sum(leaves)
    ]
    for column in columns:
        places = schema.get_all_field_indices(column.path)
        if len(places) == 1:
            field, leaf = schema.field(places[0]), sum(leaves[: places[0]])
            if not _is_widening(field.type, column.type):
                continue
            read = _Leaf.of(footer, leaf, field)
            for about, into in told:
                into[column.path] = _statistics(about, read, column.type)
        elif not places and (column.named or column.path.split(".")[0] not in schema.names):
            for about, into in told:
                into[column.path] = Statistics(None, None, about.num_rows, about.num_rows)
    return found


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of a file, as far as all row groups have it in common.

    number: among the file's columns. null: it has no values. flat: it has one value a row, or null.
    writer: the name of what wrote the file. physical, logical: its types, as Parquet names them.
    signed: of integers; unit: of timestamps.
    """

    number: int
    null: bool
    flat: bool
    writer: str
    physical: str
    logical: str
    signed: bool
    unit: str | None

    @classmethod
    def of(cls, footer: pq.FileMetaData, number: int, field: pa.Field) -> _Leaf:
        described = footer.schema.column(number)
        flat = described.max_repetition_level == 0 and described.max_definition_level <= 1
        logical = described.logical_type
        about = json.loads(logical.to_json()) if logical.type in ("INT", "TIMESTAMP") else {}
        return cls(
            number=number,
            null=pa.types.is_null(field.type),
            flat=flat and not pa.types.is_nested(field.type) and described.path == field.name,
            writer=footer.created_by or "",
            physical=described.physical_type,
            logical=logical.type,
            signed=about.get("isSigned", True),
            unit=_UNITS.get(about.get("timeUnit", "")),
        )


def _leaves(schema: pa.Schema) -> list[int]:
    """Count the columns that a file has for each field."""
    return [_leaves_of(field.type) for field in schema]


def _leaves_of(dtype: pa.DataType) -> int:
    if isinstance(dtype, pa.BaseExtensionType):
        return _leaves_of(dtype.storage_type)
    if pa.types.is_dictionary(dtype) or not pa.types.is_nested(dtype):
        return 1
    return sum(_leaves_of(dtype.field(index).type) for index in range(dtype.num_fields))


def _is_widening(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Say whether each value of a type is the same in another, and stands in the same order."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_null(found) or found == wanted:
        return True
    for same in (_TEXTS, _BINARIES):
        if found in same:
            return wanted in same
    if pa.types.is_integer(found) and pa.types.is_floating(wanted):
        return found.bit_width <= _WHOLE_BITS.get(wanted, 0)
    if pa.types.is_integer(found) and pa.types.is_integer(wanted):
        signed = pa.types.is_signed_integer(found)
        if signed == pa.types.is_signed_integer(wanted):
            return found.bit_width <= wanted.bit_width
        return not signed and found.bit_width < wanted.bit_width
    return pa.types.is_float32(found) and pa.types.is_float64(wanted)


def _statistics(about: pq.RowGroupMetaData, leaf: _Leaf, wanted: pa.DataType) -> Statistics:
    rows = about.num_rows
    if leaf.null:
        return Statistics(None, None, rows, rows)
    nothing = Statistics(None, None, None, rows)
    if not leaf.flat:
        return nothing
    chunk = about.column(leaf.number)
    told = chunk.statistics if chunk.is_stats_set else None
    if told is None or chunk.num_values != rows:
        return nothing
    nulls = told.null_count if told.has_null_count else None
    if nulls is not None and not 0 <= nulls <= rows:
        return nothing
    low, high = _bounds(leaf, told, wanted)
    return Statistics(low, high, nulls, rows)


def _bounds(
    leaf: _Leaf, told: pq.Statistics, wanted: pa.DataType
) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    if not told.has_min_max:
        return None, None
    low, high = _plain(leaf, told.min_raw), _plain(leaf, told.max_raw)
    if low is None or high is None:
        return None, None
    if isinstance(low, float) and (math.isnan(low) or math.isnan(high)):
        return None, None
    if low > high:
        return None, None
    if low == 0 and isinstance(low, float):
        low = -0.0  # the two zeros are equal, and writers put either
    if high == 0 and isinstance(high, float):
        high = 0.0
    return _scalar(low, leaf, wanted), _scalar(high, leaf, wanted)


def _plain(leaf: _Leaf, raw: object) -> Any:
    """Give a bound as a value that Python orders as Parquet does; None if it may be none."""
    physical, logical = leaf.physical, leaf.logical
    if physical == "BOOLEAN":
        return bool(raw)
    if physical in ("FLOAT", "DOUBLE") and isinstance(raw, (int, float)):
        return float(raw)
    if physical in ("INT32", "INT64") and isinstance(raw, int):
        if not leaf.signed:
            return raw % (1 << (32 if physical == "INT32" else 64))
        return raw if logical in ("NONE", "INT", "DATE", "TIMESTAMP") else None
    if physical == "BYTE_ARRAY" and isinstance(raw, bytes):
        whole = leaf.writer.startswith(_WHOLE_BOUNDS) or len(raw) < _LONGEST_TEXT
        if logical != "STRING" or not whole:
            return None
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None
    return None


def _scalar(value: object, leaf: _Leaf, wanted: pa.DataType) -> pa.Scalar | None:
    """Make a bound of the type that is read; None where the file holds it in another unit."""
    logical = leaf.logical
    try:
        if pa.types.is_date32(wanted):
            if logical != "DATE":
                return None
            return pa.array([value], pa.int32()).view(wanted)[0]
        if pa.types.is_timestamp(wanted):
            if logical != "TIMESTAMP" or leaf.unit != wanted.unit:
                return None
            return pa.array([value], pa.int64()).view(wanted)[0]
        plain = logical in ("NONE", "INT", "STRING")
        if plain and (wanted in _TEXTS or pa.types.is_primitive(wanted)):
            if pa.types.is_temporal(wanted):
                return None
            return pa.scalar(value, wanted)
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return None  # it is beyond the type: whoever wrote it meant something else
    return None
