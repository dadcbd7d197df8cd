"""Filters are values, and say which rows of a frame they keep."""

import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tests.expressions.known import row_filter
from zephon.errors import ExecutionError
from zephon.expressions import Statistics

K, TEXT = pl.col("k"), pl.col("text")
FRAME = pa.record_batch({"k": [1, None, 3], "text": ["a", "7", "8"], "more": [1, 2, 3]})


def test_filters_are_values():
    first, second, other = row_filter(K > 1), row_filter(K > 1), row_filter(K > 2)
    assert first == second
    assert hash(first) == hash(second)
    assert first != other
    assert pickle.loads(pickle.dumps(first)) == first
    assert str(row_filter(K > 1, TEXT == "a")) == 'col("k") > 1 and col("text") == "a"'
    assert row_filter(TEXT == "a", K > 1, TEXT != "b").reads == ("text", "k")


def test_rows_are_kept_where_all_predicates_are_true():
    for rows, wanted in ((3, [False, False, True]), (0, [])):
        kept = row_filter(K > 0, TEXT != "a").keeps(FRAME.slice(0, rows))
        assert kept.dtype == np.bool_
        assert kept.tolist() == wanted
        assert kept.flags.writeable


def test_a_predicate_sees_only_rows_for_which_those_before_it_are_true():
    number = TEXT.cast(pl.Int64) > 7
    assert row_filter(TEXT != "a", number).keeps(FRAME).tolist() == [False, False, True]
    with pytest.raises(ExecutionError, match=r"strict_cast\(Int64\)\)? > 7 raised conversion from"):
        row_filter(number, TEXT != "a").keeps(FRAME)


def test_a_predicate_that_might_raise_proves_nothing():
    low = {"k": Statistics(pa.scalar(0), pa.scalar(3), 0, 3)}
    never, raises = K < 0, TEXT.cast(pl.Int64) > 0
    for predicates, kept in (
        ([never, raises], False),
        ([TEXT == "a", never, raises], False),
        ([raises, never], False),
        ([raises], True),
        ([raises & never], True),
        ([never & raises], True),  # both sides are computed of every row
    ):
        assert row_filter(*predicates).may_keep([low]).tolist() == [kept]


def test_predicates_over_unknown_columns_are_not_asked():
    both = row_filter(TEXT.cast(pl.Int64) > 7, K > 1)
    assert both.keeps(FRAME, frozenset({"text"})).tolist() == [False, False, True]
    assert both.keeps(FRAME, frozenset({"text", "k"})).tolist() == [True] * 3
