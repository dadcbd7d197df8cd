"""Functions and operators of the user keep every promise: same rows, exact resume, all counted."""

import json
from itertools import islice

import pytest

from tests.properties.function_chains import CHAINS
from zephon.planner.compiler import compile_plan

pytestmark = pytest.mark.filterwarnings("ignore:packing dropped", "ignore:the source of")

K = 16
"""Rows of a chunk: with one chunk between barriers, what remembers begins anew every 64 rows."""


def plain(record):
    payload = {name: _plain(value) for name, value in record.payload.items()}
    return record.meta.cursor.as_key(), record.meta.lane_id, payload


def _plain(value):
    return [int(each) for each in value] if hasattr(value, "__iter__") else int(value)


def rows(pipeline, batches=None):
    return [plain(r) for batch in islice(iter(pipeline), batches) for r in batch.records]


def make(name, **options):
    settings = {"runner": "inline", "flush_every_k_chunks": K, "auto_validation": "off"}
    settings |= options
    return CHAINS[name]().batch(1, drop_last=False).options(**settings)


@pytest.mark.parametrize("name", CHAINS)
def test_a_cut_at_any_row_goes_on_with_the_next_one(name):
    whole = rows(make(name))
    assert len(whole) > 60
    running = make(name)
    items = iter(running)
    for count in range(len(whole) + 1):
        state = running.checkpoint()
        if count % 17 == 0 or count > len(whole) - 3:
            resumed = make(name).restore(json.loads(json.dumps(state)))
            assert rows(resumed, 3) == whole[count : count + 3], count
        if count % 70 == 0 or count == len(whole):
            assert rows(make(name).restore(state)) == whole[count:], count
        next(items, None)


@pytest.mark.parametrize("name", CHAINS)
def test_a_second_restore_goes_on_too(name):
    whole = rows(make(name))
    for count in (1, len(whole) // 2, len(whole) - 2):
        first = make(name)
        list(islice(iter(first), count))
        second = make(name).restore(first.checkpoint())
        list(islice(iter(second), 1))
        third = make(name).restore(second.checkpoint(as_bytes=True))
        assert rows(third) == whole[count + 1 :], count


@pytest.mark.parametrize("name", CHAINS)
def test_threads_memory_and_lanes_shared_by_ranks_change_no_row(name):
    def lanes_of(**options):
        found = {}
        for group in range(options.pop("ranks", 1)):
            part = make(name, canonical_replicas=3, **options)
            if "dp_degree" in options:
                part.options(dp_group_id=group)
            for row in rows(part):
                found.setdefault(row[1], []).append(row)
        return found

    oracle = lanes_of()
    assert len(oracle) == 3
    assert lanes_of(runner="threads", memory_budget="9kb", prefetch_batches=3) == oracle
    assert lanes_of(ranks=3, dp_degree=3, world_size=3) == oracle


@pytest.mark.parametrize("name", CHAINS)
def test_steps_are_the_same_on_any_number_of_ranks(name):
    def steps(degree):
        shares = []
        for group in range(degree):
            pipeline = (
                CHAINS[name]()
                .batch(1)
                .options(
                    runner="inline",
                    flush_every_k_chunks=K,
                    auto_validation="off",
                    global_batch_size=4,
                    canonical_replicas=2,
                    dp_degree=degree,
                    dp_group_id=group,
                )
            )
            size = 4 // degree
            found = rows(pipeline, 5 * size)
            shares.append([found[t * size : (t + 1) * size] for t in range(5)])
        return [row for step in range(5) for share in shares for row in share[step]]

    oracle = steps(1)
    assert len(oracle) == 20
    assert steps(2) == steps(4) == oracle


@pytest.mark.parametrize("name", CHAINS)
def test_rules_change_no_row_and_no_count(name):
    def run(**rules):
        pipeline = make(name)
        pipeline._plan = compile_plan(pipeline._node, barrier_rows=K * 8, **rules)
        return rows(pipeline), pipeline.accounting()

    assert run(rewrites=(), fusions=()) == run()


@pytest.mark.parametrize("name", CHAINS)
def test_rows_and_tokens_are_counted_once(name):
    pipeline = make(name)
    whole = list(pipeline)
    counts = pipeline.accounting().values()
    assert len(whole) > 60
    stops = "exact" in name  # where one component ends
    assert sum(count["rows_drawn"] for count in counts) in (range(300, 350) if stops else (350,))
    for count in counts:
        rest = sum(count["tokens_dropped"].values())
        assert count["tokens_made"] == count["tokens_delivered"] + count["tokens_held"] + rest


@pytest.mark.parametrize("name", ["map", "filter, map", "groups, shuffle", "state written down"])
def test_worker_processes_change_no_row(name):
    assert rows(make(name, runner="process", max_workers=2)) == rows(make(name))
