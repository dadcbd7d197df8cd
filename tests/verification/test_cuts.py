"""Where runs are cut: seeded, within the run, and each stretch in a manner that fits."""

import math
from itertools import pairwise

import pytest

from zephon.verification.cuts import Choices, Place, stretches

CHOICES = Choices(
    rows=768, microbatch=8, ranks=(1, 2, 3, 4, 6, 8, 16, 32), runners=("threads", "inline")
)


def made(ranks, seed, *, steps=8, cuts=3, choices=CHOICES):
    return list(stretches(ranks, steps, cuts, choices, seed=seed))


@pytest.mark.parametrize("ranks", [1, 3, 32])
def test_stretches_follow_each_other_and_fit(ranks):
    for seed in range(60):
        found = made(ranks, seed)
        assert found[0].start == Place() and found[0].manner.ranks == ranks
        assert found[-1].stop is None and len(found) <= 4
        for one, other in pairwise(found):
            assert one.stop == other.start and one.start < one.stop < Place(8)
            if other.start.rows:
                assert other.manner.ranks == one.manner.ranks
            else:
                assert other.manner.ranks != one.manner.ranks
            assert other.manner.runner != one.manner.runner
            assert other.manner.memory_budget != one.manner.memory_budget
        for each in found:
            share = 768 // each.manner.ranks
            assert share * each.manner.ranks == 768
            first = each.start.rows
            last = each.stop.rows if each.stop else 0
            size = each.manner.microbatch
            assert size <= 8 and math.gcd(share, share - first, size) == size
            begin = first if each.stop and each.stop.step == each.start.step else 0
            assert last == 0 or (last - begin) % size == 0


def test_a_seed_makes_the_same_cuts_and_another_others():
    assert made(6, 1) == made(6, 1)
    assert len({str(made(6, seed)) for seed in range(20)}) > 15


def test_all_kinds_of_cuts_come_up():
    every = [(one, other) for seed in range(60) for one, other in pairwise(made(6, seed))]
    assert {other.manner.ranks for _, other in every} == set(CHOICES.ranks)
    assert any(other.start.rows for _, other in every)
    assert {one.manner.as_bytes for one, _ in every} == {True, False}
    away = [other for one, other in every if one.manner.ranks != 6 and not other.start.rows]
    assert away and all(each.manner.ranks == 6 for each in away)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_few_steps_leave_few_places(steps):
    for seed in range(20):
        found = made(2, seed, steps=steps)
        assert all(each.stop is None or each.stop < Place(steps) for each in found)


def test_without_batches_rows_come_one_by_one():
    single = Choices(rows=4, microbatch=None, ranks=(1, 2, 4), runners=("inline",))
    for seed in range(20):
        for each in made(2, seed, choices=single):
            assert each.manner.microbatch is None and each.manner.runner in (None, "inline")
