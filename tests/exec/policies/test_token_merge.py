"""The merge by tokens: within one document of the target, the same however it is fed, resumable."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon.exec.policies.due_documents import StrandDocuments, due_times
from zephon.exec.policies.token_merge import LEAST_BARREN, TokenMerge
from zephon.work.course import Courses


class Lane:
    """Strands as lists of lengths; an endless one begins again after its last document."""

    def __init__(self, lengths, courses, *, endless=(), must=None, stops=(), budgets=None):
        self.lengths = [np.asarray(each, np.int64) for each in lengths]
        self.courses = courses if isinstance(courses, Courses) else Courses.constant(courses)
        self.endless = [c in endless for c in range(len(lengths))]
        self.must = must or [None] * len(lengths)
        self.stops = [c in stops for c in range(len(lengths))]
        self.budgets = budgets or [None] * len(lengths)

    def size(self, strand):
        return None if self.endless[strand] else len(self.lengths[strand])

    def length(self, strand, draw):
        return int(self.lengths[strand][draw % len(self.lengths[strand])])

    def known(self, strand, first, count):
        stop = first + count if self.endless[strand] else min(first + count, self.size(strand))
        draws = np.arange(first, stop)
        rows = max(len(self.lengths[strand]), 1)
        return StrandDocuments(draws, self.lengths[strand][draws % rows], draws // rows)

    def merge(self):
        return TokenMerge(
            self.courses,
            lengths=[self.size(c) for c in range(len(self.lengths))],
            stops=self.stops,
            must_draw=self.must,
            budgets=self.budgets,
        )


class Feed:
    """Runs a merge on what it asks for, in blocks of given sizes."""

    def __init__(self, lane, sizes=(1,), steps=(7,), point=None, tokens=None):
        self.lane, self.rule = lane, lane.merge()
        self.sizes, self.steps = list(sizes), list(steps)
        fresh = point is None
        self.state = self.rule.make_state() if fresh else self.rule.resume(point, tokens)
        self.read = [0] * len(lane.lengths) if fresh else point.position.tolist()
        self.order = []

    def run(self, most):
        while len(self.order) < most and not self.state.ended:
            step = min(self.steps[len(self.order) % len(self.steps)], most - len(self.order))
            self.order += self.rule.decide(self.state, step)
            strand = self.state.wants
            if strand is not None:
                self.give(strand, self.sizes[sum(self.read) % len(self.sizes)])
        return self.order

    def give(self, strand, count):
        known = self.lane.known(strand, self.read[strand], count)
        self.read[strand] += len(known.length)
        self.rule.add(self.state, strand, known, self.read[strand])


def slowly(lane, most):
    """Follow the rule as it is written, looking at every component for every document."""
    count = len(lane.lengths)
    drawn, total, base = [0] * count, [0] * count, [0] * count
    live = [lane.size(c) != 0 and (lane.budgets[c] or math.inf) > 0 for c in range(count)]
    began, order = 0, []
    courses = lane.courses if all(live) else lane.courses.rebased(0.0, np.array(live))

    def due(c, amount):
        starts, finishes = due_times(courses, c, np.array([amount]))
        return float(starts[0]), float(finishes[0])

    def holds(c):
        must = lane.must[c]
        return live[c] and must is not None and drawn[c] < must and start(c) < math.inf

    def start(c):
        return due(c, total[c] - base[c])[0]

    def over():
        waits = any(must is not None for must in lane.must)
        return not any(live) or (waits and not any(map(holds, range(count))))

    while len(order) < most and not over():
        time = sum(total) - began
        starts = {c: start(c) for c in range(count) if live[c]}
        ready = [c for c, s in starts.items() if s <= time]
        ready = ready or [min(starts, key=lambda c: (starts[c], c))]
        if any(drawn[c] == lane.size(c) for c in ready) or starts[ready[0]] == math.inf:
            break  # only a component that stops the lane stays live when it has ended
        c = min(ready, key=lambda c: due(c, total[c] - base[c] + lane.length(c, drawn[c])))
        ends = {c: due(c, total[c] - base[c] + lane.length(c, drawn[c]))[1] for c in ready}
        c = min(ready, key=lambda c: (ends[c], c))
        total[c] += lane.length(c, drawn[c])
        drawn[c] += 1
        order.append(c)
        ended = drawn[c] == lane.size(c) and not lane.stops[c]
        if ended or total[c] >= (math.inf if lane.budgets[c] is None else lane.budgets[c]):
            live[c], base, began = False, list(total), sum(total)
            courses = lane.courses.rebased(float(began), np.array(live))
    return order


@st.composite
def lanes(draw, most=8):
    count = draw(st.integers(1, most))
    length = draw(st.sampled_from([st.integers(0, 12), st.integers(1, 3), st.integers(0, 500)]))
    lengths = [draw(st.lists(length, min_size=0, max_size=25)) for _ in range(count)]
    endless = [c for c in range(count) if sum(lengths[c]) and draw(st.booleans())]
    weights = draw(
        st.lists(st.sampled_from([0.5, 1.0, 1.0, 3.0, 1e-3]), min_size=count, max_size=count)
    )
    passes = draw(st.sampled_from([None, 1, 2]))
    finite = draw(st.booleans())
    return Lane(
        lengths,
        draw(courses_of(np.array(weights) / sum(weights))),
        endless=endless,
        must=[
            None if passes is None or (finite and c not in endless) else passes * len(lengths[c])
            for c in range(count)
        ],
        stops=[c for c in range(count) if draw(st.booleans()) and draw(st.booleans())],
        budgets=[draw(st.sampled_from([None, None, 1, 20, 33.3])) for _ in range(count)],
    )


@st.composite
def courses_of(draw, weights):
    """Give constant weights, or some that change by steps or along lines."""
    kind = draw(st.sampled_from(["constant", "constant", "steps", "lines"]))
    if kind == "constant":
        return Courses.constant(weights)
    times = draw(st.lists(st.integers(1, 300), min_size=1, max_size=4, unique=True))
    share = st.sampled_from([0.0, 1.0, 1.0, 5.0])
    columns = [weights]
    for _ in times:
        column = draw(st.lists(share, min_size=len(weights), max_size=len(weights)))
        columns.append(np.array(column) / sum(column) if sum(column) else weights)
    left = np.array(columns).T.copy()
    right = left.copy()
    if kind == "lines":
        right[:, :-1] = left[:, 1:]
    return Courses.of(
        np.array([0.0, *sorted(map(float, times))]), left, right, np.ones(len(weights))
    )


@settings(max_examples=80, deadline=None)
@given(
    lanes(),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(1, 30), min_size=1, max_size=3),
)
def test_it_follows_the_rule_however_blocks_are_cut(lane, sizes, steps):
    wanted = slowly(lane, 150)
    assert Feed(lane, sizes, steps).run(150) == wanted


@settings(max_examples=100, deadline=None)
@given(lanes(5), st.data())
def test_it_goes_on_from_any_point_as_if_it_had_never_stopped(lane, data):
    wanted = Feed(lane, [5], [150]).run(150)
    cut = data.draw(st.integers(0, len(wanted)))
    begin = data.draw(st.integers(0, cut))  # a tick before the cut: what follows it is rolled
    first = Feed(lane, [3], [150])
    first.run(begin)
    drawn = np.bincount(wanted[:begin], minlength=len(lane.lengths)).tolist()
    point = first.rule.point(first.state)
    assert point.position.tolist() == drawn
    tokens = np.array([sum(lane.length(c, d) for d in range(n)) for c, n in enumerate(drawn)])
    again = Feed(lane, [4], [11], point, tokens)
    for strand in range(len(lane.lengths)):
        if wanted[begin:cut].count(strand):
            again.give(strand, wanted[begin:cut].count(strand))
    again.rule.roll(again.state, wanted[begin:cut])
    then = again.rule.point(again.state)
    whole = Feed(lane, [3], [150])
    whole.run(cut)
    same = whole.rule.point(whole.state)
    for name in ("position", "base", "live"):
        assert getattr(then, name).tolist() == getattr(same, name).tolist(), name
    assert wanted[:cut] + again.run(150 - cut) == wanted


def random_lane(seed, count, kind="constant", documents=60):
    rng = np.random.default_rng(seed)
    mean = rng.choice([2, 30, 1000], count)
    lengths = [rng.integers(0, 2 * mean[c], documents) for c in range(count)]
    weights = rng.random(count) ** 3 + 1e-4
    weights /= weights.sum()
    if kind == "constant":
        return Lane(lengths, weights, endless=range(count))
    times = np.concatenate([[0], np.cumsum(rng.integers(500, 20_000, 5))]).astype(float)
    left = rng.random((count, 6)) ** 2 * (rng.random((count, 6)) < 0.8)
    left[0] += 0.01
    left /= left.sum(axis=0)
    right = left.copy()
    if kind == "lines":
        right[:, :-1] = left[:, 1:]
    return Lane(lengths, Courses.of(times, left, right, np.ones(count)), endless=range(count))


@pytest.mark.parametrize("kind", ["constant", "steps", "lines"])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("seed", range(4))
def test_every_prefix_is_within_one_longest_document_of_the_target(count, kind, seed):
    lane = random_lane(seed, count, kind)
    order = Feed(lane, [17], [1000]).run(4000)
    longest = max(int(each.max()) for each in lane.lengths)
    emitted, drawn = np.zeros(count), [0] * count
    for strand in order:
        emitted[strand] += lane.length(strand, drawn[strand])
        drawn[strand] += 1
        target = lane.courses.at(float(emitted.sum()))
        assert np.abs(emitted - target).max() <= longest * (1 + 1e-9) + 1e-6


def test_no_document_is_lost_and_none_comes_twice():
    lane = Lane([[3, 0, 5]] * 3, [0.2, 0.3, 0.5])
    assert sorted(Feed(lane).run(100)) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_long_documents_beside_short_ones_share_tokens_evenly():
    lane = Lane([[10_000], [1]], [0.5, 0.5], endless=(0, 1))
    order = Feed(lane, [64], [1024]).run(200_000)
    assert abs(order.count(0) * 10_000 - order.count(1)) <= 10_000
    assert order.count(0) == 20


# Ends


def test_a_component_that_ends_gives_its_share_to_the_others():
    lane = Lane([[10] * 4, [10] * 100, [10] * 100], [0.5, 0.3, 0.2])
    order = Feed(lane).run(1000)
    assert len(order) == 204
    rest = order[max(i for i, c in enumerate(order) if c == 0) + 1 :]
    assert [rest[:50].count(1), rest[:50].count(2)] == [30, 20]


def test_a_component_without_rows_is_finished_before_the_first():
    lane = Lane([[], [5] * 4], [0.5, 0.5], stops=[0])
    assert Feed(lane).run(100) == [1, 1, 1, 1]
    assert Feed(Lane([[], []], [0.5, 0.5])).run(100) == []


def test_the_lane_stops_where_a_share_is_due_that_nobody_can_give():
    lane = Lane([[10, 10], [5] * 100], [0.5, 0.5], stops=[0])
    order = Feed(lane).run(100)
    assert order.count(0) == 2
    # 20 tokens of the first are its share until lane time 40: twenty of the second are due first.
    assert order.count(1) == 4


def test_a_budget_finishes_a_component_with_the_document_that_meets_it():
    lane = Lane([[7], [7]], [0.9, 0.1], endless=[0, 1], budgets=[20, None], must=[None, 10])
    order = Feed(lane).run(1000)
    assert (order.count(0), order.count(1)) == (3, 10)
    assert Feed(Lane([[7]], [1.0], endless=[0], budgets=[21])).run(100) == [0, 0, 0]
    assert Feed(Lane([[7]], [1.0], endless=[0], budgets=[21.5])).run(100) == [0, 0, 0, 0]


def test_a_lane_ends_when_all_have_drawn_what_they_must():
    lane = Lane([[1], [1], [1]], [0.6, 0.3, 0.1], endless=[0, 1, 2], must=[4, 2, None])
    order = Feed(lane).run(1000)
    assert order.count(0) >= 4
    assert order.count(1) >= 2
    assert order[-1] in (0, 1)
    assert (order[:-1].count(0) < 4) or (order[:-1].count(1) < 2)
    nothing = Lane([[1], [1]], [0.5, 0.5], endless=[0, 1], must=[0, None])
    assert Feed(nothing).run(100) == []


def test_no_end_waits_for_a_component_without_weight_from_here_on():
    times, left = np.array([0.0, 100.0]), np.array([[0.5, 1.0], [0.5, 0.0]])
    lane = Lane(
        [[1], [1]], Courses.of(times, left, left, np.ones(2)), endless=[0, 1], must=[300, 300]
    )
    order = Feed(lane, [9]).run(10_000)
    assert (order.count(0), order.count(1)) == (300, 50)


def test_a_component_waits_for_its_weight():
    times, left = np.array([0.0, 100.0]), np.array([[1.0, 0.5], [0.0, 0.5]])
    lane = Lane([[10], [10]], Courses.of(times, left, left, np.ones(2)), endless=[0, 1])
    order = Feed(lane, [9]).run(50)
    assert order[:10] == [0] * 10
    assert order[10:].count(1) == 20


def test_a_component_that_never_has_weight_is_never_asked_for():
    lane = Lane([[1], [1], [1]], [1 / 3, 0.0, 2 / 3], endless=[0, 1, 2])
    feed = Feed(lane, [9])
    feed.run(3000)
    assert feed.read[1] == 0


def test_only_components_whose_share_has_come_must_be_known():
    lane = Lane([[100] * 9, [1] * 999], [1e-4, 1 - 1e-4])
    feed = Feed(lane, [1], [1])
    feed.run(500)
    assert feed.read[0] == 1  # after its first document its share comes at 1,000,000 tokens


# Documents without a token


def test_empty_documents_are_drawn_and_do_not_count():
    lane = Lane([[0, 0, 4, 0], [4, 0, 0, 4]], [0.5, 0.5])
    assert sorted(Feed(lane, [2]).run(100)) == [0] * 4 + [1] * 4


def test_an_endless_component_of_empty_documents_is_given_up():
    lane = Lane([[0] * 10, [3] * 10], [0.5, 0.5], endless=[0, 1], must=[10, 10])
    order = Feed(lane, [50], [1024]).run(100_000)
    assert (order.count(0), order.count(1)) == (LEAST_BARREN, 10)
    long = Lane([[0] * 3000, [3] * 10], [0.5, 0.5], endless=[0, 1], must=[4000, 10])
    order = Feed(long, [50], [1024]).run(100_000)
    assert (order.count(0), order.count(1)) == (4000, 10)


def test_whether_a_lane_never_ends():
    def endless(**settings):
        return Lane([[1], [1]], [0.5, 0.5], **settings).merge().endless

    assert endless(endless=[0, 1])
    assert endless(endless=[0])
    assert not endless()
    assert not endless(endless=[0], stops=[1])
    assert endless(endless=[0, 1], stops=[1])
    assert not endless(endless=[0, 1], must=[None, 5])
    assert not endless(endless=[0, 1], budgets=[5, 5])
    assert endless(endless=[0, 1], budgets=[5, None])
