"""Predicates are taken apart as far as they are comparisons; these never raise."""

import polars as pl
import pyarrow as pa
import pytest

from tests.expressions.known import row_filter
from zephon.expressions import cannot_raise
from zephon.expressions.bounds import (
    AmongTest,
    Both,
    BoundTest,
    Either,
    NullTest,
    Unknown,
    WholeTest,
)
from zephon.expressions.taking_apart import compares_literals
from zephon.expressions.taking_apart import test_of as taken_apart

A, GOOD = pl.col("a"), pl.col("good")
RAISES = A.cast(pl.Int8) > 5


def only(predicate):
    return row_filter(predicate, fields=(("a", pa.int64()), ("good", pa.bool_()))).predicates[0]


@pytest.mark.parametrize(
    ("predicate", "kind", "parts"),
    [
        ((A > 5) & GOOD, Both, [WholeTest, BoundTest]),
        ((A > 5.0) & (A <= 5), Both, [BoundTest, WholeTest]),
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


TEXT, WORDS = pl.col("text"), pl.col("words")
TYPES = (
    ("a", pa.int64()), ("good", pa.bool_()), ("text", pa.large_string()),
    ("words", pa.large_list(pa.large_string())), ("o", pa.struct([("x", pa.int8())])),
)  # fmt: skip


@pytest.mark.parametrize(
    ("predicate", "never"),
    [
        ((A > 5) & A.is_null() | A.is_in([1]) | GOOD, True),
        (~(A > 5) ^ A.eq_missing(3), True),
        (A.is_in(list(range(101))) & (WORDS.list.len() > A), True),
        ((TEXT.str.len_chars() > 5) & TEXT.str.contains("x+") & TEXT.str.starts_with("a"), True),
        ((pl.col("o").struct.field("x") > 1).alias("b"), True),
        (A.is_between(1, TEXT.str.len_bytes()), True),
        ((A > 5) & RAISES, False),
        (~RAISES, False),
        (TEXT.str.contains(TEXT), False),
        (A + 1 > 2, False),
        (TEXT.str.to_date("%Y", strict=True).is_null(), False),
        (pl.all_horizontal(pl.col("^g.*$")), False),
    ],
    ids=str,
)
def test_only_what_takes_every_value_never_raises(predicate, never):
    assert cannot_raise(row_filter(predicate, fields=TYPES).predicates[0]) is never


@pytest.mark.parametrize(
    ("predicate", "alone"),
    [
        (A < 5, True),
        ((pl.lit(5) >= A) & GOOD | ~GOOD & A.is_not_null(), True),
        (A.is_between(1, 2.5).alias("b"), True),
        (pl.lit(5).shuffle() > A, False),
        (pl.lit(pl.Series([1, 2])).sample(1) > A, False),
        (pl.lit(pl.Series([1, 2])) > A, False),
        (A.is_in([1, 2]), False),
        (A.mean() > A, False),
        ((A < 5) | RAISES, False),
        ((A < 5).over("a"), False),
    ],
    ids=str,
)
def test_comparisons_with_literals_alone_surely_look_at_one_row(predicate, alone):
    assert compares_literals(predicate) is alone
