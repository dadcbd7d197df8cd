import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tests.filters_by_hand import row_filter
from zephon.io.kept_group import KeptGroup, Trial, evaluated, passing

TYPES = {"text": pa.large_string()}
KEEPS = (pl.col("text").str.to_integer(strict=True) > 3,)
KEEP = row_filter(TYPES, *KEEPS)


def frame(*texts):
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


def group(rows, trial=None):
    kept = np.array(rows, np.int64)
    return KeptGroup(kept, frame(), kept, (), None, 0, trial)


def found(kept, rows):
    return [part.tolist() for part in kept.find(np.array(rows, np.int64))[:2]]


@pytest.mark.parametrize(
    ("kept", "rows", "expected"),
    [
        ([2, 5, 9], [5, 0, 2, 2, 9, 10, 3], [[0, 2, 3, 4], [1, 0, 0, 2]]),
        ([2, 5, 9], [], [[], []]),
        ([], [1, 2], [[], []]),
        ([0], [1, 0], [[1], [0]]),
    ],
)
def test_rows_are_found_by_their_position_in_the_row_group(kept, rows, expected):
    assert found(group(kept), rows) == expected


def test_a_filter_that_raises_says_nothing_of_all_rows():
    assert evaluated(KEEP, frame("1", "five")) is None
    assert evaluated(KEEP, frame("1", "5")).tolist() == [False, True]


def test_the_rows_that_a_filter_raises_for_are_found():
    passes, raised = passing(KEEP, frame("1", "five", "5", None, "six", "2", "7"))
    assert passes.tolist() == [False, True, True, False, True, False, True]
    assert sorted(raised) == [1, 4]
    assert raised[4].startswith('col("text").')
    assert " raised " in raised[4]


def test_a_trial_looks_at_the_rows_that_are_asked_for():
    trial = Trial(
        KEEP, frame("1", "five", "5", None, "six", "2", "7"), [(frozenset(TYPES), np.array([3]))]
    )
    kept = group(range(7), trial)
    assert found(kept, [6, 3, 5, 2]) == [[0, 1, 3], [6, 3, 2]]
    _, numbers, raised = kept.find(np.array([5, 4, 6, 1]))
    assert numbers.tolist() == [4, 6, 1]
    assert sorted(raised) == [0, 2]


def test_a_row_for_which_a_predicate_raises_may_be_dropped_by_another():
    both = row_filter(TYPES, *KEEPS, pl.col("text") != "x")
    for keep in (both, row_filter(TYPES, pl.col("text") != "x", *KEEPS)):
        passes, raised = passing(keep, frame("5", "x", "six", "1"))
        assert passes.tolist() == [True, False, True, False]
        assert list(raised) == [2]


def test_rows_of_which_something_is_unknown_are_asked_the_rest():
    types = {**TYPES, "k": pa.int64()}
    keep = row_filter(types, *KEEPS, pl.col("k") > 1)
    rows = frame("1", "1", "5", "5").append_column("k", pa.array([1, 2, 1, 2]))
    bad = [(frozenset(["text"]), np.array([0, 1])), (frozenset(["k"]), np.array([2]))]
    assert evaluated(keep, rows).tolist() == [False, False, False, True]
    assert evaluated(keep, rows, bad).tolist() == [False, True, True, True]
    odd = rows.set_column(0, "text", pa.array(["1", "1", "5", "x"], pa.large_string()))
    assert evaluated(keep, odd, bad) is None
    found, raised = Trial(keep, odd, bad).find(np.array([3, 1, 0, 2, 3]))
    assert found.tolist() == [0, 1, 3, 4]
    assert list(raised) == [0, 3]  # by place among these
