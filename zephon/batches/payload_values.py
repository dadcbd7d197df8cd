"""Payload values, one a row or one a document, as arrays of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon import collate
from zephon.batches.columns import TokenField
from zephon.batches.grid import Field
from zephon.errors import DataError
from zephon.tensors import changed_by, common_type, numbers


def gather(name: str, values: Sequence[Any]) -> Field:
    """Turn the values of one field, one a row, into arrays of numbers. Copies.

    Raises:
        DataError: a value is no array of numbers, or not like those of the other rows.
    """
    rows: list[NDArray[Any]] = []
    for i, value in enumerate(values):
        array = numbers(value)
        if array is None:
            raise DataError(
                f"to_training: {name!r} of row {i} must hold numbers of at most 64 bits in one "
                f"regular array, got {_excerpt(value)}; leave the field out, or name it in "
                "collate_fields"
            )
        rows.append(array)
    if rows[0].ndim:
        return laid_end_to_end(name, rows, _row)
    return np.stack(rows, dtype=_one_type(name, rows, _row), casting="unsafe")


def laid_end_to_end(
    name: str, arrays: Sequence[NDArray[Any]], where: Callable[[int], str]
) -> TokenField:
    """Lay arrays end to end that have one shape beside their length. Copies.

    Args:
        name: the field.
        arrays: at least one.
        where: names the place of an array, for messages.

    Raises:
        DataError: their shapes differ, or no type holds the values of all of them exactly.
    """
    return TokenField(*collate.concatenate(arrays, _one_type(name, arrays, where)))


def _one_type(
    name: str, arrays: Sequence[NDArray[Any]], where: Callable[[int], str]
) -> np.dtype[Any]:
    first = arrays[0]
    for i, array in enumerate(arrays):
        if array.ndim != first.ndim or array.shape[1:] != first.shape[1:]:
            raise DataError(
                f"to_training: {name!r} must have one shape beside its length, got "
                f"{first.shape} in {where(0)} and {array.shape} in {where(i)}; make them alike"
            )
    common = common_type(arrays)
    for i, array in enumerate(arrays):
        changed = changed_by(array, common)
        if changed is not None:
            raise DataError(
                f"to_training: {name!r} must have one type of numbers, got {changed} in "
                f"{where(i)}, which {common}, the type of all of them together, cannot hold "
                "exactly; give every row the same type"
            )
    return common


def _row(i: int) -> str:
    return f"row {i}"


def _excerpt(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"
