"""Small made-up rows of given types, on which expressions are tried."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import polars as pl

ROWS = 24
"""How many there are."""


def made_up(schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Make rows that repeat values, have nulls, and combine values of columns differently."""
    columns = {
        name: pl.Series(_cycled(_values(dtype), 1 + number % 6), dtype=dtype, strict=False)
        for number, (name, dtype) in enumerate(schema.items())
    }
    return pl.DataFrame(columns or {"": [0] * ROWS})


def _cycled(values: Sequence[Any], step: int) -> list[Any]:
    return [values[place * step % len(values)] for place in range(ROWS)]


_DAY = datetime.datetime(2020, 2, 29, 12, 30)
_TEXTS = (
    "b", "a", "", None, "a", "10", "2020-02-29", "29/02/2020", "2020-02-29T12:30:00", '{"a": 1}',
    "7", "1.5", "c",
)  # fmt: skip


@lru_cache(maxsize=256)
def _values(dtype: pl.DataType) -> tuple[Any, ...]:
    """List values of a type, small ones: some functions make as many as a number says.

    A prime number of them, so that every step through them meets all.
    """
    if isinstance(dtype, pl.List | pl.Array):
        inner = _values(dtype.inner)  # pyright: ignore[reportArgumentType]
        if isinstance(dtype, pl.Array):
            size = dtype.size
            made = [[inner[(n + k) % len(inner)] for k in range(size)] for n in range(6)]
            return (*made, None)
        return (inner, [], inner[:1], None, inner[1:3] * 20, inner[::-1], inner[:1])
    if isinstance(dtype, pl.Struct):
        parts = [(each.name, _values(each.dtype)) for each in dtype.fields]  # pyright: ignore[reportArgumentType]
        return (
            *({name: found[(n + k) % len(found)] for k, (name, found) in enumerate(parts)}
              for n in range(10)),
            None,
        )  # fmt: skip
    if isinstance(dtype, pl.Boolean):
        return (True, False, None, True, True, False, False)
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return _TEXTS
    if isinstance(dtype, pl.Binary):
        return (b"b", b"a", b"", None, b"a", b"10", b"\xff")
    if isinstance(dtype, pl.Date | pl.Datetime):
        days = [_DAY + datetime.timedelta(days=40 * n, seconds=7 * n) for n in (3, 0, 1, 1, 5, 9)]
        return (*(day.date() if isinstance(dtype, pl.Date) else day for day in days), None)
    if isinstance(dtype, pl.Time):
        return (*(datetime.time(hour, hour) for hour in (3, 0, 1, 1, 5, 9)), None)
    if isinstance(dtype, pl.Duration):
        return (*(datetime.timedelta(hours=hour) for hour in (3, 0, 1, 1, 5, 9)), None)
    if isinstance(dtype, pl.Decimal):
        return (*(Decimal(number) for number in (3, 0, 1, 1, 5, 9)), None)
    if dtype.is_float():
        return (3.5, 0.0, 1.0, None, 1.0, float("nan"), 9.0, -2.0, 0.25, float("inf"), 2.0)
    if dtype.is_integer():
        return (3, 0, 1, None, 1, 5, 9)
    return (None,)
