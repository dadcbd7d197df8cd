"""Measuring a dataset: close to the truth, the same each time, and reading little."""

from dataclasses import dataclass

import numpy as np
import pytest

from zephon.errors import PlanError
from zephon.work import calibration
from zephon.work.calibration import Extent, measure

EXTENT = Extent(rows=2_048, least_shards=4, most_shards=16)


@dataclass(frozen=True)
class ShardShape:
    name: str
    group_rows: np.ndarray
    decoded_bytes: int

    @property
    def rows(self):
        return int(self.group_rows.sum())


class Data:
    """Tokens and bytes of rows, by shard and row group, with a dataset's face and a count's."""

    def __init__(self, tokens, sizes):
        self.tokens, self.sizes = tokens, sizes
        self.shards = [
            ShardShape(
                f"s{number}", np.array([len(g) for g in shard]), int(sum(map(np.sum, shard)))
            )
            for number, shard in enumerate(sizes)
        ]
        self.flat = [np.concatenate(shard) for shard in tokens]
        self.flat_sizes = [np.concatenate(shard) for shard in sizes]
        self.asked, self.groups = 0, set()

    def counts(self):
        return np.array([shard.rows for shard in self.shards])

    def raw_bytes(self):
        return np.array([shard.decoded_bytes for shard in self.shards])

    def total(self):
        return int(self.counts().sum())

    def mean_row_bytes(self, shards=None):
        which = slice(None) if shards is None else shards
        return int(self.raw_bytes()[which].sum()) / int(self.counts()[which].sum())

    def mean_group_bytes(self):
        return int(self.raw_bytes().sum()) / sum(len(shard.group_rows) for shard in self.shards)

    def __call__(self, name, shards, rows):
        self.asked += len(rows)
        found = np.zeros(len(rows), np.int64)
        for shard in np.unique(shards):
            mine = shards == shard
            found[mine] = self.flat[shard][rows[mine]]
            stops = np.cumsum(self.shards[shard].group_rows)
            groups = np.searchsorted(stops, rows[mine], side="right")
            self.groups |= {(int(shard), int(group)) for group in groups}
        return found

    def truth(self):
        return sum(map(np.sum, self.flat)) / self.total()

    def measured(self, seed=0, extent=EXTENT, count=None):
        found = measure("data", self, extent, seed, count or self)
        assert found.tokens_per_byte is not None
        return found.tokens_per_byte * self.mean_row_bytes()


class Sized:
    """A count that knows sizes."""

    def __init__(self, data):
        self.data = data

    def __call__(self, name, shards, rows):
        return self.data(name, shards, rows)

    def count_chosen(self, dataset, places, choose):
        found = []
        for number, (shard, rows) in reversed(list(enumerate(places))):  # any order will do
            chosen = rows[choose(number, self.data.flat_sizes[shard][rows])]
            found.append(self.data(dataset, np.full(len(chosen), shard), chosen))
        return found[::-1]

    def group_bytes(self, dataset, shard):
        return np.array([int(group.sum()) for group in self.data.sizes[shard]])


