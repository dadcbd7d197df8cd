"""Predicates are taken apart as far as they are comparisons; these never raise."""

import polars as pl
import pyarrow as pa
import pytest

from tests.expressions.known import row_filter
from zephon.expressions import cannot_raise
from zephon.expressions.bounds import AmongTest, Both, BoundTest, Either, NullTest, Unknown
from zephon.expressions.taking_apart import test_of as taken_apart

A, GOOD = pl.col("a"), pl.col("good")
RAISES = A.cast(pl.Int8) > 5


def only(predicate):
    return row_filter(predicate, fields=(("a", pa.int64()), ("good", pa.bool_()))).predicates[0]


@pytest.mark.parametrize(
    ("predicate", "kind", "parts"),
    [
        ((A > 5) & GOOD, Both, [BoundTest, BoundTest]),
        (A.is_null() | (A.is_in([1, 2])), Either, [NullTest, AmongTest]),
        (((A > 5) | ~GOOD) & RAISES, Both, [Either, Unknown]),
    ],
)
def test_conjunctions_and_disjunctions_are_made_of_parts(predicate, kind, parts):
    found = taken_apart(only(predicate))
    assert type(found) is kind
    assert [type(part) for part in found.parts] == parts


@pytest.mark.parametrize(
    "predicate",
    [
        RAISES,
        pl.lit(None) < A,
        A < A + 1,
        ~(A > 5),
        A.is_in(list(range(101))),
        A.is_in([1, None], nulls_equal=True),
        A.is_between(1, A),
        A.eq_missing(5),
        GOOD ^ GOOD,
    ],
    ids=str,
)
def test_anything_else_is_not_known(predicate):
    assert isinstance(taken_apart(only(predicate)), Unknown)


def test_only_comparisons_never_raise():
    assert cannot_raise(only((A > 5) & A.is_null() | A.is_in([1]) | GOOD))
    assert not cannot_raise(only((A > 5) & RAISES))
