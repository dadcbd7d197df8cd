import copy
import hashlib
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.work.order import passes as passes_module
from zephon.work.order.passes import Passes, Places
from zephon.work.order.permutation import Permutation
from zephon.work.order.runs import Runs


def make(
    counts: list[int] | np.ndarray, name: str = "a", block_size: int | None = None, **changes: bool
) -> Passes:
    flags = {"shuffle_shards": True, "shuffle_within_shard": True, "fresh": True} | changes
    counts = np.array(counts, dtype=np.int64)
    counts.flags.writeable = False
    return Passes(seed=1, name=name, counts=counts, block_size=block_size, **flags)


def whole(passes: Passes, first: int, last: int) -> Runs:
    pass_index = np.arange(first, last + 1)
    return Runs(pass_index, np.zeros_like(pass_index), np.full_like(pass_index, passes.rows))


def listed(places: Places) -> list[tuple[int, int, int]]:
    assert places.pass_index.dtype == np.int32
    assert places.shard.dtype == places.row.dtype == np.int64
    columns = (places.pass_index, places.shard, places.row)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def orders(passes: Passes, first: int, last: int) -> list[list[tuple[int, int]]]:
    found = listed(passes.rows_at(whole(passes, first, last)))
    return [[place[1:] for place in found if place[0] == p] for p in range(first, last + 1)]


def slow_pass(
    counts: list[int], pass_index: int, *, shards: bool, within: bool, block_size: int | None
) -> list[tuple[int, int]]:
    """One pass as (shard, row), as the design says it in words, one permutation after another."""
    with_rows = [shard for shard, count in enumerate(counts) if count]
    rows = sum(counts)

    def shuffled(items: list, *parts: int | str, size: int) -> list:
        key = seeds.key(1, "a", parts[0])
        for part in parts[1:]:
            key = int(seeds.subkeys(key, part)[0])
        return [items[i] for i in Permutation(size, key).at(np.arange(size)).tolist()]

    is_global = block_size is not None and block_size >= rows
    turns = list(range(len(with_rows)))
    if shards and not is_global:
        turns = shuffled(turns, "shards", pass_index, size=len(turns))
    order = []
    for turn in turns:
        row = list(range(counts[with_rows[turn]]))
        if within and not is_global:
            row = shuffled(row, "rows", pass_index, turn, size=len(row))
        order += [(with_rows[turn], each) for each in row]
    if block_size is None:
        return order
    blocks = [order[at : at + block_size] for at in range(0, rows, block_size)]
    return [
        place
        for number, block in enumerate(blocks)
        for place in shuffled(block, "blocks", pass_index, number, size=len(block))
    ]


COUNTS = st.lists(st.integers(0, 9) | st.integers(0, 90), min_size=1, max_size=20).filter(any)


