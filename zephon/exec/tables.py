"""Delivered rows as an Arrow table, for looking at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from zephon.errors import DataError
from zephon.types import SampleBatch, StreamItem


def table_of(items: Iterable[StreamItem]) -> pa.Table:
    """Make a table of the payloads of records, those in batches too.

    Args:
        items: records or batches.

    Returns:
        a column a field; a row without the field has null. Payloads that are no dicts stand in a
        column "value". The table shares no memory with the items.

    Raises:
        DataError: the values of a field have no one Arrow type.
    """
    payloads: list[Any] = []
    for item in items:
        records = item.records if isinstance(item, SampleBatch) else (item,)
        payloads += [record.payload for record in records]
    rows = [row if isinstance(row, Mapping) else {"value": row} for row in payloads]
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    return pa.table({name: _column(name, [row.get(name) for row in rows]) for name in names})


def _column(name: str, values: list[Any]) -> pa.Array:
    plain = [value.tolist() if hasattr(value, "data_ptr") else value for value in values]
    try:
        return pa.array(plain)
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise DataError(
            f"head: the values of field {name!r} must have one type to stand in a table, and they "
            f"do not: {exc}; iterate the pipeline to see them"
        ) from exc
