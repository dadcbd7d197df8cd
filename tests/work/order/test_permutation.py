import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.work.order.permutation import Permutation, permute, places

KEYS = st.integers(0, 2**64 - 1)


def back(order: Permutation, items: np.ndarray) -> np.ndarray:
    """Where items stand in one permutation."""
    return places(
        items, np.array([len(items)]), np.array([order.size]), np.array([order.key], np.uint64)
    )


def many(size: int, ranges: int) -> np.ndarray:
    """Whole permutations of one size under many keys, shape [ranges, size]."""
    return permute(
        np.tile(np.arange(size), ranges),
        np.full(ranges, size),
        np.full(ranges, size),
        seeds.subkeys(99, np.arange(ranges)),
    ).reshape(ranges, size)


@pytest.mark.parametrize("size", range(1, 301))
def test_every_short_range_is_permuted(size: int) -> None:
    items = many(size, 8)
    assert (np.sort(items, axis=1) == np.arange(size)).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 100_000), KEYS)
def test_a_range_of_any_size_is_permuted_and_back(size: int, key: int) -> None:
    order = Permutation(size, key)
    items = order.at(np.arange(size))
    assert (np.bincount(items, minlength=size) == 1).all()
    some = np.arange(0, size, max(1, size // 50))
    assert (back(order, items[some]) == some).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(64, 10**12), KEYS, st.integers(0, 2**32))
def test_huge_ranges_come_back_from_where_they_went(size: int, key: int, seed: int) -> None:
    order = Permutation(size, key)
    positions = seeds.generator(seed).integers(size, size=500)
    items = order.at(positions)
    assert items.min() >= 0
    assert items.max() < size
    assert (back(order, items) == positions).all()
    assert (order.at(back(order, positions)) == positions).all()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 200), st.integers(0, 30), KEYS), min_size=1, max_size=20),
    st.integers(0, 2**32),
)
def test_many_ranges_at_once_equal_one_by_one(
    ranges: list[tuple[int, int, int]], seed: int
) -> None:
    rng = seeds.generator(seed)
    asked = [rng.integers(size, size=length) for size, length, _ in ranges]
    sizes, lengths = (np.array([one[i] for one in ranges]) for i in (0, 1))
    keys = np.array([key for _, _, key in ranges], dtype=np.uint64)
    for together, alone in ((permute, Permutation.at), (places, back)):
        expected = [
            alone(Permutation(size, key), values)
            for (size, _, key), values in zip(ranges, asked, strict=True)
            if len(values)
        ]
        found = together(np.concatenate(asked), lengths, sizes, keys)
        assert found.tolist() == [item for items in expected for item in items.tolist()]


def test_a_long_call_equals_short_ones() -> None:
    order = Permutation(10**9, 5)
    positions = np.arange(50_000)
    parts = [order.at(positions[i : i + 7_000]) for i in range(0, 50_000, 7_000)]
    assert (order.at(positions) == np.concatenate(parts)).all()


def test_does_not_touch_what_it_reads() -> None:
    for size in (10, 1000):
        positions = np.arange(size)
        positions.flags.writeable = False
        Permutation(size, 1).at(positions)
        back(Permutation(size, 1), positions)


@pytest.mark.parametrize("size", [1, 3, 63, None])
def test_very_many_short_ranges_equal_a_few_at_a_time(size: int | None) -> None:
    rng = seeds.generator(4)
    number = 3_000_000 if size == 1 else 40_000
    sizes = rng.integers(1, 64, size=number) if size is None else np.full(number, size)
    lengths = rng.integers(0, 3, size=number)
    positions = rng.integers(np.repeat(sizes, lengths))
    keys = seeds.subkeys(5, np.arange(number))
    found = permute(positions, lengths, sizes, keys)
    starts = np.cumsum(lengths) - lengths
    for first in range(0, number, number // 20):
        some, asked = slice(first, first + 10), slice(starts[first], starts[first + 10])
        few = permute(positions[asked], lengths[some], sizes[some], keys[some])
        assert (found[asked] == few).all()


@pytest.mark.parametrize("size", [2, 5, 17, 63, 64, 65, 66, 81, 100, 127])
def test_every_item_lands_everywhere_equally_often(size: int) -> None:
    ranges = 200 * size
    items = many(size, ranges)
    landed = np.zeros((size, size))
    for position in range(size):
        landed[position] = np.bincount(items[:, position], minlength=size)
    expected = ranges / size
    chi_square = ((landed - expected) ** 2 / expected).sum()
    freedom = (size - 1) ** 2
    assert abs(chi_square - freedom) < 4 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("size", [5, 63, 64, 65, 100, 1000])
def test_neighbours_land_independently(size: int) -> None:
    # The distance from an item to its neighbour is each of the others equally often.
    ranges = 400_000 // size
    items = many(size, ranges)
    distance = (items[:, 1:] - items[:, :-1]) % size
    counts = np.bincount(distance.ravel(), minlength=size)[1:]
    expected = counts.sum() / (size - 1)
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = size - 2
    # Distances of one range are not independent draws, so the bound is a wide one.
    assert chi_square < freedom + 8 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("size", [64, 65, 100, 1000, 99_991, 1_000_000])
def test_positions_do_not_correlate(size: int) -> None:
    positions = np.arange(size)
    ranges = max(1, 20_000 // size)
    items = many(size, ranges)
    correlations = [np.corrcoef(positions, one)[0, 1] for one in items]
    assert abs(np.mean(correlations)) < 5 / np.sqrt(size * ranges)
    next_to = [np.corrcoef(one[1:], one[:-1])[0, 1] for one in items]
    assert abs(np.mean(next_to) + 1 / size) < 5 / np.sqrt(size * ranges)
    displacement = np.abs(items - positions).mean() / size
    assert displacement == pytest.approx(1 / 3, abs=2 / np.sqrt(size * ranges))


@pytest.mark.parametrize("size", [1000, 4097, 1_000_000])
def test_blocks_scatter_over_blocks(size: int) -> None:
    # Where the rows of each tenth land, by tenths.
    items = Permutation(size, 3).at(np.arange(size))
    table = np.zeros((10, 10))
    np.add.at(table, (np.arange(size) * 10 // size, items * 10 // size), 1)
    expected = np.outer(table.sum(1), table.sum(0)) / size
    assert ((table - expected) ** 2 / expected).sum() < 81 + 4 * np.sqrt(2 * 81)


def test_neighbouring_keys_give_unrelated_orders() -> None:
    for size in (50, 1000):
        one, other = (Permutation(size, key).at(np.arange(size)) for key in (0, 1))
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(size)
        assert (one == other).mean() < 0.1
