"""Functions and operators of the user keep every promise: same rows, exact resume, all counted."""

import copy
import json
from functools import cache
from itertools import islice

import pytest

from tests.properties.function_chains import CHAINS
from zephon.exec.lane_table import trees_of
from zephon.planner.compiler import compile_plan
from zephon.planner.logical.custom import GROUP

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
    """Describe a chain."""
    return finished(CHAINS[name](), **options)


def copied(name, **options):
    """Make a chain that was described once: calls run the steps before them, to see fields."""
    return finished(copy.copy(_described(name)), **options)


@cache
def _described(name):
    return CHAINS[name]()


def finished(pipeline, drop_last=False, **options):
    settings = {"runner": "inline", "flush_every_k_chunks": K, "auto_validation": "off"}
    settings |= options
    return pipeline.batch(1, drop_last=drop_last).options(**settings)


@cache
def whole_run(name):
    return rows(copied(name))


def states(name, places):
    """Run once; give the states after some numbers of rows."""
    pipeline = copied(name)
    items = iter(pipeline)
    found = {}
    for count in range(max(places) + 1):
        if count in places:
            found[count] = pipeline.checkpoint()
        next(items, None)
    return found


def group(state):
    """Number the 64 rows that were taken last: by an operator with memory, or of those drawn."""
    lane = trees_of(state["lanes"])[0]
    (last_draw,) = lane["last_draw"].tolist()
    return last_draw if "below" in lane else last_draw // GROUP


def borders(name, end):
    """Find the first rows that the second group and the last one had a part in."""
    few = {n: group(state) for n, state in states(name, {*range(1, end, 8), end}).items()}
    second = next(n for n in few if few[n] > few[1])
    last = next(n for n in few if few[n] == few[end])
    near = {n + i for n in (second, last) for i in range(-8, 1)} & set(range(1, end + 1))
    every = {n: group(state) for n, state in states(name, near).items()}
    assert few[1] < every[last]
    return (
        next(n for n in every if every[n] > few[1]),
        next(n for n in every if every[n] == few[end]),
    )


@pytest.mark.parametrize("name", CHAINS)
def test_a_cut_at_any_row_goes_on_with_the_next_one(name):
    """In the first group, on both sides of borders, between them, and at the end."""
    whole = whole_run(name)
    end = len(whole)
    assert end > 60
    second, last = borders(name, end)
    places = {0, 1, second // 2, (second + last) // 2, end - 2, end - 1, end}
    cuts = states(name, places | {second - 1, second, last - 1, last})
    assert len(cuts) >= 9
    for at, (count, state) in enumerate(cuts.items()):
        resumed = copied(name).restore(json.loads(json.dumps(state)))
        many = None if at % 4 == 2 or count == end else 3  # None: all that are left
        assert rows(resumed, many) == whole[count:][:many], count


@pytest.mark.parametrize("name", CHAINS)
def test_a_second_restore_goes_on_too(name):
    whole = whole_run(name)
    for count in (1, len(whole) // 2, len(whole) - 2):
        first = copied(name)
        list(islice(iter(first), count))
        second = make(name).restore(first.checkpoint())
        list(islice(iter(second), 1))
        third = copied(name).restore(second.checkpoint(as_bytes=True))
        assert rows(third) == whole[count + 1 :], count


@pytest.mark.parametrize("name", CHAINS)
def test_threads_memory_and_lanes_shared_by_ranks_change_no_row(name):
    def lanes_of(**options):
        found = {}
        for rank in range(options.get("dp_degree", 1)):
            for row in rows(copied(name, canonical_replicas=3, dp_group_id=rank, **options)):
                found.setdefault(row[1], []).append(row)
        return found

    oracle = lanes_of()
    assert len(oracle) == 3
    assert lanes_of(runner="threads", memory_budget="9kb", prefetch_batches=3) == oracle
    assert lanes_of(dp_degree=3, world_size=3) == oracle


@pytest.mark.parametrize("name", CHAINS)
def test_steps_are_the_same_on_any_number_of_ranks(name):
    def steps(degree):
        shares = []
        size = 4 // degree
        for rank in range(degree):
            many = {"canonical_replicas": 2, "dp_degree": degree, "dp_group_id": rank}
            pipeline = copied(name, drop_last=True, global_batch_size=4, **many)
            found = rows(pipeline, 5 * size)
            shares.append([found[t * size : (t + 1) * size] for t in range(5)])
        return [row for step in range(5) for share in shares for row in share[step]]

    oracle = steps(1)
    assert len(oracle) == 20
    assert steps(2) == steps(4) == oracle


@pytest.mark.parametrize("name", CHAINS)
def test_rules_change_no_row_and_no_count(name):
    def run(**rules):
        pipeline = copied(name)
        pipeline._plan = compile_plan(pipeline._node, barrier_rows=K * 8, **rules)
        return rows(pipeline), pipeline.accounting()

    assert run(rewrites=(), fusions=()) == run()


@pytest.mark.parametrize("name", CHAINS)
def test_rows_and_tokens_are_counted_once(name):
    pipeline = copied(name)
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
    assert rows(copied(name, runner="process", max_workers=2)) == whole_run(name)
