"""Samples by size: whatever is drawn, the estimate is right on average, and mostly close."""

import numpy as np
import pytest

from zephon.work.sampling import (
    Place,
    RowSample,
    draw_groups,
    draw_shards,
    half_by_size,
    steps,
    tokens_per_byte,
)

OFFSETS = (np.arange(500) + 0.5) / 500


def shards_of(seed, count):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 900, count)
    return rows, rows * rng.integers(1, 2_000, count)


def place(count, draws, chance=None):
    even = np.full(count, 1.0 / count) if chance is None else np.asarray(chance, float)
    return Place(shard=0, rows=np.arange(count), chance=even, weight=1.0, draws=draws, row_bytes=1)


def test_few_shards_are_all_drawn_and_stand_for_their_own_rows():
    rows, sizes = np.array([10, 0, 30]), np.array([100, 5, 900])
    found = draw_shards(rows, sizes, 4, 0.3)
    assert [(each.shard, each.hits) for each in found] == [(0, 1), (2, 3)]
    assert [each.weight for each in found] == [0.25, 0.75]


def test_many_shards_are_right_on_average():
    rows, sizes = shards_of(1, 200)
    value = np.sqrt(sizes + 1.0) * np.arange(200)
    wanted = (value * rows).sum() / rows.sum()
    guesses = []
    for offset in OFFSETS:
        found = draw_shards(rows, sizes, 16, offset)
        assert sum(each.hits for each in found) == 16
        assert all(rows[each.shard] for each in found)
        guesses.append(sum(each.weight * value[each.shard] for each in found))
    assert np.mean(guesses) == pytest.approx(wanted, rel=0.01)
    assert np.std(guesses) > 0


def test_huge_shards_are_drawn_more_often_than_tiny_ones():
    rows = np.full(100, 10)
    sizes = np.where(np.arange(100) == 7, 10_000, 1)
    hits = {each.shard: each.hits for each in draw_shards(rows, sizes, 16, 0.5)}
    assert hits[7] == 8
    assert sum(hits.values()) == 16


@pytest.mark.parametrize("draws", [1, 3, 7])
@pytest.mark.parametrize("huge", [100, 9_000])
def test_row_groups_are_right_on_average(draws, huge):
    rows = np.array([5, 0, 100, 100, huge, 37, 3, 100, 1])
    value = np.arange(9.0)[::-1] ** 2
    guesses = []
    for offset in OFFSETS:
        chosen, share = draw_groups(rows, draws, offset)
        assert share.sum() == pytest.approx(1)
        assert (np.diff(chosen) > 0).all()
        guesses.append((share * value[chosen]).sum())
    assert np.mean(guesses) == pytest.approx((rows * value).sum() / rows.sum(), rel=0.01)


def test_few_row_groups_are_all_drawn():
    chosen, share = draw_groups(np.array([2, 0, 6]), 2, 0.9)
    assert chosen.tolist() == [0, 2]
    assert share.tolist() == [0.25, 0.75]


@pytest.mark.parametrize("sized", [True, False])
def test_rows_are_right_on_average(sized):
    rng = np.random.default_rng(3)
    sizes = np.rint(rng.lognormal(4, 1.5, 3_000)).astype(np.int64)
    tokens = sizes // 4 + rng.integers(0, 9, 3_000)
    place_ = place(3_000, 100)
    guesses = []
    for offset in OFFSETS:
        sample = place_.choose(sizes if sized else None, offset)
        assert len(np.unique(sample.rows)) == len(sample.rows) <= 100
        assert sample.share.sum() == pytest.approx(1)
        guesses.append(sample.mean(tokens[sample.rows]))
    assert np.mean(guesses) == pytest.approx(tokens.mean(), rel=0.01)
    spread = np.std(guesses) / tokens.mean()
    assert spread < 0.02 if sized else spread > 0.1  # what sizes are looked at for


def test_a_tokenizer_that_cuts_long_documents_does_not_spoil_the_choice_by_size():
    rng = np.random.default_rng(4)
    sizes = np.rint(rng.lognormal(6, 2, 4_000)).astype(np.int64)
    tokens = np.minimum(sizes // 4, 64)
    guesses = [
        sample.mean(tokens[sample.rows]) / tokens.mean() - 1
        for sample in (place(4_000, 128).choose(sizes, offset) for offset in OFFSETS[::10])
    ]
    assert np.abs(guesses).max() < 0.05


def test_candidates_of_unequal_chance_count_by_it():
    """Two row groups that stand for the same rows, one of 10 and one of 1,000."""
    chance = np.repeat([0.05, 0.0005], [10, 1_000])
    tokens = np.repeat([1, 3], [10, 1_000])
    sizes = np.random.default_rng(5).integers(1, 99, 1_010)
    guesses = [
        sample.mean(tokens[sample.rows])
        for sample in (place(1_010, 50, chance).choose(sizes, offset) for offset in OFFSETS)
    ]
    assert np.mean(guesses) == pytest.approx(2, rel=0.01)


def test_few_candidates_are_all_counted():
    sample = place(5, 5).choose(np.array([1, 1, 1, 1, 10**12]), 0.5)
    assert sample.rows.tolist() == [0, 1, 2, 3, 4]
    assert sample.mean(np.array([1, 2, 3, 4, 5])) == pytest.approx(3)


def test_rows_that_cannot_be_read_leave_the_mean_to_the_others():
    sample = RowSample(np.arange(3), np.array([0.5, 0.25, 0.25]), np.ones(3))
    assert sample.mean(np.array([-1, 4, 8])) == pytest.approx(6)
    assert sample.mean(np.array([-1, -1, -1])) is None


def test_rows_of_no_size_at_all_are_drawn_evenly():
    sample = place(100, 10).choose(np.zeros(100, np.int64), 0.5)
    assert sample.rows.tolist() == list(range(5, 100, 10))
    assert half_by_size(np.array([0.5, 0.5]), np.zeros(2)).tolist() == [0.5, 0.5]


def test_steps_hit_the_last_unit_at_most():
    assert steps(np.array([0.5, 0.5]), np.arange(2), 3, np.nextafter(1, 0)).tolist() == [0, 1, 1]


def test_a_ratio_is_all_tokens_over_all_bytes():
    def one(weight, row_bytes):
        return Place(0, np.arange(1), np.ones(1), weight, 1, row_bytes)

    ratio, error = tokens_per_byte([one(0.75, 100.0), one(0.25, 20.0)], [25.0, 5.0], 1.0)
    assert (ratio, error) == (0.25, 0.0)
    ratio, error = tokens_per_byte([one(0.5, 100.0), one(0.5, 100.0)], [20.0, 30.0], 1.0)
    assert ratio == 0.25
    assert error == pytest.approx(0.2)  # the standard error of a mean of 20 and 30
    assert tokens_per_byte([one(0.5, 0.0)], [20.0], 4.0) == (5.0, 0.0)
