"""Which process hands out which batches of a rank: lanes dealt to workers, and every n-th batch."""

import warnings

import pytest

from zephon.exec.delivery import Group, Position
from zephon.exec.lanes import LaneRows, Share, Topology
from zephon.exec.shares import busy, share_of, shared_out


def topology(lanes, size=None, degree=1, group=0):
    return Topology(lanes=lanes, dp_degree=degree, dp_group_id=group, global_batch_size=size)


@pytest.mark.parametrize(
    ("lanes", "workers", "active"),
    [(4, 1, 1), (4, 2, 2), (4, 3, 2), (4, 8, 4), (6, 4, 3), (6, 5, 3), (7, 6, 1), (1, 3, 1)],
)
def test_as_many_workers_have_lanes_as_can_have_equally_many(lanes, workers, active):
    assert busy(lanes, workers) == active
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shares = [
            share_of(topology(lanes), each, workers, None, by_lanes=True) for each in range(workers)
        ]
    assert [share is not None for share in shares] == [True] * active + [False] * (workers - active)
    dealt = [share.lanes for share in shares if share is not None]
    assert dealt == [tuple(range(lanes))[worker::active] for worker in range(active)]
    assert all(share.every == 1 and not share.passed for share in shares if share is not None)


def test_idle_workers_are_told_of_once_with_numbers_that_let_none_idle():
    said = r"this rank's 6 lanes are run by 3 of num_workers=5, the others idle; none does with "
    with pytest.warns(RuntimeWarning, match=said + "1, 2, 3, 6, nor") as caught:
        for worker in range(5):
            share_of(topology(6), worker, 5, None, by_lanes=True)
    assert len(caught) == 1


def test_a_rank_deals_its_own_lanes():
    rank = topology(8, degree=2, group=1)
    shares = [share_of(rank, worker, 2, None, by_lanes=True) for worker in range(2)]
    assert [share.lanes for share in shares] == [(4, 6), (5, 7)]


def test_with_whole_steps_each_worker_has_every_nth_batch():
    shares = [share_of(topology(4, 8), worker, 3, None, by_lanes=False) for worker in range(3)]
    assert shares == [Share(passed=worker, every=3) for worker in range(3)]


@pytest.mark.parametrize(
    ("share", "ours"),
    [
        (Share(), [0, 1, 2, 3, 4, 5, 6]),
        (Share(passed=2, every=3), [2, 5]),
        (Share(passed=4), [4, 5, 6]),
        (Share(passed=9, every=2), []),
    ],
)
def test_groups_of_others_are_marked_and_stay_in_their_place(share, ours):
    groups = [Group((LaneRows(0, n, n + 1),), Position(step=n + 1)) for n in range(7)]
    found = list(shared_out(iter(groups), share))
    assert [group.after for group in found] == [group.after for group in groups]
    assert [n for n, group in enumerate(found) if not group.elsewhere] == ours
