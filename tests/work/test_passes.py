import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds
from zephon.work import passes as passes_module
from zephon.work.deal import Runs
from zephon.work.passes import Passes


def make(counts: list[int], name: str = "a", **changes: bool) -> Passes:
    flags = {"shuffle_shards": True, "shuffle_within_shard": True, "fresh": True} | changes
    return Passes(seed=1, name=name, counts=np.array(counts, dtype=np.int64), **flags)


def whole(passes: Passes, first: int, last: int) -> Runs:
    pass_index = np.arange(first, last + 1)
    return Runs(pass_index, np.zeros_like(pass_index), np.full_like(pass_index, passes.rows))


def shard_orders(passes: Passes, first: int, last: int) -> list[list[int]]:
    pieces = passes.pieces(whole(passes, first, last))
    return [
        pieces.shard[pieces.pass_index == pass_index].tolist()
        for pass_index in range(first, last + 1)
    ]


def places(passes: Passes, runs: Runs) -> list[tuple[int, int, int, int]]:
    pieces = passes.pieces(runs)
    assert (pieces.length > 0).all()
    return [
        (int(pass_index), int(shard), int(start) + i, int(key))
        for pass_index, shard, start, length, key in zip(
            pieces.pass_index, pieces.shard, pieces.start, pieces.length, pieces.key, strict=True
        )
        for i in range(int(length))
    ]


COUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=90).filter(any)


@settings(max_examples=60, deadline=None)
@given(COUNTS, st.integers(0, 5), st.integers(0, 3), st.booleans(), st.booleans(), st.data())
def test_any_part_of_any_passes_is_part_of_the_whole(
    counts: list[int], first: int, more: int, shuffle: bool, fresh: bool, data: st.DataObject
) -> None:
    passes = make(counts, shuffle_shards=shuffle, fresh=fresh)
    one_by_one = [places(passes, whole(passes, p, p)) for p in range(first, first + more + 1)]
    for row_list in one_by_one:
        assert sorted((shard, place) for _, shard, place, _ in row_list) == [
            (shard, place) for shard, rows in enumerate(counts) for place in range(rows)
        ]
    everything = [place for row_list in one_by_one for place in row_list]
    assert places(passes, whole(passes, first, first + more)) == everything
    cuts = sorted(data.draw(st.sets(st.integers(1, len(everything)), max_size=6)))
    cuts = [0, *cuts, len(everything)]
    edges = sorted({*cuts, *range(0, len(everything) + 1, passes.rows)})
    start = np.array(edges[:-1])
    runs = Runs(first + start // passes.rows, start % passes.rows, np.diff(edges))
    assert places(passes, runs) == everything


def test_many_shards_and_passes_are_taken_pass_by_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    together = make([2] * 100)
    expected = places(together, whole(together, 0, 5))
    monkeypatch.setattr(passes_module, "MERGED_SHARDS", 10)
    apart = make([2] * 100)
    assert places(apart, whole(apart, 0, 5)) == expected


def test_natural_order_without_shuffle() -> None:
    passes = make([1, 0, 2, 3], shuffle_shards=False)
    assert shard_orders(passes, 0, 1) == [[0, 2, 3]] * 2


def test_each_pass_has_an_order_of_its_own() -> None:
    orders = shard_orders(make([1] * 50), 0, 9)
    assert len({tuple(order) for order in orders}) == 10


def test_a_fixed_order_is_that_of_the_first_pass() -> None:
    fixed = make([1] * 50, fresh=False)
    fresh = make([1] * 50)
    assert shard_orders(fixed, 0, 3) == shard_orders(fresh, 0, 0) * 4
    keys = [{key for p, _, _, key in places(fixed, whole(fixed, 0, 3)) if p == q} for q in (0, 3)]
    assert keys[0] == keys[1]


def test_equally_shaped_components_move_independently() -> None:
    for size in (50, 1000):
        one, other = (shard_orders(make([1] * size, name), 0, 0)[0] for name in ("a", "b"))
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(size)


def test_each_shard_of_each_pass_has_a_key_of_its_own() -> None:
    passes = make([3] * 20)
    keys = {key for _, _, _, key in places(passes, whole(passes, 0, 4))}
    assert len(keys) == 100


def test_shards_without_rows_change_nothing() -> None:
    with_gaps, without = make([0, 4, 0, 5, 6, 0]), make([4, 5, 6])
    renamed = {0: 1, 1: 3, 2: 4}
    assert places(with_gaps, whole(with_gaps, 0, 3)) == [
        (pass_index, renamed[shard], place, key)
        for pass_index, shard, place, key in places(without, whole(without, 0, 3))
    ]


def test_threads_agree_and_tables_stay_few() -> None:
    counts = seeds.generator(3).integers(0, 50, size=400).tolist()
    alone, shared = make(counts), make(counts)
    asked = [*range(12)] * 4
    expected = {p: places(alone, whole(alone, p, p)) for p in range(12)}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda p: places(shared, whole(shared, p, p)), asked))
    assert answers == [expected[p] for p in asked]
    assert len(shared._kept._windows) <= passes_module.KEPT_WINDOWS


def test_copies_give_the_same_order() -> None:
    passes = make([5] * 30)
    expected = places(passes, whole(passes, 2, 2))
    for again in (copy.deepcopy(passes), pickle.loads(pickle.dumps(passes))):
        assert places(again, whole(again, 2, 2)) == expected
