"""What a Parquet footer says of the columns of a row group, where it can be relied on.

Wrong bounds lose rows without a word, so what is not sure is not said: bounds of types whose order
is disputed, of values that reading converts in any way but widening, that contradict each other or
the type, of texts that may have been cut off, and of columns whose order is not defined. A text
that is not UTF-8 goes unnoticed in a row group that is skipped.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from zephon.column_steps import Statistics
from zephon.io.far_files import FarFile
from zephon.io.fields import Column
from zephon.io.formats.parquet_thrift import ChunkFacts, chunk_facts, footer_bytes
from zephon.io.formats.parquet_units import Part

_LONGEST_TEXT = 32  # bytes; writers that cut bounds off leave more
_WHOLE_BOUNDS = "parquet-cpp"  # the beginning of a writer's name: it leaves out what is too long
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())
_WHOLE_BITS = {pa.float32(): 16, pa.float64(): 32}  # integers so wide are the same as floats
_LAYOUTS = {
    "BOOLEAN": struct.Struct("<?"),
    "INT32": struct.Struct("<i"),
    "INT64": struct.Struct("<q"),
    "FLOAT": struct.Struct("<f"),
    "DOUBLE": struct.Struct("<d"),
}
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


class FooterStatistics:
    """The statistics of columns of kind "any", of the row groups of one file.

    A column is left out if one of its values may be a bad one: then rows must be read to find it.

    Args:
        path: of the file; or the file, where it lies in a far place.
        footer: of the file.
        schema: of the file.
        columns: what is read; bounds are of their types.
    """

    def __init__(
        self,
        path: str | FarFile,
        footer: pq.FileMetaData,
        schema: pa.Schema,
        columns: Sequence[Column],
    ) -> None:
        leaves = _leaves(schema)
        self._read: list[tuple[Column, _Leaf]] = []
        self._missing: list[str] = []
        for column in columns:
            places = schema.get_all_field_indices(column.path)
            if len(places) == 1:
                field, leaf = schema.field(places[0]), sum(leaves[: places[0]])
                if _is_widening(field.type, column.type):
                    self._read.append((column, _Leaf.of(footer, leaf, field)))
            elif not places and (column.named or column.path.split(".")[0] not in schema.names):
                self._missing.append(column.path)
        self._footer = footer
        wanted = {leaf.number for _, leaf in self._read if leaf.flat}
        told = chunk_facts(footer_bytes(path), wanted) if wanted else []
        if told is None or footer.num_columns != sum(leaves):
            self._read = []
        self._told = told or []

    def of(self, groups: Sequence[int]) -> list[dict[str, Statistics]]:
        """Give the statistics by path, of each of some row groups."""
        return [self._of(group) for group in groups]

    def _of(self, group: int) -> dict[str, Statistics]:
        rows = self._footer.row_group(group).num_rows
        told = self._told[group] if group < len(self._told) else {}
        found = {path: Statistics(None, None, rows, rows) for path in self._missing}
        for column, leaf in self._read:
            found[column.path] = _statistics(rows, leaf, told.get(leaf.number), column.type)
        return found


def statistics_of_part(told: Mapping[str, Statistics], part: Part) -> dict[str, Statistics]:
    """Give what holds for a part of a row group, of what a footer says of all of it."""
    return {path: _of_part(each, part.stop - part.start) for path, each in told.items()}


def _of_part(told: Statistics, rows: int) -> Statistics:
    nulls = told.nulls
    if nulls:
        nulls = rows if nulls == told.rows else None
    return Statistics(told.low, told.high, nulls, rows)


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


def _statistics(rows: int, leaf: _Leaf, told: ChunkFacts | None, wanted: pa.DataType) -> Statistics:
    if leaf.null:
        return Statistics(None, None, rows, rows)
    nothing = Statistics(None, None, None, rows)
    if told is None or not leaf.flat or told.values != rows or told.physical != leaf.physical:
        return nothing
    if told.nulls is not None and not 0 <= told.nulls <= rows:
        return nothing
    low, high = _bounds(leaf, told, wanted)
    return Statistics(low, high, told.nulls, rows)


def _bounds(
    leaf: _Leaf, told: ChunkFacts, wanted: pa.DataType
) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    low, high = _plain(leaf, told.low), _plain(leaf, told.high)
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


def _plain(leaf: _Leaf, raw: bytes | None) -> Any:
    """Give a bound as a value that Python orders as Parquet does; None if it may be none."""
    physical, logical = leaf.physical, leaf.logical
    if raw is None:
        return None
    if physical == "BYTE_ARRAY":
        whole = leaf.writer.startswith(_WHOLE_BOUNDS) or len(raw) < _LONGEST_TEXT
        if logical != "STRING" or not whole:
            return None
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None
    layout = _LAYOUTS.get(physical)
    if layout is None or len(raw) != layout.size:
        return None
    (value,) = layout.unpack(raw)
    if physical in ("INT32", "INT64"):
        if not leaf.signed:
            return value % (1 << (8 * layout.size))
        return value if logical in ("NONE", "INT", "DATE", "TIMESTAMP") else None
    return value


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
