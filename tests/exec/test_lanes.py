"""Lanes, steps and ranks: shares of all ranks make the same step, whatever their number."""

import pytest

from zephon.errors import PlanError
from zephon.exec.lanes import check_microbatch, make_topology


def topology(size, lanes=None, degree=1, group=0, mapping="contiguous"):
    return make_topology(
        global_batch_size=size,
        canonical_replicas=lanes,
        dp_degree=degree,
        dp_group_id=group,
        mapping_strategy=mapping,
    )


def step_rows(size, lanes, degree, step):
    """List (lane, row) of a step as all ranks together deliver it."""
    shares = [topology(size, lanes, degree, g).share(step) for g in range(degree)]
    return [(r.lane, row) for share in shares for r in share for row in range(r.first, r.stop)]


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 6, 8, 12, 24, 48])
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6, 8, 12, 16, 24, 48])
def test_ranks_share_a_step_in_one_canonical_order(lanes, degree):
    height = 48 // lanes
    for step in (0, 5):
        wanted = [(lane, step * height + row) for lane in range(lanes) for row in range(height)]
        assert step_rows(48, lanes, degree, step) == wanted


def test_a_rank_runs_the_lanes_that_its_share_touches_and_no_other():
    assert topology(48, 4, 3, 1).own_lanes() == (1, 2)
    assert topology(48, 2, 8, 5).own_lanes() == (1,)


def test_a_share_can_begin_behind_rows_that_were_delivered():
    whole = topology(12, 3, 2, 1)
    rows = [(r.lane, row) for r in whole.share(2) for row in range(r.first, r.stop)]
    rest = [(r.lane, row) for r in whole.share(2, 4) for row in range(r.first, r.stop)]
    assert rest == rows[4:]


@pytest.mark.parametrize(("size", "lanes"), [(768, 64), (96, 32), (7, 1), (1, 1), (128, 64)])
def test_lanes_come_from_the_step_alone(size, lanes):
    assert topology(size).lanes == lanes


def test_without_a_global_batch_lanes_default_to_ranks_and_are_owned_whole():
    assert topology(None, None, 4, 1).lanes == 4
    owned = [topology(None, 7, 3, g).own_lanes() for g in range(3)]
    assert owned == [(0, 1, 2), (3, 4), (5, 6)]
    owned = [topology(None, 7, 3, g, "interleaved").own_lanes() for g in range(3)]
    assert owned == [(0, 3, 6), (1, 4), (2, 5)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((None, 2, 4, 0), "set global_batch_size"),
        ((10, 4), "global_batch_size=10 must be a multiple of canonical_replicas=4"),
        ((10, 5, 4, 0), "must be a multiple of dp_degree=4; near by, 1, 2, 5 ranks fit"),
        ((8, 4, 2, 2), r"dp_group_id must be in \[0, dp_degree=2\), got 2"),
        ((8, 4, 0, 0), "dp_degree must be at least 1, got 0"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_with_those_that_do(settings, message):
    with pytest.raises(PlanError, match=message):
        topology(*settings)


def test_a_microbatch_must_divide_the_share():
    check_microbatch(topology(48, 4, 2), 6)
    with pytest.raises(PlanError, match=r"24 rows of a step .* these do: 1, 2, 3, 4, 6, 8, 12, 24"):
        check_microbatch(topology(48, 4, 2), 5)
    with pytest.raises(PlanError, match=r"=6 must divide a rank's 20 rows .* left 4 rows in"):
        check_microbatch(topology(48, 4, 2), 6, delivered=4)
    check_microbatch(topology(None, 4, 2), 5)
