"""Lanes that merge strands: each document once, in one order; memory bounded; nothing starves."""

import json
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.by_hand import (
    LAYOUT,
    Keeps,
    Measured,
    NumberedStrands,
    Splits,
    chain_of,
    token_lane,
    with_lost,
)
from tests.exec.lanes_written import lane_from_json, lane_to_json
from tests.exec.policies.small import HoldLast, UpTo, Weighing
from zephon.errors import CheckpointError
from zephon.exec import lane_run
from zephon.exec.endings import is_barren, rows_lost
from zephon.exec.lane_run import LaneRun
from zephon.exec.policies import Chain, Together, Wrap, token_merge
from zephon.exec.policies.apart import Apart
from zephon.exec.reread import read_again
from zephon.exec.runners import InlineRunner, ThreadsRunner
from zephon.exec.segment import Segment
from zephon.exec.supply import Supply

PLENTY = 1 << 40


def run_of(lane, max_length=None, state=None, chain=None, measures=()):
    chain = chain_of(max_length) if chain is None else chain
    return LaneRun(lane.lane, lane, chain, len(lane.strands), state, measures)


def segment_of(lengths, *more):
    return Segment([[NumberedStrands(lengths), *more]], LAYOUT, str)


def supply_of(runs, lengths, *more, runner=None, **settings):
    defaults = {"row_bytes": 40.0, "lane_bytes": PLENTY, "budget": PLENTY, "task_bytes": 2000}
    return Supply(
        runner or InlineRunner(), segment_of(lengths, *more), runs, **{**defaults, **settings}
    )


def order_of(run, first=0):
    """List the documents that arrived, as (component, row)."""
    refs = run.held.known(np.arange(first, run.held.next_seq)).refs
    return list(zip(refs.component.tolist(), refs.row.tolist(), strict=True))


def drain(supply, run):
    while not run.ended:
        supply.pull(run)
    return order_of(run)


LENGTHS = [
    np.random.default_rng(5).integers(0, 30, 70).tolist(),
    np.random.default_rng(6).integers(0, 200, 40).tolist(),
    [9] * 12,
]
WEIGHTS = (0.5, 0.3, 0.2)


@settings(max_examples=15, deadline=None)
@given(
    lanes=st.integers(1, 4),
    budget=st.integers(1, 40_000),
    task=st.integers(1, 9_000),
    row=st.sampled_from([0.1, 60.0, 1e6]),
    workers=st.integers(0, 3),
    ahead=st.sampled_from([1, 3000, PLENTY]),
    order=st.randoms(use_true_random=False),
)
def test_every_document_comes_once_and_in_one_order(
    lanes, budget, task, row, workers, ahead, order
):
    oracle = drain(supply_of([lone := run_of(token_lane(LENGTHS, WEIGHTS))], LENGTHS), lone)
    runs = [run_of(token_lane(LENGTHS, WEIGHTS, lane=lane)) for lane in range(lanes)]
    with closing(ThreadsRunner(workers) if workers else InlineRunner()) as runner:
        supply = supply_of(
            runs,
            LENGTHS,
            runner=runner,
            row_bytes=row,
            lane_bytes=ahead,
            budget=budget,
            task_bytes=task,
        )
        waiting = list(runs)
        while waiting:
            run = order.choice(waiting)
            supply.pull(run)
            supply.refill()
            if run.ended:
                waiting.remove(run)
    for run in runs:
        assert order_of(run) == oracle
        assert run.counts.rows.tolist() == list(map(len, LENGTHS))
        assert run.counts.tokens.tolist() == list(map(sum, LENGTHS))
    assert sorted(oracle) == [(c, r) for c, each in enumerate(LENGTHS) for r in range(len(each))]


