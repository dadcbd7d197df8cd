"""Numbers in another type, and which of them it would change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_NONE = np.empty(0, np.int64)


def rounded_if_integer(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Find float64 values that an integer may have been rounded to: those from 2**53 on.

    Returns:
        positions, ascending; infinities are among them, not-a-number is not.

    >>> rounded_if_integer(np.array([1.0, 2.0**53, -1e300])).tolist()
    [1, 2]
    """
    return np.flatnonzero(np.abs(values) >= 2.0**53)


def exactly(values: NDArray[Any], dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Convert numbers, and find those that are others afterwards.

    Args:
        values: integers or floats, shape [n]; floats only where ``dtype`` is one of floats.
        dtype: of integers or floats.

    Returns:
        the converted values, shape [n], anything where they do not fit; and the positions of
        those, ascending. Not-a-number stays what it is.

    >>> exactly(np.array([1.5, 0.1]), np.dtype(np.float32))[1].tolist()
    [1]
    """
    if values.dtype == dtype:
        return values, _NONE
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        wrong = (values < low) | (values > high)
        if not wrong.any():
            return values.astype(dtype), _NONE
        least = max(low, int(np.iinfo(values.dtype).min))
        return np.clip(values, least, high).astype(dtype), np.flatnonzero(wrong)
    with np.errstate(over="ignore", invalid="ignore"):
        made = values.astype(dtype)
        wrong = made.astype(values.dtype) != values
    if values.dtype.kind == "f":
        wrong &= ~np.isnan(values)
    return made, np.flatnonzero(wrong)
