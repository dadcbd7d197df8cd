"""Rows of a morsel as functions of the user get them: whole rows, and over them what steps made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from zephon.exec.morsel import Morsel, TokenView, number_view
from zephon.tensors import as_container

_RECORDED = {"i": np.int64, "b": np.uint8}  # as in a record, whatever the column has; floats stay
_DECODED_AT_ONCE = 256  # rows; more would lie about before their turn comes


def each_row(
    rows: Morsel, token_fields: Sequence[str], masks: Sequence[str], container: str
) -> Iterator[Any]:
    """Make each row as a record would have it; it is the caller's own.

    Args:
        rows: with or without whole rows.
        token_fields: columns of these names are laid over the whole row.
        masks: fields that are 1 on every token.
        container: what holds tokens and masks: "list", "tuple", "np" or "pt".

    Raises:
        DataError: a whole row cannot be decoded; the message says where it lies.
    """
    here = set(rows.columns.schema.names)
    views = {n: number_view(rows.columns.column(n)) for n in token_fields if n in here}
    count = len(rows.refs)
    if rows.payload is not None and not views and count <= _DECODED_AT_ONCE:
        yield from rows.payload.rows()
        return
    for first in range(0, count, _DECODED_AT_ONCE):
        numbers = range(first, min(count, first + _DECODED_AT_ONCE))
        below: list[Any]
        if rows.payload is None:
            below = [{} for _ in numbers]
        else:
            below = rows.payload.take(np.arange(numbers.start, numbers.stop)).rows()
        if not views:
            yield from below
            continue
        for row, whole in zip(numbers, below, strict=True):
            yield _laid_over(whole, views, row, masks, container)


def _laid_over(
    whole: Any, views: Mapping[str, TokenView], row: int, masks: Sequence[str], container: str
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    length = 0
    for name, view in views.items():
        start, stop = view.offsets[row : row + 2].tolist()
        length = stop - start
        values = view.values[start:stop]
        made[name] = as_container(
            values.astype(_RECORDED.get(values.dtype.kind, values.dtype)), container
        )
    for name in masks:
        made[name] = as_container(np.ones(length, np.int64), container)
    return {**(whole if isinstance(whole, dict) else {}), **made}