def tokens_of(run, seqs):
    """List the tokens of documents, from the buffers that hold them."""
    part, start, _ = run.held.places(seqs)
    length = run.held.lengths(seqs)
    return [
        run.held.parts[p].buffer.columns["input_ids"][s : s + n].tolist()
        for p, s, n in zip(part.tolist(), start.tolist(), length.tolist(), strict=True)
    ]


def made_of(run, seqs):
    """List the tokens that documents were made with."""
    refs, lengths = run.held.known(seqs).refs, run.held.lengths(seqs)
    first = refs.component.astype(np.int64) * 10_000_000 + refs.row * 1000
    return [list(range(f, f + n)) for f, n in zip(first.tolist(), lengths.tolist(), strict=True)]


@settings(max_examples=8, deadline=None)
@given(
    lanes=st.integers(1, 4),
    task=st.sampled_from([1000, 8000, 40_000]),
    weights=st.sampled_from([WEIGHTS, (1.0, 1e-2, 1e-2), (1, 1, 1)]),
    seed=st.integers(0, 1000),
)
def test_letting_go_of_documents_changes_no_other(lanes, task, weights, seed):
    lengths = [each * 15 for each in LENGTHS]
    runs = [run_of(token_lane(lengths, weights, lane=lane), 50) for lane in range(lanes)]
    supply = supply_of(runs, lengths, task_bytes=task)
    waiting, rng = list(runs), np.random.default_rng(seed)
    while waiting:
        run = waiting[rng.integers(len(waiting))]
        supply.pull(run)
        if run.ended:
            waiting.remove(run)
        for _ in range(rng.integers(3)):
            for rows in run.take(int(rng.integers(run.rows_placed - run.rows_taken + 1))):
                assert tokens_of(run, rows.rows.seq) == made_of(run, rows.rows.seq)
            run.release()
        for part in run.held.parts.values():
            assert 0 <= part.buffer.live <= part.buffer.size
    for run in runs:
        for rows in run.take(run.rows_placed - run.rows_taken):
            assert tokens_of(run, rows.rows.seq) == made_of(run, rows.rows.seq)
        run.release()
        assert not any(part.waiting for part in run.held.parts.values())


def fetched(run):
    """Count what a lane has asked for and not handed out, in bytes as the supply counts them."""
    return (
        sum(
            (intake.next_draw - int(drawn)) * (4 * size + 256)
            for intake, drawn, size in zip(run.intakes, run.counts.rows, SIZES, strict=True)
        )
        + 4 * run.tokens_placed
    )


SIZES = (10_000, 1, 100)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("budget", [300_000, 2_000_000])
def test_long_documents_beside_short_ones_stay_within_the_budget(workers, budget):
    lengths = [[size] * 8 for size in SIZES]
    runs = [
        run_of(token_lane(lengths, (0.5, 0.5, 1e-6), lane=lane, endless=(0, 1, 2)), 1000)
        for lane in range(2)
    ]
    task = budget // 4
    document = 4 * max(SIZES) + 256
    with closing(ThreadsRunner(workers)) as runner:
        supply = supply_of(
            runs,
            lengths,
            runner=runner,
            budget=budget,
            task_bytes=task,
            component_bytes=(40_000.0, 4.0, 400.0),
        )
        for _ in range(120):
            for run in runs:
                supply.pull(run)
                assert sum(map(fetched, runs)) <= budget + task + len(runs) * 2 * document
                run.take(run.rows_placed - run.rows_taken)
                run.release()
            supply.refill()
    for run in runs:
        assert run.counts.tokens[:2].min() > 20_000
        assert abs(int(run.counts.tokens[0] - run.counts.tokens[1])) <= 10_000


def test_a_lane_does_not_read_far_ahead_in_what_it_seldom_needs():
    lengths = [[5] * 8, [5] * 8]
    run = run_of(token_lane(lengths, (1.0, 1e-6), endless=(0, 1)))
    supply = supply_of([run], lengths, task_bytes=20_000, lane_bytes=1 << 20)
    for _ in range(300):
        supply.pull(run)
    assert run.counts.rows[0] > 10_000
    assert run.intakes[1].next_draw <= 32


