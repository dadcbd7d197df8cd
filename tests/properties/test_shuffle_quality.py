"""A shuffle is a uniform random permutation, as far as counting can tell, and loses no row.

Seeds are fixed, so nothing here can flake. Each figure of an order is turned into a z-score with
the exact mean and variance that it has for a uniform random permutation; a uniform shuffle passes
4.5 once in 150,000 figures.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.work.order.passes import Passes
from zephon.work.order.runs import Runs

SURPRISING = 4.5
ROWS_LOOKED_AT = 200_000
SIZES = (2, 3, 10, 63, 64, 65, 100, 1000, 10_000, 1_000_000)
FULL_TABLE = 100  # items up to which each is counted in each place; above, tenths in tenths
BLOCKS = 3


def passes_of(counts, *, seed=7, name="a", shards=False, within=False, block=None, fresh=True):
    return Passes(
        seed=seed,
        name=name,
        counts=np.array(counts, dtype=np.int64),
        shuffle_shards=shards,
        shuffle_within_shard=within,
        block_size=block,
        fresh=fresh,
    )


def rows_of(passes: Passes, first: int, last: int) -> np.ndarray:
    """Number the rows of passes first to last as they come, shape [passes, rows]."""
    pass_index = np.arange(first, last + 1)
    places = passes.rows_at(
        Runs(pass_index, np.zeros_like(pass_index), np.full_like(pass_index, passes.rows))
    )
    assert (places.pass_index == np.repeat(pass_index, passes.rows)).all()
    return places.shard, places.row


def orders(kind: str, size: int, repeats: int, *, seed: int = 7, name: str = "a") -> np.ndarray:
    """Which item stands at each place, pass after pass, shape [repeats, size], int64."""
    last = repeats - 1
    match kind:
        case "shards":
            passes = passes_of(np.ones(size), seed=seed, name=name, shards=True)
            items, _ = rows_of(passes, 0, last)
        case "rows of a shard":
            _, items = rows_of(passes_of([size], seed=seed, name=name, within=True), 0, last)
        case "block":
            passes = passes_of([size * BLOCKS + 1], seed=seed, name=name, block=size)
            _, items = rows_of(passes, 0, -(-repeats // BLOCKS) - 1)
            items = items.reshape(-1, passes.rows)[:, :-1].reshape(-1, size)[:repeats] % size
        case "global":
            counts = np.array([size // 3, 0, size - size // 3])
            shard, row = rows_of(passes_of(counts, seed=seed, name=name, block=size), 0, last)
            items = row + np.where(shard == 2, size // 3, 0)
        case _:
            raise ValueError(kind)
    return items.reshape(repeats, size)


KINDS = ("shards", "rows of a shard", "block", "global")


@dataclass(frozen=True)
class Sample:
    kind: str
    size: int
    items: np.ndarray  # shape [repeats, size]

    @property
    def repeats(self) -> int:
        return len(self.items)


@pytest.fixture(
    scope="module",
    params=[(kind, size) for kind in KINDS for size in SIZES],
    ids=lambda pair: f"{pair[0]} of {pair[1]}",
)
def sample(request: pytest.FixtureRequest) -> Sample:
    kind, size = request.param
    return Sample(kind, size, orders(kind, size, max(2, ROWS_LOOKED_AT // size)))


def correlation_z(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation, over all repeats; its variance is 1/(size - 1) in each."""
    size = one.shape[1]
    middle, spread = (size - 1) / 2, (size * size - 1) * size / 12
    each = ((one - middle) * (other - middle)).sum(axis=1) / spread
    return float(each.sum() * np.sqrt((size - 1) / len(each)))


def chi_square_z(statistic: float, freedom: int) -> float:
    """By the cube root of Wilson and Hilferty (1931), nearly normal from one degree on."""
    part = 2 / (9 * freedom)
    return float(((statistic / freedom) ** (1 / 3) - (1 - part)) / np.sqrt(part))


def counted_z(count: float, mean: float, variance: float) -> float:
    return float((count - mean) / np.sqrt(variance))


def assert_unrelated(one: np.ndarray, other: np.ndarray) -> None:
    """As pairs of permutations, they agree where chance has it: at one place, plus or minus one."""
    assert abs(correlation_z(one, other)) < SURPRISING
    agreeing, pairs = (one == other).sum(), len(one)
    assert abs(counted_z(agreeing, pairs, pairs)) < SURPRISING


def places_of(items: np.ndarray) -> np.ndarray:
    return np.argsort(items, axis=1)


def test_each_is_a_permutation(sample: Sample) -> None:
    assert (np.sort(sample.items, axis=1) == np.arange(sample.size)).all()