@settings(max_examples=150, deadline=None)
@given(
    COUNTS,
    st.integers(0, 5),
    st.integers(0, 2),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.none() | st.integers(1, 100) | st.just(10**20),
    st.sampled_from([(10, 20), (100, 20), (4096, 2**16)]),
    st.data(),
)
def test_any_part_of_any_passes_is_part_of_the_slow_version(
    counts: list[int],
    first: int,
    more: int,
    switches: tuple[bool, bool, bool],
    block_size: int | None,
    merged: tuple[int, int],
    data: st.DataObject,
) -> None:
    shards, within, fresh = switches
    passes = make(
        counts,
        block_size=block_size,
        shuffle_shards=shards,
        shuffle_within_shard=within,
        fresh=fresh,
    )
    everything = [
        (p, *place)
        for p in range(first, first + more + 1)
        for place in slow_pass(
            counts, p if fresh else 0, shards=shards, within=within, block_size=block_size
        )
    ]
    ends = st.integers(0, len(everything))
    begin, end = sorted(data.draw(st.lists(ends, min_size=2, max_size=2, unique=True)))
    cuts = data.draw(st.sets(st.integers(begin, end), max_size=6))
    pass_ends = {at for at in range(0, len(everything), passes.rows) if begin < at < end}
    edges = np.array(sorted({begin, end, *cuts} | pass_ends))
    start = edges[:-1]
    runs = Runs(first + start // passes.rows, start % passes.rows, np.diff(edges))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes_module, "MERGED_SHARDS", merged[0])
        patch.setattr(passes_module, "MERGED_TABLE", merged[1])
        assert listed(passes.rows_at(runs)) == everything[begin:end]


@pytest.mark.parametrize(
    ("shards", "within", "digest"),
    [
        (False, False, "83392ae1d07892de"),
        (True, False, "7ec1f94c3487a365"),
        (False, True, "96b6aad4a357f81f"),
        (True, True, "1905bced60876d36"),
    ],
)
def test_the_order_without_blocks_is_what_it_always_was(
    shards: bool, within: bool, digest: str
) -> None:
    """These bytes are part of what STREAM_VERSION stands for."""
    passes = Passes(
        seed=42,
        name="prose",
        counts=np.array([3, 0, 70, 1, 64, 63, 200, 0, 5000, 12]),
        shuffle_shards=shards,
        shuffle_within_shard=within,
        block_size=None,
        fresh=True,
    )
    length = np.array([passes.rows - 10, passes.rows, 100])
    places = passes.rows_at(Runs(np.arange(3), np.array([10, 0, 0]), length))
    found = hashlib.blake2b(digest_size=8)
    for column in (places.pass_index, places.shard, places.row):
        found.update(column.astype("<i8").tobytes())
    assert found.hexdigest() == digest


def test_natural_order_without_shuffle() -> None:
    passes = make([1, 0, 2, 3], shuffle_shards=False, shuffle_within_shard=False)
    assert orders(passes, 0, 1) == [[(0, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]] * 2


def test_no_runs_have_no_rows() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    for block_size in (None, 2, 10):
        for counts in ([3], [0, 0], []):
            passes = make(counts, block_size=block_size)
            assert passes.rows == sum(counts)
            assert listed(passes.rows_at(Runs(nothing, nothing, nothing))) == []


@pytest.mark.parametrize("block_size", [None, 10, 50, 1000])
def test_each_pass_has_an_order_of_its_own(block_size: int | None) -> None:
    found = orders(make([1] * 50, block_size=block_size), 0, 9)
    assert len({tuple(order) for order in found}) == 10


@pytest.mark.parametrize("block_size", [None, 10, 50, 1000])
def test_a_fixed_order_is_that_of_the_first_pass(block_size: int | None) -> None:
    fixed = make([5] * 10, block_size=block_size, fresh=False)
    fresh = make([5] * 10, block_size=block_size)
    assert orders(fixed, 0, 3) == orders(fresh, 0, 0) * 4


@pytest.mark.parametrize("block_size", [None, 1, 7, 20, 1000])
def test_shards_without_rows_change_nothing(block_size: int | None) -> None:
    with_gaps, without = (
        make(counts, block_size=block_size) for counts in ([0, 4, 0, 5, 11, 0], [4, 5, 11])
    )
    renamed = {0: 1, 1: 3, 2: 4}
    assert orders(with_gaps, 0, 3) == [
        [(renamed[shard], row) for shard, row in order] for order in orders(without, 0, 3)
    ]


def test_blocks_of_one_row_change_nothing() -> None:
    assert orders(make([4, 5], block_size=1), 0, 2) == orders(make([4, 5]), 0, 2)


def test_a_block_as_long_as_a_pass_decides_all() -> None:
    counts = [40, 2, 30, 28]
    expected = orders(make(counts, block_size=100), 0, 2)
    for shards in (True, False):
        for within in (True, False):
            for block_size in (100, 101, 10**30):
                passes = make(
                    counts,
                    block_size=block_size,
                    shuffle_shards=shards,
                    shuffle_within_shard=within,
                )
                assert orders(passes, 0, 2) == expected
    assert orders(make(counts, block_size=99), 0, 2) != expected


@pytest.mark.parametrize("block_size", [None, 30, 10**6])
def test_threads_agree_and_tables_stay_few(block_size: int | None) -> None:
    counts = seeds.generator(3).integers(0, 50, size=400).tolist()
    alone, shared = make(counts, block_size=block_size), make(counts, block_size=block_size)
    asked = [*range(12)] * 4
    expected = {p: orders(alone, p, p) for p in range(12)}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda p: orders(shared, p, p), asked))
    assert answers == [expected[p] for p in asked]
    assert len(shared._kept._windows) <= passes_module.KEPT_WINDOWS


@pytest.mark.parametrize("block_size", [None, 30, 10**6])
def test_copies_give_the_same_order(block_size: int | None) -> None:
    passes = make([5, 0] * 30, block_size=block_size)
    expected = orders(passes, 2, 2)
    for again in (copy.deepcopy(passes), pickle.loads(pickle.dumps(passes))):
        assert orders(again, 2, 2) == expected


def test_passes_that_leave_shards_in_place_share_one_table() -> None:
    for passes in (make([5] * 30, block_size=1000), make([5] * 30, shuffle_shards=False)):
        for pass_index in range(9):
            passes.rows_at(whole(passes, pass_index, pass_index))
        assert len(passes._kept._windows) == 1


@pytest.mark.parametrize("block_size", [None, 8_000_000, 10**13])
def test_a_million_shards_hold_little(block_size: int | None) -> None:
    """However many passes were visited; the counts themselves belong to the caller."""
    counts = np.full(1_000_000, 1_000_000)
    tracemalloc.start()
    try:
        passes = make(counts, block_size=block_size)
        for pass_index in range(passes_module.KEPT_WINDOWS + 2):
            run = Runs(np.array([pass_index]), np.array([900_000_000_000]), np.array([100]))
            places = passes.rows_at(run)
            assert len({*listed(places)}) == 100
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 65e6
    assert peak < 100e6
