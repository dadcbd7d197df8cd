"""The order of rows: mixtures at every prefix, fresh passes, and ids that mean physical rows."""

from collections import Counter

import numpy as np
import pytest

from tests.written import dataset, in_order, lines, pipeline
from zephon import Dataset, InMemoryShard, MixtureSpec, Pipeline, StaticMixtureWorkSource


def numbered(name, count, shards=3):
    rows = [{"input_ids": [i]} for i in range(count)]
    return dataset("in_memory", None, rows, name=name, shards=shards)


def ids(pipe):
    return [sample for batch in pipe.batch(1) for sample in batch.ids]


def order(source, lanes=1):
    return ids(Pipeline(source).options(runner="inline", canonical_replicas=lanes))


# Mixtures


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    "weights", [{"a": 0.5, "b": 0.5}, {"a": 2, "b": 3}, {"a": 0.05, "b": 0.95}]
)
def test_a_mixture_holds_at_every_prefix(shuffle, weights):
    """Without shuffling, all of one source and then all of the other is no mixture."""
    found = [numbered("a", 200), numbered("b", 200)]
    source = StaticMixtureWorkSource(
        found, MixtureSpec(weights), shuffle_shards=shuffle, shuffle_within_shard=shuffle
    )
    share = weights["a"] / sum(weights.values())
    drawn = [sample[0] for sample in order(source)]
    assert len(drawn) >= 200
    for n in range(1, len(drawn) + 1):
        assert abs(drawn[:n].count(0) - share * n) <= 1


def test_a_mixture_of_many_holds_at_every_prefix():
    weights = {f"d{i}": 1 + i for i in range(10)}
    found = [numbered(name, 60, 1) for name in weights]
    drawn = [sample[0] for sample in order(StaticMixtureWorkSource(found, weights))]
    total = sum(weights.values())
    for n in range(1, len(drawn) + 1):
        counts = Counter(drawn[:n])
        for i, weight in enumerate(weights.values()):
            assert abs(counts[i] - weight / total * n) <= 11


def test_a_step_over_many_lanes_holds_the_mixture():
    found = [numbered("a", 400), numbered("b", 400)]
    source = StaticMixtureWorkSource(found, {"a": 0.25, "b": 0.75})
    pipe = Pipeline(source).batch(32).options(global_batch_size=32, runner="inline")
    for step, batch in enumerate(pipe, 1):
        drawn = [sample[0] for sample in batch.ids]
        assert abs(drawn.count(0) - 8) <= 2, step


def test_a_weight_of_nothing_is_never_read(tmp_path):
    """Not even opened: its file is broken."""
    lines(tmp_path / "broken", "a.jsonl", ['{"input_ids": ['] * 20)
    broken = Dataset.from_path("broken", tmp_path / "broken")
    source = StaticMixtureWorkSource([broken, numbered("a", 20)], {"broken": 0, "a": 1})
    found = order(source)
    assert {sample[0] for sample in found} == {1}
    assert len(found) == 20


def test_small_datasets_are_no_error_and_lose_no_tail():
    source = StaticMixtureWorkSource([numbered("a", 3), numbered("b", 700)], {"a": 0.5, "b": 0.5})
    counts = Counter(order(source))
    assert len(counts) == 703
    assert {counts[sample] for sample in counts if sample[0] == 1} == {1}


# Passes


def test_a_new_pass_has_a_new_order():
    source = StaticMixtureWorkSource(
        [numbered("a", 1000, 1)], {"a": 1}, shuffle_within_shard=True, stop_after_passes=2, seed=1
    )
    found = [sample[2] for sample in order(source)]
    first, second = np.argsort(found[:1000]), np.argsort(found[1000:])
    assert sorted(found[:1000]) == sorted(found[1000:]) == list(range(1000))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.12
    assert abs(np.corrcoef(first, np.arange(1000))[0, 1]) < 0.12
    assert np.count_nonzero(first == second) < 10


def test_a_new_pass_may_repeat_the_old_order():
    source = StaticMixtureWorkSource(
        [numbered("a", 100)],
        {"a": 1},
        shuffle_within_shard=True,
        stop_after_passes=3,
        reshuffle_on_repeat=False,
    )
    found = order(source)
    assert found[:100] == found[100:200] == found[200:]
    assert found[:100] != sorted(found[:100])


def test_shards_come_in_another_order_each_pass():
    source = StaticMixtureWorkSource([numbered("a", 40, 20)], {"a": 1}, stop_after_passes=2)
    found = [sample[1] for sample in order(source)]
    assert sorted(found[:40]) == sorted(found[40:])
    assert found[:40] != found[40:]
    assert found[:40] != sorted(found[:40])


