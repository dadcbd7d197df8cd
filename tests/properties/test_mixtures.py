"""Whatever order, end, schedule or unit a mixture has: one stream, cut anywhere, on any ranks."""

import json
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.recipes import packed, rows, rows_of
from tests.properties.works import LATE, SHIFT, WORKS, two
from zephon.work import MixtureSchedule


def make(name, **options):
    return packed(two(), work=WORKS[name], max_length=29, **options)


def with_weights(pipeline, batches=None):
    return [(rows_of(batch), batch.target_mixture) for batch in islice(iter(pipeline), batches)]


@pytest.mark.parametrize(("lanes", "memory"), [(1, "64mb"), (3, "1kb")])
@pytest.mark.parametrize("name", WORKS)
def test_threads_and_memory_change_no_byte(name, lanes, memory):
    wanted = with_weights(make(name, canonical_replicas=lanes))
    assert len(wanted) > 10
    threads = make(name, canonical_replicas=lanes, runner="threads", memory_budget=memory)
    assert with_weights(threads) == wanted


@pytest.mark.parametrize("name", WORKS)
def test_cut_anywhere(name):
    whole = with_weights(make(name, canonical_replicas=3))
    cuts = sorted({0, 1, 2, *range(5, len(whole) + 1, 7), len(whole)})
    to_the_end = {2, cuts[len(cuts) // 2], *cuts[-3:]}
    pipeline = make(name, canonical_replicas=3)
    items = iter(pipeline)
    head, states = [], {}
    for batches in cuts:
        wanted = batches - len(head)
        head += [(rows_of(batch), batch.target_mixture) for batch in islice(items, wanted)]
        states[batches] = json.loads(json.dumps(pipeline.checkpoint()))
    items.close()
    assert head == whole
    for batches, state in states.items():
        tail = make(name, canonical_replicas=3).restore(state)
        assert tail.checkpoint() == state
        count = None if batches in to_the_end else 12
        expected = whole[batches:] if count is None else whole[batches : batches + count]
        assert with_weights(tail, count) == expected, batches


@pytest.mark.parametrize("name", WORKS)
def test_ranks_share_the_same_steps(name):
    def steps(degree, group):
        return rows(
            make(
                name,
                microbatch=1,
                global_batch_size=12,
                canonical_replicas=4,
                dp_degree=degree,
                dp_group_id=group,
            )
        )

    whole = steps(1, 0)
    assert len(whole) >= 24
    for degree in (2, 3, 4, 12):
        share = 12 // degree
        parts = [steps(degree, group) for group in range(degree)]
        count = min(len(part) for part in parts) // share
        found = [
            row for t in range(count) for part in parts for row in part[t * share : (t + 1) * share]
        ]
        assert found[: len(whole)] == whole


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(list(WORKS)),
    st.integers(0, 40),
    st.integers(1, 5),
    st.integers(0, 99),
    st.sampled_from(["inline", "threads"]),
)
def test_any_mixture_cut_anywhere(name, batches, lanes, seed, runner):
    def made(**options):
        work = {**WORKS[name], "seed": seed, "chunk_size": 1 + seed % 9}
        return packed(two(seed), work=work, microbatch=1, canonical_replicas=lanes, **options)

    whole = rows(made())
    pipeline = made()
    items = iter(pipeline)
    head = [row for batch in islice(items, batches) for row in rows_of(batch)]
    state = pipeline.checkpoint(as_bytes=True)
    items.close()
    assert head + rows(made(runner=runner).restore(state)) == whole


def test_the_weights_in_force_come_with_each_batch():
    shares = [batch.target_mixture for batch in make("schedule")]
    assert shares[0] == pytest.approx({"prose": 0.7, "code": 0.3})
    assert shares[-1] == SHIFT
    assert pytest.approx(LATE) in shares
    line = [batch.target_mixture["code"] for batch in make("linear schedule")]
    assert line == sorted(line)
    assert line[0] < 0.4 < 0.7 < line[-1]


def test_a_schedule_in_steps_follows_the_steps():
    work = {
        "schedule": MixtureSchedule({2: SHIFT}, unit="steps"),
        "mixture_unit": "tokens",
        "exhausted_policy": "repeat",
    }
    pipeline = packed(two(), work=work, microbatch=12, max_length=29, global_batch_size=12)
    kinds = []
    for batch in islice(iter(pipeline), 5):
        tensors = batch.to_training()["input_ids"]
        kinds.append((tensors >= 1_000_000 * (1 + ord("c") % 7)).float().mean().item())
    del kinds[2]  # documents that began before the change are in it
    assert max(kinds[:2]) < 0.6
    assert min(kinds[2:]) == 1.0