def heavy_tailed(seed, shards=8, groups=6, rows=700):
    rng = np.random.default_rng(seed)
    sizes = [
        [np.rint(rng.lognormal(6, 1.6, rows)).astype(np.int64) + 1 for _ in range(groups)]
        for _ in range(shards)
    ]
    tokens = [[g // 4 + rng.integers(1, 4, len(g)) for g in shard] for shard in sizes]
    return Data(tokens, sizes)


def one_or_a_thousand(seed, shards=5):
    """Documents of 1 and of 1,000 tokens; each shard has another share of long ones."""
    rng = np.random.default_rng(seed)
    tokens, sizes = [], []
    for _ in range(shards):
        share = rng.beta(0.4, 0.4)
        long = [rng.random(900) < share for _ in range(3)]
        tokens.append([np.where(each, 1_000, 1) for each in long])
        sizes.append([np.where(each, 4_100, 3) for each in long])
    return Data(tokens, sizes)


@pytest.mark.parametrize("make", [heavy_tailed, one_or_a_thousand])
@pytest.mark.parametrize("shards", [1, 5, 60])
def test_skewed_data_are_measured_within_a_few_percent(make, shards):
    for seed in range(4):
        data = make(seed, shards=shards)
        assert data.total() > EXTENT.rows
        off = data.measured(seed, count=Sized(data)) / data.truth() - 1
        assert abs(off) < 0.03, seed
        assert data.asked <= EXTENT.rows + len(data.shards)


def test_without_sizes_the_estimate_is_rougher_but_right_on_average():
    data = heavy_tailed(1)
    off = [data.measured(seed) / data.truth() - 1 for seed in range(30)]
    assert abs(np.mean(off)) < 0.03
    assert 0.03 < np.std(off) < 0.2


def test_a_small_dataset_is_counted_in_full():
    data = heavy_tailed(2, shards=3, groups=2, rows=50)
    assert data.measured() == pytest.approx(data.truth(), rel=1e-12)
    assert data.asked == data.total() == 300


def test_the_answer_depends_on_data_name_and_seed_alone():
    data = heavy_tailed(3)
    first = measure("data", data, EXTENT, 7, Sized(data))
    assert measure("data", data, EXTENT, 7, Sized(data)) == first
    assert measure("data", data, EXTENT, 8, Sized(data)) != first
    assert measure("other", data, EXTENT, 7, Sized(data)) != first


def test_no_more_shards_are_read_than_allowed():
    data = heavy_tailed(4, shards=100, groups=1, rows=60)
    data.measured(extent=Extent(rows=500, least_shards=2, most_shards=9))
    assert len({shard for shard, _ in data.groups}) <= 9
    assert 400 <= data.asked <= 500


def test_huge_row_groups_are_read_a_few_unless_they_differ(monkeypatch):
    monkeypatch.setattr(calibration, "LOOKED_AT_BYTES", 1)
    same = Data([[np.full(100, 25)]] * 100, [[np.full(100, 100)]] * 100)
    assert same.measured() == pytest.approx(25)
    assert len({shard for shard, _ in same.groups}) == EXTENT.least_shards
    rng = np.random.default_rng(5)
    differ = Data(
        [[np.full(100, level)] for level in rng.integers(10, 50, 100)],
        [[np.full(100, 100)]] * 100,
    )
    differ.measured()
    assert len({shard for shard, _ in differ.groups}) > 10


def test_many_small_row_groups_are_looked_at_and_few_rows_of_each_counted():
    data = heavy_tailed(6, shards=2, groups=300, rows=20)
    data.measured(count=Sized(data))
    assert len(data.groups) > 200
    assert data.asked <= EXTENT.rows


def test_bytes_of_row_groups_make_up_for_those_that_are_not_drawn(monkeypatch):
    monkeypatch.setattr(calibration, "LOOKED_AT_BYTES", 1 << 20)  # a tenth of the data

    class ShardsOnly(Sized):
        def group_bytes(self, dataset, shard):
            return None

    def error(count):
        data = [heavy_tailed(seed, shards=2, groups=60, rows=40) for seed in range(20)]
        off = [each.measured(count=count(each)) / each.truth() - 1 for each in data]
        return np.sqrt(np.mean(np.square(off)))

    assert error(Sized) < 0.02 < 0.06 < error(ShardsOnly)


def test_row_groups_of_unequal_length_are_right_on_average(monkeypatch):
    monkeypatch.setattr(calibration, "LOOKED_AT_BYTES", 1 << 20)  # a tenth of the data
    lengths = [100, 300] * 250
    data = Data([[np.full(n, n) for n in lengths]], [[np.full(n, 100) for n in lengths]])
    off = [data.measured(seed) / data.truth() - 1 for seed in range(60)]
    assert abs(np.mean(off)) < 0.02
    assert np.std(off) > 0


def test_rows_that_cannot_be_read_are_told_apart():
    data = heavy_tailed(7)
    for flat in data.flat:
        flat[::3] = -1
    found = measure("data", data, EXTENT, 0, data)
    assert found.asked > found.read
    assert found.read / found.asked == pytest.approx(2 / 3, abs=0.1)
    for flat in data.flat:
        flat[:] = -1
    found = measure("data", data, EXTENT, 0, data)
    assert (found.tokens_per_byte, found.read) == (None, 0)


def test_empty_shards_and_row_groups_are_passed_over():
    data = heavy_tailed(8, shards=30, groups=3, rows=120)
    for shard in (0, 5, 29):
        data.tokens[shard] = data.sizes[shard] = [np.zeros(0, np.int64)] * 3
    for shard in (1, 2):
        data.tokens[shard] = [*data.tokens[shard], np.zeros(0, np.int64)]
        data.sizes[shard] = [*data.sizes[shard], np.zeros(0, np.int64)]
    again = Data(data.tokens, data.sizes)
    assert again.measured(count=Sized(again)) / again.truth() == pytest.approx(1, abs=0.05)


def test_bytes_that_say_nothing_of_tokens_do_little_harm():
    """A few shards with huge images, whose rows have as many tokens as all others."""
    rng = np.random.default_rng(9)
    tokens = [[rng.integers(50, 150, 100)] for _ in range(200)]
    sizes = [[np.full(100, 10 ** rng.integers(2, 6))] for _ in range(200)]
    data = Data(tokens, sizes)
    off = [data.measured(seed) / data.truth() - 1 for seed in range(20)]
    assert np.sqrt(np.mean(np.square(off))) < 0.25


def test_data_of_no_known_size_have_a_ratio_too():
    data = Data([[np.full(3_000, 7)]], [[np.zeros(3_000, np.int64)]])
    found = measure("data", data, EXTENT, 0, data)
    assert found.tokens_per_byte == pytest.approx(7)


def whole_or_sampled():
    """Give data that are counted in full, and data that are sampled."""
    few = [[np.full(8, 4)] for _ in range(3)]
    return [Data(few, few), heavy_tailed(4)]


@pytest.mark.parametrize("by_size", [False, True])
@pytest.mark.parametrize("tokens", [2**40 + 1, 2**62, -2])
def test_a_count_that_no_row_can_have_names_the_row(tokens, by_size):
    for data in whole_or_sampled():
        data.flat[2][:] = tokens
        with pytest.raises(
            PlanError,
            match=rf"dataset 'data', shard 's2', row \d+: counting_spec .* got {tokens}; give -1",
        ):
            data.measured(count=Sized(data) if by_size else None)


@pytest.mark.parametrize(
    ("change", "came"),
    [
        (lambda found: found.astype(np.float64), r"got float64 of shape \[\d+\]"),
        (lambda found: [10**30] * len(found), r"got object of shape \[\d+\]"),
        (lambda found: found[:-1], r"got int64 of shape \[\d+\]"),
        (lambda found: found[:, None], r"got int64 of shape \[\d+, 1\]"),
        (lambda found: None, r"got object of shape \[\d*\]"),
    ],
)
def test_a_count_must_give_a_number_a_row(change, came):
    for data in whole_or_sampled():
        with pytest.raises(PlanError, match=rf"'data': counting_spec must give one int64 .*{came}"):
            data.measured(count=lambda *asked, data=data: change(data(*asked)))


def test_the_sum_of_large_counts_may_be_larger_than_64_bits():
    rows = 2**23
    large = Data([[np.full(rows, 2**40)]], [[np.full(rows, 8)]])
    extent = Extent(rows=rows, least_shards=4, most_shards=16)
    assert large.measured(extent=extent, count=lambda *asked: large.flat[0]) == 2.0**40
