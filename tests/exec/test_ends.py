"""Ranks that share steps stop before the same one, however uneven their lanes are."""

import threading
from dataclasses import dataclass
from itertools import count, islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.coordination.meetings import at_once
from zephon.errors import DataError, ExecutionError
from zephon.exec.delivery import Position
from zephon.exec.ends import Ends, Outlook, ending_together


class Meeting:
    """The least of all ranks' numbers, as a coordinator finds it."""

    def __init__(self, ranks):
        self._ranks = ranks
        self._changed = threading.Condition()
        self.rounds = []  # of each, the numbers by rank

    def ask_of(self, rank):
        mine = count()

        def ask(number):
            at = next(mine)
            with self._changed:
                self.rounds += [{}] * (at == len(self.rounds))
                self.rounds[at][rank] = number
                self._changed.notify_all()
            return Question(self, rank, at)

        return ask

    def is_known(self, at):
        return len(self.rounds[at]) == self._ranks

    def least(self, at):
        with self._changed:
            assert self._changed.wait_for(lambda: self.is_known(at), 20)
        return min(self.rounds[at].values())


@dataclass
class Question:
    meeting: Meeting
    rank: int
    at: int

    def look(self):
        """Hear it early on some ranks, at some questions."""
        if (self.rank + self.at) % 3 and self.meeting.is_known(self.at):
            return self.least()
        return None

    def least(self):
        return self.meeting.least(self.at)


def rank_of(meeting, rank, ranks, *, steps, fails, ahead, start=0, parts=2, worker=0, workers=1):
    """Deliver ``parts`` items a step; the data end, or fail, before step ``steps``.

    ahead: how many steps more it holds than it delivers, one number a step, over and over. Of all
    items a worker delivers every so-manieth.
    """
    at, held = start, 0

    def all_items():
        nonlocal at
        for at in range(start, steps):
            for part in range(1, parts):
                yield (at, part), Position(at, part)
            yield (at, parts), Position(at + 1)

    def items():
        yield from islice(all_items(), worker, None, workers)
        if fails:
            raise DataError(f"row of rank {rank}")

    def sure():
        nonlocal held
        held = min(max(held, at + 1 + ahead[at % len(ahead)]), steps)
        return held

    ends = Ends(rank, ranks, meeting.ask_of(rank), "rank {}".format)
    return [item for item, _ in ending_together(items(), ends, Position(start), sure)]


def run(ranks, **each):
    meeting = Meeting(len(ranks))
    calls = [
        lambda rank=rank, given=given: rank_of(meeting, rank, len(ranks), **given, **each)
        for rank, given in enumerate(ranks)
    ]
    return meeting, at_once(calls)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "steps": st.integers(3, 20),
                "fails": st.booleans(),
                "ahead": st.lists(st.integers(0, 7), min_size=1, max_size=5),
                "parts": st.integers(1, 3),
            }
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 3),
)
def test_all_ranks_deliver_the_steps_that_all_of_them_have(ranks, start):
    meeting, found = run(ranks, start=start)
    assert all(len(numbers) == len(ranks) for numbers in meeting.rounds)  # all asked as often
    steps = min(each["steps"] for each in ranks)
    last = [each for each in ranks if each["steps"] == steps]
    for rank, (each, items) in enumerate(zip(ranks, found, strict=True)):
        if all(one["fails"] for one in last):
            kind = DataError if each in last and isinstance(items, DataError) else ExecutionError
            assert isinstance(items, kind)
            continue
        parts = range(1, each["parts"] + 1)
        assert items == list(product(range(start, steps), parts)), rank


def test_the_rank_that_fails_raises_its_own_error_and_the_others_name_it():
    fine, bad = (
        {"steps": 5, "fails": False, "ahead": [3]},
        {"steps": 2, "fails": True, "ahead": [9]},
    )
    _, found = run([fine, bad, fine])
    assert str(found[1]) == "row of rank 1"
    for each in (found[0], found[2]):
        assert isinstance(each, ExecutionError)
        assert str(each).startswith("step 2: rank 1 failed there")


@pytest.mark.parametrize("heard", [1, 2, 3])
@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        ([24], [(0, 0), (22, 25), (44, 47), (66, 69), (88, 91)]),
        # Who holds no more than it delivers has nothing new to say beforehand.
        ([0], [(step, step) for step in range(95)]),
        # Nor has one that reads on only when it has to: it asks again, and again beforehand.
        (range(9, -1, -1), [(0, 0), *((n + k, n + 10) for n in range(0, 90, 10) for k in (7, 10))]),
    ],
)
def test_ranks_ask_shortly_before_they_have_to_know(ahead, told, heard):
    """At which steps a rank asks, and hears the answer: once it looks and that is there."""
    step, held, found = 0, 0, []

    class Answer:
        def __init__(self, number):
            self.number, self.asked = number, step

        def look(self):
            assert step > self.asked
            return self.least() if step >= self.asked + heard else None

        def least(self):
            found.append((self.asked, step))
            return self.number

    ends = Ends(0, 1, Answer, str)
    for step in range(95):
        held = max(held, step + 1 + ahead[step % len(ahead)])
        assert ends.has(step, held, Outlook.MORE)
    assert found == [(asked, min(asked + heard, needed)) for asked, needed in told]


def test_who_has_read_far_ahead_asks_seldom():
    ranks = [{"steps": 100, "fails": False, "ahead": [24]}] * 2
    meeting, found = run(ranks)
    assert found[0] == found[1] and len(found[0]) == 200
    assert len(meeting.rounds) == 7  # at steps 0, 22, 44, 66, 88, where it holds all, and the end


@pytest.mark.parametrize("ahead", [[0], [5], [0, 5, 1]])
def test_a_rank_that_is_done_with_a_step_waits_for_the_others(ahead):
    """Checkpoints within a step may leave one rank at its end and the other in its middle."""
    meeting = Meeting(2)
    whole = {"steps": 4, "fails": False, "ahead": ahead}
    found = at_once(
        [
            lambda: rank_of(meeting, 0, 2, **whole, start=2),
            lambda: rank_of(meeting, 1, 2, **whole, start=1),
        ]
    )
    assert found[0] == list(product(range(2, 4), (1, 2)))
    assert found[1] == list(product(range(1, 4), (1, 2)))


@pytest.mark.parametrize("parts", [(1, 1, 1), (1, 2, 3)])
@pytest.mark.parametrize("steps", [(7, 8, 9), (9, 8, 7), (8, 8, 8), (12, 7, 7)])
@pytest.mark.parametrize("workers", [2, 3])
def test_workers_of_one_number_stop_at_the_end_of_the_whole_run(workers, steps, parts):
    """They do not come to all steps, nor to the same ones where ranks cut them otherwise."""
    found = []
    for worker in range(workers):
        ranks = [
            {"steps": s, "fails": False, "ahead": [a], "parts": p, "worker": worker}
            for s, a, p in zip(steps, (0, 3, 1), parts, strict=True)
        ]
        found.append(run(ranks, workers=workers)[1])
    for rank, each in enumerate(parts):
        items = sorted(item for of_worker in found for item in of_worker[rank])
        assert items == list(product(range(min(steps)), range(1, each + 1)))