def test_places_do_not_follow_the_source(sample: Sample) -> None:
    source = np.arange(sample.size)[None, :]
    assert abs(correlation_z(sample.items, source)) < SURPRISING


def test_passes_do_not_follow_each_other(sample: Sample) -> None:
    placed = places_of(sample.items)
    for distance in range(1, min(sample.repeats, 4)):
        assert_unrelated(placed[distance:], placed[:-distance])


def test_rows_move_a_third_of_the_size(sample: Sample) -> None:
    """Spearman's footrule; mean and variance by Diaconis and Graham (1977)."""
    size, repeats = sample.size, sample.repeats
    moved = np.abs(sample.items - np.arange(size)).sum()
    mean, variance = (size * size - 1) / 3, (size + 1) * (2 * size * size + 7) / 45
    assert abs(counted_z(moved, repeats * mean, repeats * variance)) < SURPRISING
    assert moved / repeats / size == pytest.approx(size / 3, rel=0.3)


def test_rows_land_everywhere_equally_often(sample: Sample) -> None:
    size, repeats = sample.size, sample.repeats
    bins = size if size <= FULL_TABLE else 10
    place = np.arange(size) * bins // size
    cell = place[None, :] * bins + sample.items * bins // size
    landed = np.bincount(cell.ravel(), minlength=bins * bins).reshape(bins, bins)
    share = np.bincount(place, minlength=bins) / size
    expected = np.outer(share, share) * size * repeats
    # The rows of one permutation exclude each other: that is worth the factor.
    statistic = ((landed - expected) ** 2 / expected).sum() * (size - 1) / size
    assert abs(chi_square_z(statistic, (bins - 1) ** 2)) < SURPRISING


def test_neighbours_do_not_stay_neighbours(sample: Sample) -> None:
    size, repeats = sample.size, sample.repeats
    mean = (size - 1) / size
    variance = (2 * size - 3) / size - mean * mean
    step = np.diff(sample.items, axis=1)
    for distance in (1, -1):
        together = (step == distance).sum()
        assert abs(counted_z(together, repeats * mean, repeats * variance)) < SURPRISING


def test_what_comes_next_is_not_near(sample: Sample) -> None:
    size, repeats = sample.size, sample.repeats
    if size < 10:
        return  # a few neighbours say nothing of near and far
    centred = sample.items - (size - 1) / 2
    spread = (size * size - 1) * size / 12
    serial = (centred[:, 1:] * centred[:, :-1]).sum() / spread
    assert abs(counted_z(serial, -repeats / size, repeats / size)) < SURPRISING


def test_equally_shaped_components_move_independently(sample: Sample) -> None:
    assert_unrelated(
        sample.items, orders(sample.kind, sample.size, sample.repeats, seed=7, name="b")
    )


