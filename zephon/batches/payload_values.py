"""Payload values, one a row, as arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon import collate
from zephon.batches.columns import TokenField
from zephon.batches.grid import Field
from zephon.errors import DataError
from zephon.tensors import numbers


def gather(name: str, values: Sequence[Any]) -> Field:
    """Turn the values of one field, one a row, into arrays of numbers. Copies."""
    rows: list[NDArray[Any]] = []
    for i, value in enumerate(values):
        array = numbers(value)
        if array is None:
            raise DataError(
                f"to_training: {name!r} of row {i} must hold numbers of at most 64 bits in one "
                f"regular array, got {_excerpt(value)}; leave the field out, or convert it with "
                "map_transform"
            )
        rows.append(array)
        if array.shape[1:] != rows[0].shape[1:] or array.ndim != rows[0].ndim:
            raise DataError(
                f"to_training: {name!r} must have one shape beside its length, got "
                f"{rows[0].shape} in row 0 and {array.shape} in row {i}; make them alike"
            )
    return np.stack(rows) if not rows[0].ndim else TokenField(*collate.concatenate(rows))


def _excerpt(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"
