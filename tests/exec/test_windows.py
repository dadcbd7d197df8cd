"""Draws in whole windows, whatever asks for some of them."""

import numpy as np
import pytest

from tests.exec.by_hand import Counted
from zephon.exec.windows import whole_windows, windows_of
from zephon.work.edited_lane import EditedLane


@pytest.mark.parametrize(
    ("first", "draws", "left", "rounded"),
    [
        (0, 1, None, 4),
        (0, 4, None, 4),
        (3, 1, None, 1),
        (3, 2, None, 5),
        (8, 1, 2, 2),
        (8, 1, 9, 4),
    ],
)
def test_a_task_ends_with_a_window_or_with_the_lane(first, draws, left, rounded):
    assert whole_windows(first, draws, left, 4) == rounded


@pytest.mark.parametrize(
    ("draws", "wanted"),
    [
        ([], []),
        ([5], [4, 5, 6, 7]),
        ([0, 1, 9], [0, 1, 2, 3, 8, 9]),
        ([3, 4], [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_all_draws_of_the_windows_that_some_are_in(draws, wanted):
    found = windows_of(Counted(10), np.array(draws, np.int64), 4)
    assert found.ordinal.tolist() == wanted


@pytest.mark.parametrize(
    ("draws", "wanted"),
    [
        ([1], [0, 1, 2, 3]),
        ([4], [4, 5, 6, 7]),  # the edit stands before 6: what draw 4 saw then, it sees again
        ([6, 9], [6, 7, 8, 9, 10, 11]),
        ([13], [12, 13]),
    ],
)
def test_an_edit_ends_a_window_and_begins_one(draws, wanted):
    stream = EditedLane(Counted(14), 6, [(0, lambda: Counted(20))])
    found = windows_of(stream, np.array(draws, np.int64), 4)
    assert found.ordinal.tolist() == wanted
