"""Many ranks on few or uneven shards: equal steps, equal ends, any topology from one state."""

import warnings
from collections import Counter

import numpy as np
import pytest

from tests.properties.recipes import packed, rows, rows_of, token_dataset
from tests.written import dataset, in_order
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import CheckpointError, PlanError


def shards_of(*sizes):
    """Make rows of one token each, numbered through, in shards of these sizes."""
    numbers = iter(range(sum(sizes)))
    shards = {
        i: InMemoryShard([{"input_ids": [next(numbers)]} for _ in range(n)])
        for i, n in enumerate(sizes)
    }
    return Dataset.from_dict("rows", shards)


def plain(data, microbatch=1, *, work=None, **options):
    """Deliver rows as they are, so that the number of steps is known beforehand."""
    pipe = Pipeline(in_order(data, **(work or {}))).batch(microbatch)
    return pipe.options(**{"runner": "inline", **options})


def of_ranks(make, degree):
    return [make(dp_degree=degree, dp_group_id=group) for group in range(degree)]


def samples(pipe):
    return [sample for batch in pipe for sample in batch.ids]


# Fewer shards than ranks, and one that is much larger


@pytest.mark.parametrize("sizes", [(41,), (20, 21), (9, 16, 16), (5, 5, 5, 5, 21), (1, 100, 1)])
def test_every_rank_gets_as_many_rows_as_any_other(sizes):
    data = shards_of(*sizes)
    found = of_ranks(lambda **rank: samples(plain(data, global_batch_size=8, **rank)), 4)
    assert [len(part) for part in found] == [sum(sizes) // 8 * 2] * 4
    together = Counter(sample for part in found for sample in part)
    assert set(together.values()) == {1}


@pytest.mark.parametrize("sizes", [(3,), (1, 1, 1), (100, 1), (2, 50, 3)])
@pytest.mark.parametrize("lanes", [1, 4, 7])
def test_lanes_share_out_every_row_whatever_the_shards(sizes, lanes):
    found = samples(plain(shards_of(*sizes), canonical_replicas=lanes))
    assert len(found) == len(set(found)) == sum(sizes)


def test_an_empty_shard_starves_no_rank():
    data = shards_of(0, 12, 0, 12, 0)
    found = of_ranks(lambda **rank: samples(plain(data, global_batch_size=8, **rank)), 8)
    assert [len(part) for part in found] == [3] * 8


def test_ranks_without_a_row_end_at_once():
    found = of_ranks(lambda **rank: samples(plain(shards_of(2), **rank)), 5)
    assert sorted(len(part) for part in found) == [0, 0, 0, 1, 1]


# All end at one step


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_ten_rows_over_four_ranks_are_two_steps_for_all(degree):
    def make(**rank):
        return plain(shards_of(10), global_batch_size=4, **rank)

    steps = [len(samples(pipe)) // (4 // degree) for pipe in of_ranks(make, degree)]
    assert steps == [2] * degree


@pytest.mark.filterwarnings("ignore:rank .* ends where:RuntimeWarning")
def test_rows_that_splitting_makes_count_for_steps(tokenizer_file):
    """A document that is split gives more rows than it was drawn: draws do not tell the end."""
    texts = [{"text": "the tree and the wood " * (1 + n % 4)} for n in range(16)]

    def make(**options):
        pipe = Pipeline(in_order(dataset("in_memory", None, texts, shards=1)))
        pipe.tokenize(
            tokenizer_id=tokenizer_file, field="text", split_long_samples=True, max_length=6
        )
        return pipe.batch(1).options(runner="inline", canonical_replicas=2, **options)

    lanes = Counter(batch.lane_ids[0] for batch in make())
    assert sum(lanes.values()) > 32
    steps = min(lanes.values()) // 2
    assert len(list(make(global_batch_size=4))) == 4 * steps
    found = of_ranks(lambda **rank: len(list(make(global_batch_size=4, **rank))) // 2, 2)
    assert min(found) == steps


def test_the_number_of_steps_is_known_before_the_first():
    pipe = plain(shards_of(10, 13), global_batch_size=4)
    iter(pipe)
    assert pipe._launch(None).last_step == 5
    assert len(samples(pipe)) == 20


def test_an_incomplete_step_is_shared_by_nobody():
    pipe = Pipeline(in_order(shards_of(10))).batch(1, drop_last=False)
    with pytest.raises(PlanError, match="drop_last=False cannot go with global_batch_size"):
        iter(pipe.options(global_batch_size=4, dp_degree=4, dp_group_id=0))


def test_data_of_less_than_a_step_are_refused_on_every_rank():
    def make(**rank):
        return plain(shards_of(3), global_batch_size=4, **rank)

    for pipe in of_ranks(make, 4):
        with pytest.raises(PlanError, match=r"global_batch_size=4 .* lane \d has \d"):
            list(pipe)


def test_packed_lanes_that_end_apart_say_so():
    """Without a coordinator nobody can tell a rank where the others end: it is warned."""
    found = []
    for group in range(2):
        pipe = packed(global_batch_size=8, canonical_replicas=8, dp_degree=2, dp_group_id=group)
        with pytest.warns(RuntimeWarning, match=rf"rank {group} of 2 ends where its own lanes end"):
            found.append(len(rows(pipe)) // 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = len(rows(packed(global_batch_size=8, canonical_replicas=8))) // 8
    assert min(found) == alone


# Topology changes, from one state


def steps(make, degree, state=None):
    """Run all ranks; give the whole steps that all of them have, each in canonical order."""
    parts = []
    for pipe in of_ranks(make, degree):
        parts.append(rows(pipe if state is None else pipe.restore(state)))
    share = 12 // degree
    count = min(len(part) for part in parts) // share
    return [[row for p in parts for row in p[t * share : (t + 1) * share]] for t in range(count)]


def job(**rank):
    return packed(
        max_length=29, microbatch=1, global_batch_size=12, canonical_replicas=6,
        runner="inline", **rank,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:rank .* ends where:RuntimeWarning")
@pytest.mark.parametrize("before", [0, 1, 5])
def test_one_state_goes_on_with_any_number_of_ranks(before):
    whole = steps(job, 1)
    pipe = job()
    items = iter(pipe)
    for _ in range(12 * before):
        next(items)
    state = pipe.checkpoint(as_bytes=True)
    items.close()
    for degree in (1, 2, 3, 4, 6, 12):
        assert steps(job, degree, state) == whole[before:]


def test_a_number_of_ranks_that_does_not_fit_is_refused_and_says_which_do():
    state = job().checkpoint()
    with pytest.raises(PlanError, match=r"multiple of dp_degree=8; near by, .*6, 12 ranks fit"):
        iter(job(dp_degree=8, dp_group_id=0).restore(state))


@pytest.mark.filterwarnings("ignore:rank .* ends where:RuntimeWarning")
def test_the_state_of_one_rank_is_not_taken_for_that_of_all():
    """Rank 0's state holds the lanes of rank 0; another rank must not begin anew in silence."""
    pipe = job(dp_degree=3, dp_group_id=0)
    items = iter(pipe)
    for _ in range(8):
        next(items)
    state = pipe.checkpoint(scope="local")
    items.close()
    assert (
        rows(job(dp_degree=3, dp_group_id=0).restore(state))
        == rows(job(dp_degree=3, dp_group_id=0))[8:]
    )
    for rank in ({"dp_degree": 3, "dp_group_id": 1}, {"dp_degree": 1}):
        with pytest.raises(
            CheckpointError,
            match=r"lacks lanes .*, which this rank runs; it holds lanes 0, 1: pass the parts",
        ):
            iter(job(**rank).restore(state))


@pytest.mark.parametrize("degree", [1, 2, 4, 8])
def test_without_steps_each_lane_goes_on_exactly_on_any_rank(degree):
    def make(**rank):
        return packed(max_length=29, microbatch=1, canonical_replicas=8, **rank)

    pipe = make()
    items = iter(pipe)
    head = [row for _ in range(37) for row in rows_of(next(items))]
    state = pipe.checkpoint()
    rest = [row for batch in items for row in rows_of(batch)]
    found = [row for each in of_ranks(make, degree) for row in rows(each.restore(state))]
    for lane in range(8):
        assert [row for row in found if row[1] == lane] == [row for row in rest if row[1] == lane]
    assert len(head) + len(found) == len(rows(make()))


# Peers that read the same


@pytest.mark.filterwarnings("ignore:rank .* ends where:RuntimeWarning")
def test_replication_changes_no_order():
    """Four data ranks alone, and eight ranks of which two each read the same data."""
    alone = [rows(job(world_size=4, global_rank=r)) for r in range(4)]
    peers = [
        rows(job(world_size=8, global_rank=r, dp_degree=4, dp_group_id=r // 2)) for r in range(8)
    ]
    assert peers == [part for part in alone for _ in range(2)]


@pytest.mark.filterwarnings("ignore:canonical_replicas=7 lanes over:RuntimeWarning")
def test_mapping_decides_who_owns_a_lane_and_not_what_is_in_it():
    def by_lane(mapping):
        found = {}
        for group in range(3):
            pipe = packed(
                microbatch=1, canonical_replicas=7, dp_degree=3, dp_group_id=group,
                mapping_strategy=mapping,
            )  # fmt: skip
            for row in rows(pipe):
                found.setdefault(row[1], []).append(row)
        return found

    assert by_lane("contiguous") == by_lane("interleaved")


def test_files_make_the_same_steps_as_rows_in_memory(tmp_path):
    """Where row groups end must not decide who gets what."""
    documents = [{"input_ids": list(range(i, i + i % 11))} for i in range(120)]
    found = []
    for kind in ("parquet", "jsonl", "jsonl.zst", "in_memory"):
        data = dataset(kind, tmp_path / kind, documents, name="rows", shards=3)
        # in memory, shards are named by their numbers: the order is theirs in all formats
        work = in_order(data, shuffle_within_shard=True, seed=5)
        pipe = Pipeline(work).pack_flat(16, algorithm="wrap").batch(4)
        pipe.options(global_batch_size=8, canonical_replicas=4, runner="inline")
        found.append([b.to_training(dtype=np.int64)["input_ids"].tolist() for b in pipe])
    assert len(found[0]) > 5
    assert found[1:] == found[:-1]


def test_one_long_document_holds_up_no_other_lane():
    sizes = [4000, *[5] * 300]
    pipe = packed([token_dataset("prose", sizes, 4)], max_length=16, canonical_replicas=4)
    lanes = Counter(row[1] for row in rows(pipe))
    assert set(lanes) == {0, 1, 2, 3}
    assert sum(lanes.values()) >= (sum(sizes) - 4 * 47) // 16
