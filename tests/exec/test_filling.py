"""What to read next for a lane: by the shares of its strands, the emptiest first."""

import math

import pytest

from tests.exec.by_hand import chain_of, lane_of, token_lane
from zephon.exec.filling import MergedLane, Sizes, WholeLane, filling_of
from zephon.exec.lane_run import LaneRun

BESIDE = 256  # bytes that a document holds beside its tokens while it waits


def merged(
    weights, tokens, *, lane_bytes=1 << 20, lengths=None, endless=None, limit=None, **settings
):
    """Make a lane whose strands have documents of so many tokens."""
    lengths = lengths or [[n] * 10 for n in tokens]
    endless = range(len(tokens)) if endless is None else endless
    lane = token_lane(lengths, weights, endless=endless, **settings)
    run = LaneRun(0, lane, chain_of(None), len(tokens))
    return run, filling_of(run, Sizes(100.0, [4.0 * n for n in tokens]), lane_bytes, limit)


def bytes_of(plan, tokens):
    return sum(draws * (4 * tokens[strand] + BESIDE) for strand, draws in plan)


def test_a_whole_lane_reads_as_many_rows_as_fit():
    run = lane_of([10] * 50, chain_of(None))
    filling = filling_of(run, Sizes(40.0, [40.0]), 1000)
    assert isinstance(filling, WholeLane)
    assert filling.plan(400) == [(0, 10)]
    assert filling.plan(1) == [(0, 1)]
    assert filling.plan(10**9) == [(0, 50)]
    assert filling.has_more()
    run.intakes[0].next_draw = 50
    assert (filling.has_more(), filling.held()) == (False, 2000)


def test_no_more_is_read_ahead_than_can_be_needed_but_what_is_asked_for_is():
    run = lane_of([10] * 50, chain_of(None))
    filling = filling_of(run, Sizes(40.0, [40.0]), 1000, 7)
    assert filling.plan(10**9) == [(0, 7)]
    run.intakes[0].next_draw = 7
    assert not filling.has_more()
    assert filling.plan(400) == [(0, 10)]


def test_strands_are_not_read_further_ahead_than_can_be_needed():
    run, filling = merged((0.5, 0.5), (100, 100), limit=3)
    assert dict(filling.plan(10**6)) == {0: 3, 1: 3}
    for intake in run.intakes:
        intake.next_draw = 3
    filling.measure()
    assert not filling.has_more()


def test_nothing_is_read_for_a_lane_that_has_ended():
    """A lane may be restored behind its end, where nothing says that no draw follows."""
    run = lane_of([10] * 50, chain_of(None))
    filling = filling_of(run, Sizes(40.0, [40.0]), 1000)
    assert filling.has_more()
    run.end()
    assert not filling.has_more()


def test_strands_get_tokens_by_their_shares():
    tokens = (100, 100, 10)
    _, filling = merged((0.5, 0.25, 0.25), tokens)
    assert isinstance(filling, MergedLane)
    plan = dict(filling.plan(200_000))
    assert sorted(plan) == [0, 1, 2]
    assert plan[0] == pytest.approx(2 * plan[1], abs=2)
    assert plan[2] == pytest.approx(10 * plan[1], rel=0.2)
    assert bytes_of(plan.items(), tokens) == pytest.approx(200_000, rel=0.05)


def test_the_emptiest_comes_first_and_nothing_is_read_twice():
    run, filling = merged((0.5, 0.5), (100, 100), lane_bytes=80_000)
    for strand, draws in filling.plan(40_000):
        run.intakes[strand].next_draw += draws
    run.intakes[0].next_draw += 40
    filling.measure()
    plan = dict(filling.plan(20_000))
    assert set(plan) == {1}
    assert filling.ahead() < 80_000


def test_the_strand_that_is_waited_for_gets_a_document_whatever_its_share():
    tokens = (100, 10_000)
    run, filling = merged((1.0, 1e-9), tokens)
    assert run.wants == 0
    assert filling.lacking() == 0
    plan = filling.plan(1)
    assert plan[0][0] == 0
    run.intakes[0].next_draw = 100
    assert filling.lacking() is None
    assert dict(filling.plan(50_000)).get(1) == 1  # it has none, so one is read ahead


def test_a_portion_is_exceeded_by_one_document_at_most():
    tokens = (10_000, 1, 500)
    for portion in (1, 1000, 50_000, 3_000_000):
        _, filling = merged((0.4, 0.4, 0.2), tokens)
        plan = filling.plan(portion)
        assert plan
        assert bytes_of(plan, tokens) <= portion + 4 * max(tokens) + BESIDE


def test_few_strands_get_some_documents_rather_than_many_get_one():
    count = 100
    _, filling = merged([1.0] * count, [50] * count, lane_bytes=1 << 20)
    plan = filling.plan(20_000)
    assert len(plan) < 10
    assert max(draws for _, draws in plan) == 16


def test_a_finished_or_exhausted_strand_is_left_out():
    run, filling = merged((0.5, 0.5), (10, 10), endless=(), budgets=(0, None))
    assert {strand for strand, _ in filling.plan(10_000)} == {1}
    run.intakes[1].next_draw = 10
    filling.measure()
    assert filling.ahead() == math.inf
    assert not filling.has_more()


def test_sizes_are_learned():
    sizes = Sizes(100.0, [40.0, 400.0])
    assert [sizes.row(0), sizes.row(1), sizes.tokens(1)] == [40.0, 400.0, 100.0]
    sizes.learn(1, 10, 5000, 10)
    assert (sizes.row(0), sizes.row(1), sizes.knows(0)) == (40.0, 2000.0, False)
    sizes.learn(0, 10, 0, 10)  # empty documents say nothing of the others
    assert sizes.row(0) == 40.0


def test_rows_that_filters_leave_are_learned_but_never_below_an_eighth():
    sizes = Sizes(800.0, [800.0])
    sizes.learn(0, 10, 0, 5)
    assert sizes.row(0) == 400.0
    sizes.learn(0, 990, 0, 0)
    assert sizes.row(0) == 100.0
    sizes.learn(0, 1000, 50, 1)  # tokens
    assert sizes.row(0) == 100.0
