"""Shards added within a run: how they are known, what is refused, and what goes along with them."""

import json
from collections import Counter
from itertools import islice

import numpy as np
import polars as pl
import pytest

from tests.exec.checked_data import following, made, rows, taken, write
from tests.properties.recipes import source
from tests.written import lines
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import CheckpointError, NotYetError
from zephon.exec.checkpoint import content_digest
from zephon.exec.grown_data import growth_of, known_shards, shards_at_first
from zephon.exec.saved_values import pack
from zephon.work import TokenEstimation


def memory(shards, name="prose", size=3):
    return Dataset.from_dict(
        name,
        {n: InMemoryShard([{"input_ids": [100 * n + i] * 4} for i in range(size)]) for n in shards},
    )


def job(*datasets, weights=None, steps=lambda p: p, **work):
    settings = {"exhausted_policy": "repeat", **work}
    mixed = source(list(datasets), weights, **settings)
    packed = steps(Pipeline(mixed)).pack_flat(7, algorithm="wrap").batch(1)
    return packed.options(runner="inline", canonical_replicas=2)


def test_shards_are_known_by_name():
    before, after = memory([2, 30]), memory([1, 2, 7, 30])
    recorded = json.loads(json.dumps(before.recorded_manifest()))
    assert known_shards(recorded, after).tolist() == [False, True, False, True]
    growth = growth_of(recorded, after)
    assert (growth.rows, growth.added.tolist()) == (6, [0, 2])
    assert growth_of(recorded, before) is None
    later = memory([1, 2, 7, 8, 30])
    between = json.loads(json.dumps(after.recorded_manifest()))
    assert shards_at_first(between, later, [growth]).tolist() == [1, 4]
    assert shards_at_first(recorded, memory([1, 2]), []) is None


def test_of_very_many_shards_new_ones_come_last():
    """Only a digest is recorded of them; ``data_change`` has compared it with the first ones."""
    summed = {"shards": 2, "rows": 6, "bytes": 9, "sha256": "ab"}
    assert known_shards(summed, memory([2, 30, 31])).tolist() == [True, True, False]
    assert growth_of(summed, memory([2, 30, 31])).added.tolist() == [2]
    assert shards_at_first(summed, memory([2]), []) is None


def test_other_ratios_do_not_come_with_new_shards():
    """What is given is compared by what it meant for the shards of then."""

    def uneven(ratio):
        rows = {0: InMemoryShard([{"input_ids": [1] * 90}] * 4)}
        more = {1: InMemoryShard([{"input_ids": [1] * 5}] * 7)}
        found = Dataset.from_dict("prose", rows | (more if ratio else {}))
        estimation = TokenEstimation(primer={"prose": ratio or 0.2})
        return job(found, token_estimation=estimation)

    state, _ = taken(uneven(None))
    was = state["recipe"]["source"]["token_costs"]
    edited = uneven(0.2).restore(state, allow={"data"})
    list(islice(edited, 3))
    after = edited.checkpoint()
    assert after["recipe"]["source"]["token_costs"] == was
    assert list(islice(uneven(0.2).restore(after), 2))
    with pytest.raises(CheckpointError, match="token cost of 'prose': was"):
        iter(uneven(0.3).restore(state, allow={"data"}))


def test_other_changes_go_along():
    """Weights, a dataset more, functions and shards, all in one restore."""
    prose, code = memory([0, 9]), memory([4], "code")
    state, _ = taken(job(prose, code), batches=4)
    datasets = [memory([0, 3, 9]), memory([4, 5], "code"), memory([6], "verse")]
    weights = {"prose": 0.5, "code": 0.2, "verse": 0.3}

    def now():
        return job(*datasets, weights=weights, steps=lambda p: p.filter(pl.lit(True)))

    words = {"data", "weights", "datasets", "functions"}
    edited = now().restore(state, allow=words)
    first = following(islice(edited, 5))
    after = json.loads(json.dumps(edited.checkpoint()))
    assert after["edits"][0]["words"] == ["data", "datasets", "weights"]
    assert sorted(after["edits"][0]["grown"]) == ["code", "prose"]
    ours = following(islice(now().restore(after), 20))
    whole = following(islice(now().restore(state, allow=words), 25))
    assert first + ours == whole
    tokens = Counter(token for batch in whole for row in batch for token in row)
    assert {300, 600} <= tokens.keys()


def test_a_damaged_addition_is_refused():
    state, _ = taken(job(memory([0, 9])))
    edited = job(memory([0, 3, 9])).restore(state, allow={"data"})
    next(iter(edited))
    after = edited.checkpoint()
    for change, words in (
        ({"added": pack(np.array([7]))}, "says that shard 7 of 3 was added"),
        ({"added": pack(np.array([2, 1]))}, "its edits is damaged: shards that were added"),
        ({"stop": -1}, "its edits is damaged"),
        ({"rows": "x"}, "its edits is damaged"),
    ):
        broken = json.loads(json.dumps(after))
        broken["edits"][0]["grown"]["prose"].update(change)
        broken["digest"] = content_digest(broken)
        with pytest.raises(CheckpointError, match=words):
            next(iter(job(memory([0, 3, 9])).restore(broken)))


def test_what_an_operator_wrote_down_names_shards_by_their_places(tmp_path):
    """So new ones must have names behind all others."""
    folder = made("jsonl", tmp_path, "files")

    def make():
        work = source([Dataset.from_path("prose", folder)], exhausted_policy="repeat")
        summed = Pipeline(work).stateful_transform(
            "sum",
            init_state=lambda: 0,
            push=lambda total, records: (total + len(records), records),
            snapshot=lambda total: total,
            restore=lambda saved: saved,
        )
        packed = summed.pack_flat(64, algorithm="wrap").batch(8)
        return packed.options(runner="inline", canonical_replicas=1)

    items = iter(pipeline := make())
    list(islice(items, 9))  # 1,152 documents: it has written down its memory behind 1,024
    state = pipeline.checkpoint()
    write("jsonl", folder, 4, rows(4))
    assert len(list(islice(make().restore(state, allow={"data"}), 9))) == 9
    (folder / "004.jsonl").unlink()
    lines(folder, "0005.jsonl", rows(9))
    with pytest.raises(NotYetError, match="give the new shards names behind all others"):
        next(iter(make().restore(state, allow={"data"})))
