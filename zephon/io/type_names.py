"""Types as users name them: Arrow's and Polars' own, Python's, and words such as "list<int64>".

Whatever it was called, it becomes a plain Arrow type (see ``column_types``).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any, cast, get_args, get_origin

import pyarrow as pa

from zephon.column_steps import can_name_a_column
from zephon.errors import DatasetError, nearest
from zephon.io.column_types import is_list, is_text, plain

_PYTHON: dict[Any, pa.DataType] = {
    str: pa.large_string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.large_binary(),
    datetime.datetime: pa.timestamp("us"),
    datetime.date: pa.date32(),
    datetime.time: pa.time64("us"),
    datetime.timedelta: pa.duration("us"),
}
_NAMED: dict[str, pa.DataType] = {
    **{f"int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("string", "str", "text", "utf8", "large_string"), pa.large_string()),
    **dict.fromkeys(("binary", "bytes", "large_binary"), pa.large_binary()),
    **dict.fromkeys(("bool", "boolean"), pa.bool_()),
    **dict.fromkeys(("float64", "double", "float"), pa.float64()),
    **dict.fromkeys(("float16", "halffloat"), pa.float16()),
    **dict.fromkeys(("date", "date32", "date32[day]"), pa.date32()),
    "int": pa.int64(),
    "float32": pa.float32(),
    "date64[ms]": pa.date64(),
    "null": pa.null(),
    **{f"time32[{unit}]": pa.time32(unit) for unit in ("s", "ms")},
    **{f"time64[{unit}]": pa.time64(unit) for unit in ("us", "ns")},
    **{f"duration[{unit}]": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
}  # fmt: skip
_SHOWN = ("bool", "int64", "float64", "string", "date32", "timestamp[us]", "list<int64>")
_WORDS = frozenset(_NAMED) | {"list", "struct", "timestamp", "duration", "time64", "decimal"}
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, *tz=([^\],]+))?\]")
_DECIMAL = re.compile(r"decimal(?:128)?\((\d+), *(-?\d+)\)")
_LIST = re.compile(r"(?:large_)?list<(?:item: *)?(.*)>", re.DOTALL)
_STRUCT = re.compile(r"struct<(.*)>", re.DOTALL)


def declared_types(dataset: str, schema: object) -> tuple[tuple[str, pa.DataType], ...]:
    """Read what a user says of the types of fields.

    Args:
        dataset: its name, for messages.
        schema: a mapping from names to types, an Arrow or a Polars schema, or None.

    Returns:
        names and plain types, in order of the names.

    Raises:
        DatasetError: it is something else, or a type that is none.

    >>> declared_types("d", {"n": int, "ids": "list<int32>"})
    (('ids', LargeListType(large_list<item: int32>)), ('n', DataType(int64)))
    """
    if schema is None:
        return ()
    pairs: list[tuple[Any, Any]]
    if isinstance(schema, pa.Schema):
        pairs = [(each.name, each.type) for each in cast("Any", schema)]
    elif isinstance(schema, Mapping):
        pairs = list(schema.items())
    else:
        raise DatasetError(
            f"dataset {dataset!r}: schema must be a dict from field names to types, or an Arrow or "
            f"Polars schema, got {type(schema).__name__}; pass such as {{'n': 'int64'}}"
        )
    found: dict[str, pa.DataType] = {}
    for name, given in pairs:
        if not isinstance(name, str) or not name or name in found or not can_name_a_column(name):
            raise DatasetError(
                f"dataset {dataset!r}: the names in schema must be UTF-8 texts, each there once, "
                f"got {name!r}; name fields of the rows"
            )
        found[name] = _type_of(given, f"dataset {dataset!r}: schema[{name!r}]")
    return tuple(sorted(found.items()))


def type_of_text(text: str) -> pa.DataType | None:
    """Read the name of a type, as users or Arrow write it; None if it names none.

    >>> type_of_text("list<string>"), type_of_text("strng")
    (LargeListType(large_list<item: large_string>), None)
    """
    text = text.strip()
    if text in _NAMED:
        return _NAMED[text]
    if found := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(found[1], found[2])
    if found := _DECIMAL.fullmatch(text):
        digits, scale = int(found[1]), int(found[2])
        return pa.decimal128(digits, scale) if 1 <= digits <= 38 else None
    if found := _LIST.fullmatch(text):
        inner = type_of_text(found[1])
        return None if inner is None else pa.large_list(inner)
    if found := _STRUCT.fullmatch(text):
        return _struct_of_text(found[1])
    return None


def fits_json(dtype: pa.DataType) -> bool:
    """Say whether values of JSON can be of a type."""
    if is_list(dtype):
        return fits_json(dtype.value_type)
    types = pa.types
    if types.is_struct(dtype):
        return all(fits_json(field.type) for field in dtype)
    return (
        types.is_boolean(dtype)
        or types.is_integer(dtype)
        or types.is_floating(dtype)
        or is_text(dtype)
    )


def _type_of(given: Any, where: str) -> pa.DataType:
    found: pa.DataType | None = None
    if isinstance(given, pa.DataType):
        found = plain(given)
    elif isinstance(given, str):
        found = type_of_text(given)
    elif isinstance(given, Mapping):
        inner = [pa.field(str(name), _type_of(each, where)) for name, each in given.items()]
        found = pa.struct(inner)
    elif get_origin(given) is list:
        found = pa.large_list(_type_of(get_args(given)[0], where))
    elif isinstance(given, type) and given in _PYTHON:
        found = _PYTHON[given]
    elif (given if isinstance(given, type) else type(given)).__module__.startswith("polars."):
        found = _of_polars(given)
    if found is None or pa.types.is_null(found):
        raise DatasetError(
            f"{where} must be a type of Arrow, Polars or Python, or the name of one, got "
            f"{given!r}; {_nearest(given)}"
        )
    return found


def _nearest(given: Any) -> str:
    """Say which name the first unknown word of one comes closest to, or what names there are."""
    words = re.findall(r"[^\W\d]\w*", given) if isinstance(given, str) else []
    odd = next((word for word in words if word not in _WORDS), "")
    close = nearest(odd, _WORDS)
    return close if "mean" in close else f"types are called {', '.join(map(repr, _SHOWN))}"


def _of_polars(given: Any) -> pa.DataType | None:
    import polars as pl  # late: it takes 50 ms to import, and few declare types with it

    if given == pl.Object:
        return None
    try:
        return plain(pl.Series("", [], dtype=given).to_arrow().type)
    except (pl.exceptions.PolarsError, pa.ArrowException, TypeError, ValueError):
        return None


def _struct_of_text(text: str) -> pa.DataType | None:
    fields: list[pa.Field] = []
    for part in _parts(text):
        name, mark, inner = part.partition(":")
        dtype = type_of_text(inner) if mark else None
        if dtype is None or not name.strip():
            return None
        fields.append(pa.field(name.strip(), dtype))
    return pa.struct(fields) if fields else None


def _parts(text: str) -> list[str]:
    """Cut at the commas that are in no brackets."""
    depth, start, parts = 0, 0, []
    for place, sign in enumerate(text):
        depth += (sign in "<[(") - (sign in ">])")
        if sign == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]] if text.strip() else []
