"""Delivered rows as an Arrow table, for looking at them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from zephon.column_steps import can_name_a_column
from zephon.errors import DataError
from zephon.types import SampleBatch, StreamItem

_NONE: Mapping[str, pa.DataType] = MappingProxyType({})


def table_of(items: Iterable[StreamItem], known: Mapping[str, pa.DataType] = _NONE) -> pa.Table:
    """Make a table of the payloads of records, those in batches too.

    Args:
        items: records or batches.
        known: types of fields; a column has its own, where all values can be of it, and all of
            these are there if there is no row.

    Returns:
        a column a field; a row without the field has null. Payloads that are no dicts stand in a
        column "value". The table shares no memory with the items.

    Raises:
        DataError: the values of a field have no one Arrow type, two fields one name, or one a name
            that is no UTF-8.
    """
    payloads: list[Any] = []
    for item in items:
        records = item.records if isinstance(item, SampleBatch) else (item,)
        payloads += [record.payload for record in records]
    rows = [row if isinstance(row, Mapping) else {"value": row} for row in payloads]
    names = dict.fromkeys(name for row in rows for name in row) if rows else known
    odd = next((name for name in map(str, names) if not can_name_a_column(name)), None)
    if odd is not None:
        raise DataError(
            f"head: names of fields must be UTF-8 to stand in a table, got {odd!r}; drop the field "
            "before, or iterate the pipeline to see the rows"
        )
    if not rows:
        return pa.schema(list(known.items())).empty_table()
    columns: dict[str, pa.Array] = {}
    for key in names:
        name = str(key)
        if name in columns:
            raise DataError(
                f"head: rows must have one field of a name, and two are written {name!r}; iterate "
                "the pipeline to see them"
            )
        columns[name] = _column(name, [row.get(key) for row in rows], known.get(name))
    return pa.table(columns)


def _column(name: str, values: list[Any], known: pa.DataType | None) -> pa.Array:
    plain = _of_one_unit([_plain(value) for value in values])
    if known is not None:
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            return pa.array(plain, known)
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            return pa.array(plain).cast(known)  # a time without its zone
    try:
        return pa.array(plain)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        raise DataError(
            f"head: the values of field {name!r} must have one type to stand in a table, and they "
            f"do not: {exc}; iterate the pipeline to see them"
        ) from exc


def _of_one_unit(values: list[Any]) -> list[Any]:
    """Give times in the finest unit among them, since Arrow mixes none; or all as they are."""
    times = [value for value in values if isinstance(value, np.datetime64)]
    if len({time.dtype for time in times}) < 2:
        return values
    finest = np.result_type(*times)
    same = [value.astype(finest) if isinstance(value, np.datetime64) else value for value in values]
    exact = all(
        made.astype(value.dtype) == value or np.isnat(value)
        for made, value in zip(same, values, strict=True)
        if isinstance(value, np.datetime64)
    )
    return same if exact else values  # a far time overflows quietly in a fine unit


def _plain(value: Any) -> Any:
    """Give a tensor as a list, and a day or a time as Python's own, which Arrow takes anywhere."""
    if hasattr(value, "data_ptr"):
        return value.tolist()
    if isinstance(value, np.datetime64) and np.datetime_data(value)[0] == "D":
        return value.item()
    return value
