"""Parts of predicates that bounds of columns can prove false of all rows.

A comparison is decided by Polars itself, on the bounds: it converts both sides before it compares,
and a conversion may round, but never turns an order around. So if the smallest value is too large,
all are. Only a plain "false" proves anything: null does not, an error neither.

NaN equals itself and is larger than everything, and files leave it out of their bounds: so no upper
bound of floats excludes a row that is to be large.

All row groups are tested at once, since Polars takes as long for a hundred bounds as for one: a
quarter of a millisecond, and several where others use the machine. Whole numbers that every type
holds exactly are compared here, in microseconds.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from zephon.expressions.told import Told

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Test(ABC):
    """A part of a predicate."""

    @abstractmethod
    def may_pass(self, told: Told) -> NDArray[np.bool_]:
        """Say whether it may be true for any row; False is a proof that it is not.

        Args:
            told: what a file says of some row groups.

        Returns:
            A mask of its own, shape [groups].
        """


@dataclass(frozen=True, slots=True)
class Unknown(Test):
    """Anything that cannot be taken apart."""

    def may_pass(self, told: Told) -> NDArray[np.bool_]:
        """Anything may be."""
        return np.ones(len(told), np.bool_)


@dataclass(frozen=True, slots=True)
class Both(Test):
    """A conjunction."""

    parts: tuple[Test, ...]

    def may_pass(self, told: Told) -> NDArray[np.bool_]:
        """Each part may be true."""
        return np.logical_and.reduce([part.may_pass(told) for part in self.parts])


@dataclass(frozen=True, slots=True)
class Either(Test):
    """A disjunction."""

    parts: tuple[Test, ...]

    def may_pass(self, told: Told) -> NDArray[np.bool_]:
        """Some part may be true."""
        return np.logical_or.reduce([part.may_pass(told) for part in self.parts])


@dataclass(frozen=True, slots=True)
class NullTest(Test):
    """Whether values of a column are null, or are not."""

    column: str
    null: bool

    def may_pass(self, told: Told) -> NDArray[np.bool_]:
        """By how many nulls there are."""
        about = told.column(self.column)
        found = about.nulls > 0 if self.null else about.nulls < about.rows
        return found | (about.nulls < 0)


@dataclass(frozen=True, slots=True)
class BoundTest(Test):
    """Something that is true only of values, never of nulls, and false beyond bounds.

    column: what it looks at. low, high: expressions of which the first must be false of the lower
    bound, or the second of the upper one, to prove that it is false of all; None: that bound proves
    nothing. both: must be false of both bounds, which must be equal. large: it is true of NaN, so
    that high and both prove nothing of floats.
    """

    column: str
    low: pl.Expr | None = None
    high: pl.Expr | None = None
    both: pl.Expr | None = None
    large: bool = False

    def may_pass(self, told: Told) -> NDArray[np.bool_]:
        """By the bounds; and not where all are null."""
        about = told.column(self.column)
        apart = about.all_null | _is_false(self.low, about.low, len(told))
        if about.high is not None and not (self.large and about.high.dtype.is_float()):
            apart |= _is_false(self.high, about.high, len(told))
            if self.both is not None and about.low is not None:
                apart |= _equal(about.low, about.high) & _is_false(self.both, about.low, len(told))
        return ~apart


@dataclass(frozen=True, slots=True)
class WholeTest(Test):
    """A comparison of a column with a whole number.

    column, sign, number: what is compared. otherwise: the same for any bounds; decides where some
    are missing, or so large that Polars might round them.
    """

    column: str
    sign: str
    number: int
    otherwise: BoundTest

    def may_pass(self, told: Told) -> NDArray[np.bool_]:
        """By the bounds; and not where all are null."""
        about, number = told.column(self.column), self.number
        low, high = _whole(about.low), _whole(about.high)
        if low is None or high is None or abs(number) > _EXACT:
            return self.otherwise.may_pass(told)
        match self.sign:
            case "<" | "<=":
                found = COMPARE[self.sign](low, number)
            case ">" | ">=":
                found = COMPARE[self.sign](high, number)
            case "==":
                found = (low <= number) & (number <= high)
            case _:
                found = (low != number) | (high != number)
        return found & ~about.all_null


@dataclass(frozen=True, slots=True)
class AmongTest(Test):
    """Whether values of a column are among some.

    values: without null and NaN. expression: the test itself, false of the bounds if it may be
    false of all: it may convert values otherwise than a comparison does.
    """

    column: str
    values: pl.Series
    expression: pl.Expr

    def may_pass(self, told: Told) -> NDArray[np.bool_]:
        """Some value is within the bounds, or the bounds themselves are among the values."""
        about = told.column(self.column)
        groups, values = len(told), len(self.values)
        within = ~about.known
        apart = np.zeros((groups, values), np.bool_)
        for sign, bound in ((">", about.low), ("<", about.high)):
            if bound is None:
                continue
            there = bound.is_not_null().to_numpy()
            within |= there & ~_is_false(self.expression, bound, groups)
            left = bound.gather(np.repeat(np.arange(groups), values)).alias("bound")
            right = self.values.gather(np.tile(np.arange(values), groups)).alias("value")
            try:
                found = pl.DataFrame([left, right]).select_seq(
                    COMPARE[sign](pl.col("bound"), pl.col("value"))
                )
            except _FAILURES:
                within |= there
                continue
            apart |= _true(found.to_series()).reshape(groups, values)
        return (within | ~apart.all(axis=1)) & ~about.all_null


_EXACT = 1 << 53  # up to here all whole numbers are floats, too
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


def _whole(bounds: pl.Series | None) -> NDArray[np.integer] | None:
    """Give bounds that are all there, and whole numbers that no conversion rounds, shape [groups].

    Whatever types Polars converts both sides to before it compares, they keep their order.
    """
    if bounds is None or bounds.dtype not in _WHOLE or bounds.null_count() or not len(bounds):
        return None
    found = bounds.to_numpy()
    return found if max(-int(found.min()), int(found.max())) <= _EXACT else None


_FAILURES = (Exception, pl.exceptions.PanicException)


def _equal(low: pl.Series, high: pl.Series) -> NDArray[np.bool_]:
    """Say where two bounds are there and equal, shape [groups]."""
    return _true(low == high)


def _true(found: pl.Series) -> NDArray[np.bool_]:
    return found.fill_null(False).to_numpy().astype(np.bool_, copy=True)


def _is_false(
    expression: pl.Expr | None, bounds: pl.Series | None, groups: int
) -> NDArray[np.bool_]:
    """Say of which bounds an expression is false, shape [groups].

    It is not where there is no bound, or it gives null, or an error: so where Polars raises for
    some bound, each is tried by itself.
    """
    found = np.zeros(groups, np.bool_)
    if expression is None or bounds is None:
        return found
    there = bounds.is_not_null().to_numpy()
    found[there] = _false_of(expression, bounds.drop_nulls())
    return found


def _false_of(expression: pl.Expr, bounds: pl.Series) -> NDArray[np.bool_]:
    """Do as ``_is_false`` for bounds that are all there, shape [bounds]."""
    nothing = np.zeros(len(bounds), np.bool_)
    if not len(bounds):
        return nothing
    try:
        found = bounds.to_frame().select_seq(expression).to_series()
    except _FAILURES:
        found = None
    if found is not None and len(found) == len(bounds):
        return ~found.fill_null(True).to_numpy() if found.dtype == pl.Boolean else nothing
    if len(bounds) == 1:
        return nothing
    return np.concatenate([_false_of(expression, bounds[at : at + 1]) for at in range(len(bounds))])
