"""Filters as a plan has them, made of Polars expressions and the types of columns."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from zephon.expressions import RowFilter, resolve
from zephon.io.fields import Column


def frame_of(types: Mapping[str, pa.DataType]) -> tuple[Column, ...]:
    """Read columns of any type."""
    return tuple(Column(name, "any", values=dtype) for name, dtype in types.items())


def row_filter(types: Mapping[str, pa.DataType], *predicates: pl.Expr) -> RowFilter:
    """Make a filter over columns of some types."""
    return RowFilter(resolve("filter", predicates, list(types.items()), True, str))