@pytest.mark.parametrize("size", [10, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_seeds_give_unrelated_orders(kind: str, size: int) -> None:
    one, other = (orders(kind, size, 50_000 // size, seed=seed, name="a") for seed in (7, 8))
    assert_unrelated(one, other)


@pytest.mark.parametrize("size", [5, 63, 64, 1000])
@pytest.mark.parametrize("kind", ["rows of a shard", "block"])
def test_shards_and_blocks_of_one_pass_move_independently(kind: str, size: int) -> None:
    number = 100_000 // size
    if kind == "block":
        passes = passes_of([size * number + 1], block=size)
        items = rows_of(passes, 0, 0)[1][:-1] % size
    else:
        passes = passes_of(np.full(number, size), within=True)
        items = rows_of(passes, 0, 0)[1]
    items = items.reshape(number, size)
    assert_unrelated(items[1:], items[:-1])


@pytest.mark.parametrize("block", [None, 10, 200, 4000])
def test_a_fixed_order_is_that_of_pass_0(block: int | None) -> None:
    counts = [400, 0, 600, 500]
    fixed = passes_of(counts, shards=True, within=True, block=block, fresh=False)
    fresh = passes_of(counts, shards=True, within=True, block=block)
    first = np.stack(rows_of(fresh, 0, 0))
    for pass_index in (0, 1, 5):
        assert (np.stack(rows_of(fixed, pass_index, pass_index)) == first).all()
    assert (np.stack(rows_of(fixed, 0, 2)) == np.tile(first, 3)).all()
    assert (np.stack(rows_of(fresh, 1, 1)) != first).any()


def test_a_draw_from_all_of_a_huge_dataset_is_spread_evenly() -> None:
    shards, rows = 100_000, 10_000_000
    passes = passes_of(np.full(shards, rows), shards=True, within=True, block=10**15)
    taken = 100_000
    for start in (0, 900_000_000_000):
        run = Runs(np.array([3]), np.array([start]), np.array([taken]))
        places = passes.rows_at(run)
        row = places.shard * rows + places.row
        assert len(np.unique(row)) == taken
        for part in (places.shard * 100 // shards, places.row * 100 // rows):
            counts = np.bincount(part, minlength=100)
            statistic = ((counts - taken / 100) ** 2 / (taken / 100)).sum()
            assert abs(chi_square_z(statistic, 99)) < SURPRISING
        centred = row / (shards * rows) - 0.5
        serial = (centred[1:] * centred[:-1]).sum() * 12
        assert abs(counted_z(serial, 0, taken)) < SURPRISING
        # In a random draw two rows share a shard by chance, taken^2 / 2 times in so many shards.
        pairs = taken * taken / 2 / shards
        same = np.bincount(places.shard)
        assert abs(counted_z((same * (same - 1) / 2).sum(), pairs, pairs)) < SURPRISING


COUNTS = st.lists(st.integers(0, 9) | st.integers(0, 200), min_size=1, max_size=30).filter(any)
BLOCK_SIZES = st.sampled_from(["none", "1", "2", "n-1", "n", "n+1", "any", "larger"])


@st.composite
def any_passes(draw: st.DrawFn) -> tuple[list[int], Passes]:
    counts = draw(COUNTS)
    rows = sum(counts)
    block = {
        "none": None,
        "1": 1,
        "2": 2,
        "n-1": max(1, rows - 1),
        "n": rows,
        "n+1": rows + 1,
        "any": draw(st.integers(1, rows)),
        "larger": 10**18,
    }[draw(BLOCK_SIZES)]
    shards, within, fresh = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    made = passes_of(counts, shards=shards, within=within, block=block, fresh=fresh)
    return counts, made


@settings(max_examples=200, deadline=None)
@given(any_passes(), st.integers(0, 10**6), st.integers(0, 3))
def test_every_row_comes_once_a_pass(
    shape: tuple[list[int], Passes], first: int, more: int
) -> None:
    counts, passes = shape
    assert passes.rows == sum(counts)
    shard, row = (
        each.reshape(more + 1, passes.rows) for each in rows_of(passes, first, first + more)
    )
    number = np.sort((np.cumsum(counts) - counts)[shard] + row, axis=1)
    assert (number == np.arange(passes.rows)).all()
    assert (row < np.array(counts)[shard]).all()
    assert row.min() >= 0


@settings(max_examples=80, deadline=None)
@given(any_passes(), st.integers(0, 10**6), st.data())
def test_seeking_equals_walking(
    shape: tuple[list[int], Passes], first: int, data: st.DataObject
) -> None:
    """Any part of some passes, asked for as any runs, is what its positions give one by one."""
    _, passes = shape
    span = min(3 * passes.rows, 80)
    begin = data.draw(st.integers(0, 2 * passes.rows))
    cuts = data.draw(st.sets(st.integers(1, span), max_size=8))
    positions = begin + np.arange(span)
    one_by_one = [
        passes.rows_at(Runs(first + at // passes.rows, at % passes.rows, np.ones_like(at)))
        for at in np.split(positions, span)
    ]
    expected = [np.concatenate([getattr(p, name) for p in one_by_one]) for name in COLUMNS]
    ends = range(passes.rows, 5 * passes.rows, passes.rows)
    edges = np.array(
        sorted({begin, begin + span, *(begin + c for c in cuts)} | set(ends)), dtype=np.int64
    )
    edges = edges[(edges >= begin) & (edges <= begin + span)]
    start, length = edges[:-1], np.diff(edges)
    runs = Runs(first + start // passes.rows, start % passes.rows, length)
    middle = data.draw(st.integers(0, len(length)))
    together = passes.rows_at(runs)
    parts = [passes.rows_at(runs.slice(0, middle)), passes.rows_at(runs.slice(middle, len(length)))]
    for name, column in zip(COLUMNS, expected, strict=True):
        assert (getattr(together, name) == column).all()
        assert (np.concatenate([getattr(part, name) for part in parts]) == column).all()


COLUMNS = ("pass_index", "shard", "row")


def test_far_positions_are_those_of_a_walk() -> None:
    sizes = seeds.generator(3).integers(0, 2_000_000, size=500_000)
    for block in (None, 1000, 30_000_000, 10**15):
        passes = passes_of(sizes, shards=True, within=True, block=block)
        for at in (0, passes.rows // 2, passes.rows - 700):
            whole = passes.rows_at(Runs(np.array([2]), np.array([at]), np.array([700])))
            parts = [
                passes.rows_at(Runs(np.array([2]), np.array([at + i]), np.array([7])))
                for i in range(0, 700, 7)
            ]
            for name in COLUMNS:
                assert (
                    getattr(whole, name) == np.concatenate([getattr(part, name) for part in parts])
                ).all()
