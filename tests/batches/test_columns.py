"""Spans of some rows of many: cut when somebody looks, and fit to travel alone."""

import pickle

import numpy as np
import pytest

from tests.columns_by_hand import columns_of
from zephon.batches.columns import SPAN_COLUMNS

DOCUMENTS = [[3], [1, 2], [5, 1, 1], [2]]


@pytest.fixture
def spans():
    return columns_of({}, DOCUMENTS).spans


@pytest.mark.parametrize(("first", "stop"), [(0, 4), (1, 3), (2, 2), (3, 4)])
def test_a_part_holds_the_spans_of_its_rows(spans, first, stop):
    part = spans.part(first, stop)
    sizes = [len(row) for row in DOCUMENTS[first:stop]]
    assert part.row_splits.tolist() == np.cumsum([0, *sizes]).tolist()
    assert part.length.tolist() == [n for row in DOCUMENTS[first:stop] for n in row]
    assert part.ends is None
    assert part.are_whole().all()


def test_a_part_of_a_part_is_cut_from_both(spans):
    assert spans.part(1, 4).part(1, 3).length.tolist() == [5, 1, 1, 2]


@pytest.mark.parametrize("looked", [False, True])
def test_a_part_travels_without_the_others(looked):
    many = columns_of({}, DOCUMENTS * 1000).spans
    part = many.part(4, 6)
    if looked:
        assert part.length.tolist() == [3, 1, 2]
    data = pickle.dumps(part)
    assert len(data) < 3000
    again = pickle.loads(data)
    for name in ("row_splits", *SPAN_COLUMNS):
        np.testing.assert_array_equal(getattr(again, name), getattr(part, name))


def test_a_name_that_no_span_has_is_an_error(spans):
    with pytest.raises(AttributeError, match="Spans has no attribute 'rows'"):
        _ = spans.part(0, 1).rows