def test_a_block_that_mostly_is_merged_does_not_keep_its_buffer():
    """Many strands share the buffer of a task: one that waits long gets a copy of its own."""
    lengths = [[50] * 4000, [50] * 10]
    run = run_of(token_lane(lengths, (1.0, 1e-5), endless=(0,)), 100)
    supply = supply_of([run], lengths, task_bytes=200_000)
    for _ in range(40):
        supply.pull(run)
        run.take(run.rows_placed - run.rows_taken)
        run.release()
    kept = {id(part.buffer): part.buffer for part in run.held.parts.values()}
    waiting = [part for part in run.held.parts.values() if part.strand == 1]
    assert waiting
    assert all(2 * part.buffer.live >= part.buffer.size for part in run.held.parts.values())
    assert sum(b.columns["input_ids"].nbytes for b in kept.values()) <= 3 * 200_000


def test_what_was_read_of_a_finished_component_is_let_go():
    lengths = [[10] * 5000, [10] * 5000]
    run = run_of(token_lane(lengths, (0.5, 0.5), budgets=(200, None)), 50)
    supply = supply_of([run], lengths, task_bytes=100_000)
    while run.counts.rows[1] < 4000:
        supply.pull(run)
        run.take(run.rows_placed - run.rows_taken)
        run.release()
    assert run.counts.rows[0] == 20
    assert not [part for part in run.held.parts.values() if part.strand == 0]


def test_an_ended_lane_keeps_nothing_that_no_row_needs():
    lengths = [[10] * 50, [10] * 5000]
    run = run_of(token_lane(lengths, (0.5, 0.5), at_end=("stop", "finish")), 50)
    supply = supply_of([run], lengths, task_bytes=100_000)
    while not run.ended:
        supply.pull(run)
    run.take(run.rows_placed - run.rows_taken)
    run.release()
    assert len(run.held.parts) <= 1
    assert not supply._coming[0]


# State


@pytest.fixture
def _often(monkeypatch):
    monkeypatch.setattr(lane_run, "TICK", 8)


def push(run, lengths, sizes, *more):
    """Push to whichever strand is wanted, in blocks of given sizes."""
    segment, number = segment_of(lengths, *more), 0
    while (strand := run.wants) is not None:
        intake = run.intakes[strand]
        size = sizes[number % len(sizes)]
        number += 1
        draws = intake.stream.draw(intake.next_draw, size)
        (block,) = segment.run([draws])
        intake.next_draw += len(draws)
        run.push(block, strand, len(draws))
        yield


def written(run, rows):
    return json.dumps(lane_to_json(run.state_at(rows)))


def lane_settings(data):
    lengths = [data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=30)) for _ in range(3)]
    return lengths, {
        "weights": data.draw(st.sampled_from([(0.5, 0.3, 0.2), (1, 1, 1), (1, 1e-3, 2)])),
        "at_end": data.draw(st.sampled_from([("finish",) * 3, ("finish", "stop", "finish")])),
        "budgets": data.draw(st.sampled_from([(None,) * 3, (20, None, 33.3)])),
        "must_draw": data.draw(st.sampled_from([(None,) * 3, (20, 20, None)])),
        "endless": data.draw(st.sampled_from([(), (0,)])) if sum(lengths[0]) else (),
    }


