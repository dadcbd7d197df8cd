"""A run that stops after some rows: the same rows as without, and a position that says so."""

import pytest

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import PlanError
from zephon.exec.delivery import Group, Position
from zephon.exec.lanes import LaneRows, Topology
from zephon.exec.limit import all_out, at_most, check_limit


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


def test_all_rows_are_out_where_those_of_all_ranks_are():
    shared = topology(global_batch_size=4)
    assert [all_out(Position(step=1, delivered=n), shared, 6) for n in (1, 2, 3)] == [0, 1, 1]
    ranks = topology(global_batch_size=4, dp_degree=2)
    assert [all_out(Position(step=n), ranks, 8) for n in (1, 2)] == [False, True]
    assert not all_out(Position(step=1, delivered=1), ranks, 8)
    assert [all_out(Position(rows={0: n, 1: 3}), topology(), 6) for n in (2, 3)] == [False, True]
    assert not all_out(Position(step=100), shared, None)


def taking(rows, size=3, **options):
    numbers = Dataset.from_dict("numbers", {0: InMemoryShard([{"k": k} for k in range(100)])})
    source = StaticMixtureWorkSource(datasets=[numbers], mixture={"numbers": 1.0})
    return Pipeline(source).batch(size).take(rows).options(**options)


@pytest.mark.parametrize("runner", ["inline", "threads"])
@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (4, {"global_batch_size": 12}),
        (13, {"global_batch_size": 12}),
        (16, {"global_batch_size": 12, "canonical_replicas": 2}),
        (4, {}),
        (13, {"canonical_replicas": 2}),
        (12, {"global_batch_size": 12, "dp_degree": 2, "dp_group_id": 1}),
        (24, {"global_batch_size": 12, "dp_degree": 4, "dp_group_id": 2}),
    ],
)
def test_a_checkpoint_at_the_limit_is_restored_and_gives_nothing_more(rows, options, runner):
    pipe = taking(rows, runner=runner, **options)
    sizes = [len(batch) for batch in pipe]
    assert sum(sizes) == rows // options.get("dp_degree", 1)
    again = taking(rows, runner=runner, **options).restore(pipe.checkpoint(scope="local"))
    assert list(again) == []
    assert again.checkpoint(scope="local") == pipe.checkpoint(scope="local")
    assert again.accounting() == pipe.accounting()


def test_a_larger_limit_goes_on_from_a_cut_step_only_with_batches_that_fit_its_rest():
    pipe = taking(4, global_batch_size=12)
    assert len(list(pipe)) == 2
    with pytest.raises(PlanError, match=r"8 rows of a step that are left 4 rows .* a take\(\) may"):
        next(iter(taking(8, global_batch_size=12).restore(pipe.checkpoint())))
    more = taking(12, 2, global_batch_size=12).restore(pipe.checkpoint())
    assert [len(batch) for batch in more] == [2, 2, 2, 2]
