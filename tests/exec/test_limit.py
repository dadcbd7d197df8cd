"""A run that stops after some rows: the same rows as without, and a position that says so."""

import pytest

from zephon.errors import PlanError
from zephon.exec.delivery import Group, Position
from zephon.exec.lanes import LaneRows, Topology
from zephon.exec.limit import at_most, check_limit


def topology(**changes):
    settings = {"lanes": 2, "dp_degree": 1, "dp_group_id": 0, "global_batch_size": None}
    return Topology(**{**settings, **changes})


TURNS = [  # two lanes in turn, three rows each
    Group((LaneRows(0, 0, 3),), Position(rows={0: 3, 1: 0}, turn=1)),
    Group((LaneRows(1, 0, 3),), Position(rows={0: 3, 1: 3}, turn=0)),
    Group((LaneRows(0, 3, 6),), Position(rows={0: 6, 1: 3}, turn=1)),
]
STEPS = [  # steps of four rows, two of each lane, in batches of four
    Group((LaneRows(0, 0, 2), LaneRows(1, 0, 2)), Position(step=1)),
    Group((LaneRows(0, 2, 4), LaneRows(1, 2, 4)), Position(step=2)),
]


def limited(groups, rows, start=None, **changes):
    return list(at_most(iter(groups), start or Position(), topology(**changes), rows))


def test_whole_groups_are_left_alone():
    assert limited(TURNS, 6) == TURNS[:2]
    assert limited(TURNS, 100) == TURNS


def test_the_last_group_is_cut_and_its_lane_is_next_again():
    cut = Group((LaneRows(1, 0, 1),), Position(rows={0: 3, 1: 1}, turn=1))
    assert limited(TURNS, 4) == [TURNS[0], cut]


def test_rows_handed_out_before_count():
    assert limited(TURNS[1:], 6, start=TURNS[0].after) == [TURNS[1]]
    assert limited(TURNS[2:], 6, start=TURNS[1].after) == []


@pytest.mark.parametrize(
    ("rows", "parts", "after"),
    [
        (7, (LaneRows(0, 2, 4), LaneRows(1, 2, 3)), Position(step=1, delivered=3)),
        (6, (LaneRows(0, 2, 4),), Position(step=1, delivered=2)),
        (5, (LaneRows(0, 2, 3),), Position(step=1, delivered=1)),
    ],
)
def test_a_step_is_cut_in_its_order(rows, parts, after):
    assert limited(STEPS, rows, global_batch_size=4) == [STEPS[0], Group(parts, after)]


def test_ranks_that_share_steps_stop_after_whole_ones():
    shared = {"global_batch_size": 4, "dp_degree": 2}
    mine = [Group((LaneRows(0, 2 * t, 2 * t + 2),), Position(step=t + 1)) for t in range(3)]
    assert limited(mine, 8, **shared) == mine[:2]
    check_limit(topology(**shared), 8)
    with pytest.raises(PlanError, match="a multiple of global_batch_size=4, got 6; take 4"):
        check_limit(topology(**shared), 6)
    with pytest.raises(PlanError, match="set global_batch_size"):
        check_limit(topology(dp_degree=2), 8)