@pytest.mark.usefixtures("_often")
@settings(max_examples=20, deadline=None)
@given(
    st.data(), st.sampled_from([None, 5, 17]), st.lists(st.integers(1, 9), min_size=1, max_size=4)
)
def test_a_lane_goes_on_from_any_state_as_if_it_had_never_stopped(data, max_length, sizes):
    lengths, parts = lane_settings(data)

    def start(state=None):
        return run_of(token_lane(lengths, **parts), max_length, state)

    whole = start()
    wanted = [written(whole, 0)]
    for _ in push(whole, lengths, [1]):
        wanted += [written(whole, rows) for rows in range(len(wanted), whole.rows_placed + 1)]
        if whole.rows_placed > 60:
            return
    rows = data.draw(st.integers(0, len(wanted) - 1))
    again = start(lane_from_json(json.loads(wanted[rows])))
    assert written(again, rows) == wanted[rows]
    for _ in push(again, lengths, sizes):
        again.forget_before(rows)
    for later in range(rows, len(wanted)):
        assert written(again, later) == wanted[later]
    assert again.counts.rows.tolist() == whole.counts.rows.tolist()
    assert again.counts.tokens.tolist() == whole.counts.tokens.tolist()


CHAINS = {
    "held back, wrapped": Chain([HoldLast(3), Wrap(max_length=7)]),
    "wrapped, held back": Chain([Wrap(max_length=5), HoldLast(2)]),
    "weights in force": Chain([Weighing(), HoldLast(4), Weighing()]),
    "joined by measure": Chain([Together(), UpTo(20), HoldLast(1)]),
    "rows together, apart": Chain([Together(), HoldLast(3), Apart(), Wrap(max_length=9)]),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
@pytest.mark.usefixtures("_often")
@settings(max_examples=6, deadline=None)
@given(st.data(), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_every_policy_of_a_chain_goes_on_from_any_state(chain, data, sizes):
    """Measures, splits and weights in force are as before; the end lets go what was held back."""
    lengths, parts = lane_settings(data)
    parts["endless"] = ()

    def start(state=None):
        return run_of(token_lane(lengths, **parts), None, state, chain, ("length", "weight"))

    def run_to_the_end(run, sizes):
        if not run.ended:
            yield from push(run, lengths, sizes, Measured(), Splits())
            run.end()
        yield

    whole = start()
    wanted = [written(whole, 0)]
    for _ in run_to_the_end(whole, [1]):
        wanted += [written(whole, rows) for rows in range(len(wanted), whole.rows_placed + 1)]
    rows = data.draw(st.integers(0, len(wanted) - 1) | st.just(len(wanted) - 1))
    state = lane_from_json(json.loads(wanted[rows]))
    assert json.dumps(lane_to_json(state)) == wanted[rows]
    again = start(state)
    assert written(again, rows) == wanted[rows]
    for _ in run_to_the_end(again, sizes):
        again.forget_before(rows)
    assert [written(again, later) for later in range(rows, len(wanted))] == wanted[rows:]
    whole.take(rows)
    left, wanted_left = (
        [mark for placed in run.take(run.rows_placed - rows) for mark in placed.marks.tolist()]
        for run in (again, whole)
    )
    assert left == wanted_left
    assert again.counts.rows.tolist() == whole.counts.rows.tolist()
    assert again.counts.tokens.tolist() == whole.counts.tokens.tolist()


def test_held_documents_are_read_again_by_their_place_in_their_strand():
    lengths = [[30, 40, 50, 60], [70, 20, 10, 90], [15] * 9]

    run = run_of(token_lane(lengths, WEIGHTS), 400)
    list(push(run, lengths, [2]))
    assert run.rows_placed == 1
    wanted = run.take(1)[0].rows.seq
    again = run_of(token_lane(lengths, WEIGHTS), 400, run.state_at(0))
    list(push(again, lengths, [3]))
    assert tokens_of(again, again.take(1)[0].rows.seq) == tokens_of(run, wanted)
    late = run_of(token_lane(lengths, WEIGHTS), 400, run.state_at(1))
    held = np.arange(late.held.next_seq)
    assert len(held)
    read_again(segment_of(lengths), [], late.held, held)
    assert tokens_of(late, held) == made_of(late, held)
    with pytest.raises(CheckpointError, match="other lengths than when the checkpoint"):
        shorter = [[n - 1 for n in each] for each in lengths]
        other = run_of(token_lane(lengths, WEIGHTS), 400, run.state_at(1))
        read_again(segment_of(shorter), [], other.held, np.arange(other.held.next_seq))


def test_a_state_of_the_other_kind_of_lane_is_refused():
    lengths = [[3] * 40, [4] * 40]
    run = run_of(token_lane(lengths, (1, 1)), 10)
    list(push(run, lengths, [5]))
    state = run.state_at(9)
    one_strand = token_lane(lengths, (1, 1)).strands[0]
    with pytest.raises(CheckpointError, match="must say where its components are"):
        LaneRun(0, one_strand, chain_of(10), 2, state)


def keeping(kept):
    """Lose rows, and with them the last ones of some strands."""
    return Keeps(
        lambda refs: np.array(
            [
                (c, r) in kept
                for c, r in zip(refs.component.tolist(), refs.row.tolist(), strict=True)
            ],
            bool,
        )
    )


@pytest.mark.usefixtures("_often")
@settings(max_examples=20, deadline=None)
@given(st.data(), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 3))
def test_strands_whose_last_rows_give_nothing_are_finished_when_they_are_due(data, sizes, seed):
    lengths, parts = lane_settings(data)
    parts["endless"], parts["must_draw"] = (), (None,) * 3
    kept = some_of(lengths, seed, 0.6)
    whole, again = there_and_again(data, lengths, parts, kept, sizes)
    if not any(parts["budgets"]) and "stop" not in parts["at_end"]:
        assert sorted(order_of(whole)) == sorted(kept)
    # What no document of its strand follows is not drawn, unless the strand itself is at its end.
    arrived = order_of(whole)
    lasts = [max((r for c, r in arrived if c == strand), default=-1) for strand in range(3)]
    drawn = whole.counts.rows.tolist()
    for last, count, each in zip(lasts, drawn, lengths, strict=True):
        assert count in (last + 1, len(each))
    if not any(parts["budgets"]):
        ended = [count == len(each) for count, each in zip(drawn, lengths, strict=True)]
        assert any(ended) if "stop" in parts["at_end"] else all(ended)
    gone = [[r for r in range(count) if (c, r) not in kept] for c, count in enumerate(drawn)]
    assert whole.counts.filtered.tolist() == [sum(r % 2 == 0 for r in each) for each in gone]
    assert whole.counts.dropped.tolist() == [sum(r % 2 for r in each) for each in gone]
    assert [c.tolist() for c in again.counts] == [c.tolist() for c in whole.counts]


def some_of(lengths, seed, share):
    """Choose rows, as (component, row)."""
    rng = np.random.default_rng(seed)
    every = [(c, r) for c, each in enumerate(lengths) for r in range(len(each))]
    return {pair for pair in every if rng.random() < share}


def there_and_again(data, lengths, parts, kept, sizes):
    """Run a lane of which few rows are kept, and again from a state; the states must be equal."""
    segment = segment_of(lengths, keeping(kept))

    def start(state=None):
        return run_of(token_lane(lengths, **parts), 7, state)

    def feed(run, sizes):
        number = 0
        while (strand := run.wants) is not None:
            intake = run.intakes[strand]
            first, size = intake.next_draw, sizes[number % len(sizes)]
            draws = intake.stream.draw(first, size)
            (block,) = segment.run([draws])
            intake.next_draw += len(draws)
            number += 1
            run.push(with_lost(block, draws), strand, len(draws))
            yield
        if not run.ended:
            run.end()
            yield

    whole = start()
    wanted = [written(whole, 0)]
    for _ in feed(whole, [3]):
        wanted += [written(whole, rows) for rows in range(len(wanted), whole.rows_placed + 1)]
    rows = data.draw(st.integers(0, len(wanted) - 1) | st.just(len(wanted) - 1))
    again = start(lane_from_json(json.loads(wanted[rows])))
    for _ in feed(again, sizes):
        pass
    assert [written(again, later) for later in range(rows, len(wanted))] == wanted[rows:]
    return whole, again


@pytest.fixture
def _soon(monkeypatch):
    monkeypatch.setattr(token_merge, "LEAST_BARREN", 40)


@pytest.mark.usefixtures("_often", "_soon")
@settings(max_examples=20, deadline=None)
@given(
    data=st.data(),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    seed=st.integers(0, 9),
    share=st.sampled_from([0.0, 0.1, 0.6]),
)
def test_a_lane_ends_when_all_draws_of_its_passes_are_known(data, sizes, seed, share):
    """Whatever they gave: rows that a filter drops at the end of a pass begin no further one."""
    sized = st.lists(st.integers(1, 12), min_size=1, max_size=12)
    lengths, parts = [data.draw(sized) for _ in range(3)], {"weights": (0.5, 0.3, 0.2)}
    passes = data.draw(st.sampled_from([1, 2]))
    must = tuple(passes * len(each) for each in lengths)
    parts |= {"endless": (0, 1, 2), "budgets": (None,) * 3, "at_end": ("finish",) * 3}
    parts["must_draw"] = must
    kept = some_of(lengths, seed, share)
    whole, again = there_and_again(data, lengths, parts, kept, sizes)
    drawn = whole.counts.rows.tolist()
    assert all(count >= least for count, least in zip(drawn, must, strict=True))
    gone = [
        [r % len(each) for r in range(count) if (c, r % len(each)) not in kept]
        for c, (count, each) in enumerate(zip(drawn, lengths, strict=True))
    ]
    assert whole.counts.filtered.tolist() == [sum(r % 2 == 0 for r in each) for each in gone]
    assert whole.counts.dropped.tolist() == [sum(r % 2 for r in each) for each in gone]
    assert [c.tolist() for c in again.counts] == [c.tolist() for c in whole.counts]
    alone = [(c, len(each)) for c, each in enumerate(lengths) if any(c == k for k, _ in kept)]
    for c, size in alone if len(alone) == 1 else ():
        assert order_of(whole) == [(c, r) for r in range(size) if (c, r) in kept] * passes
        assert drawn == list(must)


def test_an_endless_strand_of_which_nothing_is_left_is_given_up_with_an_error():
    """The other strand must not take its share silently, and nobody reads for ever."""
    lengths = [[5] * 10, [5] * 10]
    segment = segment_of(lengths, Keeps(lambda refs: refs.component == 0))
    run = run_of(token_lane(lengths, (1, 1), endless=(0, 1)))
    for read in range(1000):
        assert is_barren(run, 20) == (10 * (read - 1) > 32 * 20)
        if is_barren(run, 20):
            break
        intake = run.intakes[run.wants]
        draws = intake.stream.draw(intake.next_draw, 10)
        (block,) = segment.run([draws])
        intake.next_draw += len(draws)
        run.push(with_lost(block, draws), run.wants, len(draws))
    assert (run.wants, rows_lost(run)) == (1, 650)


def test_the_splits_of_a_row_count_together_and_stay_together():
    lengths = [[10] * 200, [10] * 300]
    run = run_of(token_lane(lengths, (0.5, 0.5)))
    supply = supply_of([run], lengths, Splits())
    while not run.ended:
        supply.pull(run)
    found = order_of(run)
    refs = run.held.known(np.arange(run.held.next_seq)).refs
    assert len(found) == 2 * 250 + 250
    emitted = np.zeros(2)
    for at, (component, row) in enumerate(found[:500]):
        emitted[component] += 10
        if refs.child[at] > 0:
            assert found[at - 1] == (component, row)
        if refs.last_child[at]:
            assert abs(emitted[0] - emitted[1]) <= 20
    assert np.diff(refs.ordinal).min() >= 0
    assert run.counts.rows.tolist() == [200, 300]
    assert run.held.known(np.arange(4)).position.tolist() == refs.row[:4].tolist()
