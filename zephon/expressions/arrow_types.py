"""Arrow types and Polars types: which stands for which, and values from one to the other."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import polars as pl
import pyarrow as pa

_OLDEST = pl.CompatLevel.oldest()
_FAILURES = (
    pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, ValueError,
    TypeError,
)  # fmt: skip


@lru_cache(maxsize=4096)
def polars_type(dtype: pa.DataType) -> pl.DataType | None:
    """Name the Polars type that holds the values of an Arrow type; None if there is none."""
    if any(pa.types.is_decimal256(part) or pa.types.is_map(part) for part in _parts(dtype)):
        return None  # Polars panics, now or later, which would be written to the terminal
    try:
        found = series(pa.nulls(1, dtype)).dtype
    except _FAILURES:
        return None
    return None if arrow_type(found) is None else found


@lru_cache(maxsize=4096)
def arrow_type(dtype: pl.DataType) -> pa.DataType | None:
    """Name the Arrow type in which values of a Polars type leave; None if there is none.

    Text is large_string, lists are large lists; categories are text.

    >>> arrow_type(pl.List(pl.String()))
    LargeListType(large_list<item: large_string>)
    """
    if any(isinstance(part, pl.Object | pl.Unknown) for part in _polars_parts(dtype)):
        return None
    try:
        return pl.Series([], dtype=plain(dtype)).to_arrow(compat_level=_OLDEST).type
    except _FAILURES:
        return None


def plain(dtype: pl.DataType) -> pl.DataType:
    """Put text in the place of categories, at any depth; their order is nothing that rows have."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.List):
        return pl.List(plain(_instance(dtype.inner)))
    if isinstance(dtype, pl.Array):
        return pl.Array(plain(_instance(dtype.inner)), dtype.size)
    if isinstance(dtype, pl.Struct):
        return pl.Struct({each.name: plain(_instance(each.dtype)) for each in dtype.fields})
    return dtype


def series(array: pa.Array) -> pl.Series:
    """View an Arrow array in Polars; numbers share memory, text gets views that point to it."""
    found = pl.from_arrow(array)
    if not isinstance(found, pl.Series):
        raise TypeError(f"an Arrow array gives a series, got {type(found).__name__}")
    return found


def array(values: pl.Series, dtype: pa.DataType) -> pa.Array:
    """Give a series to Arrow in one of the types that ``arrow_type`` names; text is copied."""
    found = values.rechunk().to_arrow(compat_level=_OLDEST)
    return found if found.type == dtype else found.cast(dtype)


def _instance(dtype: Any) -> pl.DataType:
    return dtype() if isinstance(dtype, type) else dtype


def _parts(dtype: pa.DataType) -> list[pa.DataType]:
    inner = [dtype.field(number).type for number in range(dtype.num_fields)]
    if pa.types.is_dictionary(dtype):
        inner.append(dtype.value_type)
    if isinstance(dtype, pa.BaseExtensionType):
        inner.append(dtype.storage_type)
    return [dtype, *(part for each in inner for part in _parts(each))]


def _polars_parts(dtype: pl.DataType) -> list[pl.DataType]:
    inner: list[pl.DataType] = []
    if isinstance(dtype, pl.List | pl.Array):
        inner = [_instance(dtype.inner)]
    if isinstance(dtype, pl.Struct):
        inner = [_instance(each.dtype) for each in dtype.fields]
    return [dtype, *(part for each in inner for part in _polars_parts(each))]
