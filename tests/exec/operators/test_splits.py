"""Rows that are made of one are numbered within their draw."""

from dataclasses import replace

import numpy as np
import pytest

from tests.exec.operators.morsels import refs
from zephon.exec.operators.splits import split_refs


@pytest.mark.parametrize(
    ("last", "parent", "found"),
    [
        ([1, 1], [0, 0, 1], [(0, 0, 0), (0, 1, 1), (1, 0, 1)]),
        ([0, 1, 1], [0, 0, 1, 2, 2], [(0, 0, 0), (0, 1, 0), (0, 2, 1), (1, 0, 0), (1, 1, 1)]),
        ([0, 1, 0, 1], [0, 1, 2, 3, 3], [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 0), (1, 2, 1)]),
    ],
)
def test_children_of_a_draw_are_numbered_anew(last, parent, found):
    ends = np.array(last, bool)
    draw = np.cumsum([0, *ends[:-1]])
    before = replace(refs(len(last)), last_child=ends, ordinal=draw)
    made = split_refs(before, np.array(parent))
    columns = (made.ordinal, made.child, made.last_child)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == found
    assert made.row.tolist() == parent
    assert made.child.dtype == np.int32


def test_rows_that_stay_whole_stay_the_same():
    before = refs(3)
    assert split_refs(before, np.arange(3)) is before
