"""Numbers that users give, whole, fractional, decimal or NumPy's: as one of ours or not at all."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from numbers import Real


def finite_float(value: object) -> float | None:
    """Turn a number into a float; None for what is no number, or not finite.

    >>> from fractions import Fraction
    >>> finite_float(Fraction(1, 4)), finite_float("1"), finite_float(True), finite_float(10**400)
    (0.25, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole_int(value: object) -> int | None:
    """Turn a whole number into an int; None for what is none, True and False among it.

    >>> import numpy as np
    >>> whole_int(np.int64(7)), whole_int(7.0), whole_int("7"), whole_int(True)
    (7, None, None, None)
    """
    try:
        return None if isinstance(value, bool) else operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None