def test_two_datasets_of_one_shape_have_orders_of_their_own():
    def alone(name):
        source = StaticMixtureWorkSource(
            [numbered(name, 500, 1)], {name: 1}, shuffle_within_shard=True
        )
        return np.argsort([sample[2] for sample in order(source)])

    assert abs(np.corrcoef(alone("prose"), alone("code"))[0, 1]) < 0.15


def test_a_seed_is_an_order():
    def with_seed(seed):
        return order(
            StaticMixtureWorkSource(
                [numbered("a", 90)], {"a": 1}, shuffle_within_shard=True, seed=seed
            )
        )

    assert with_seed(3) == with_seed(3)
    assert len({tuple(with_seed(seed)) for seed in range(6)}) == 6


# Ids


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "jsonl.gz", "in_memory"])
def test_an_id_is_the_physical_row_however_it_is_read(tmp_path, kind):
    rows = [{"input_ids": [i], "n": i} for i in range(60)]
    data = dataset(kind, tmp_path, rows, shards=4)
    wanted = {}
    for shard, size in enumerate(data.counts().tolist()):
        for row in range(size):
            wanted[(0, shard, row)] = len(wanted)
    for settings in (
        {"runner": "inline"},
        *({"runner": "threads", "max_workers": n, "memory_budget": f"{n}kb"} for n in (1, 2, 5)),
    ):
        for shuffled in (False, True):
            work = in_order(data, shuffle_within_shard=shuffled)
            found = list(Pipeline(work).options(**settings))
            assert {r.meta.sample_id: int(r.payload["n"]) for r in found} == wanted
            if not shuffled:
                assert [int(r.payload["n"]) for r in found] == list(range(60))


def test_the_order_does_not_depend_on_the_runs(tmp_path):
    rows = [{"input_ids": [i] * (i % 7)} for i in range(90)]
    data = dataset("parquet", tmp_path, rows, shards=5)

    def run(workers):
        pipe = Pipeline(in_order(data, shuffle_within_shard=True)).pack_flat(8, algorithm="wrap")
        pipe.batch(2).options(runner="threads", max_workers=workers, memory_budget="2kb")
        return [batch.to_training(dtype=np.int64)["input_ids"].tolist() for batch in pipe]

    first = run(1)
    assert all(run(1 + n % 4) == first for n in range(12))


def test_every_format_of_several_blocks_gives_the_same_rows_in_the_same_order(tmp_path):
    """Row groups of Parquet, blocks of a megabyte of JSON lines, 4,096 rows in memory."""
    rng = np.random.default_rng(2)
    rows = [
        {"input_ids": rng.integers(0, 50_000, size).tolist(), "note": "x" * 200}
        for size in rng.integers(0, 150, 4200).tolist()
    ]
    found = []
    for kind in ("in_memory", "parquet", "jsonl", "jsonl.zst"):
        data = dataset(kind, tmp_path / kind, rows, name="rows")
        work = in_order(data, shuffle_within_shard=True, seed=4)
        pipe = Pipeline(work).pack_flat(512, algorithm="wrap").batch(8)
        pipe.options(canonical_replicas=2, runner="threads")
        items = iter(pipe)
        head = [next(items).to_training(dtype=np.int64)["input_ids"].tobytes() for _ in range(40)]
        state = pipe.checkpoint()
        items.close()
        rest = [batch.to_training(dtype=np.int64)["input_ids"].tobytes() for batch in pipe]
        assert rest[:40] == head
        resumed = pipe.restore(state)
        again = [b.to_training(dtype=np.int64)["input_ids"].tobytes() for b in resumed]
        assert head + again == rest
        found.append(rest)
    assert len(found[0]) > 60
    assert found[1:] == found[:-1]


def test_shards_are_ordered_bytewise_by_name(tmp_path):
    for name in ("b.jsonl", "A.jsonl", "10.jsonl", "9.jsonl", "ä.jsonl", "a.jsonl"):
        lines(tmp_path, name, [{"name": name}])
    found = [r.payload["name"] for r in pipeline(Dataset.from_path("names", tmp_path))]
    assert found == ["10.jsonl", "9.jsonl", "A.jsonl", "a.jsonl", "b.jsonl", "ä.jsonl"]


def test_ids_of_shards_in_memory_are_the_users_keys():
    data = Dataset.from_dict(
        "own", {30: InMemoryShard([{"n": 1}]), -2: InMemoryShard([{"n": 2}, {"n": 3}])}
    )
    found = [(r.meta.sample_id, r.payload["n"]) for r in pipeline(data)]
    assert found == [((0, -2, 0), 2), ((0, -2, 1), 3), ((0, 30, 0), 1)]
