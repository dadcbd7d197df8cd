"""Cut anywhere and go on: the rows after a checkpoint are those of the uninterrupted run."""

import json
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.recipes import (
    packed,
    rows,
    rows_of,
    source,
    states_along,
    text_dataset,
    two_datasets,
)
from zephon import Pipeline
from zephon.errors import CheckpointError


def cut(make, batches):
    """Run so many batches; give the rows so far and the state after them."""
    pipeline = make()
    items = iter(pipeline)
    found = [row for batch in islice(items, batches) for row in rows_of(batch)]
    state = pipeline.checkpoint()
    items.close()
    return found, state


def resumed(make, state, batches=None):
    pipeline = make()
    pipeline.restore(json.loads(json.dumps(state)))
    return rows(pipeline, batches)


MODES = {
    "one lane": {},
    "three lanes": {"canonical_replicas": 3},
    "steps": {"global_batch_size": 12, "canonical_replicas": 4},
    "threads": {"canonical_replicas": 3, "runner": "threads", "memory_budget": "8kb"},
}


@pytest.mark.parametrize("mode", MODES)
def test_cut_at_every_batch(mode):
    def make():
        return packed(max_length=29, **MODES[mode])

    whole = rows(make())
    assert len(whole) > 40
    every = 4 if mode == "threads" else 1  # a pool for each cut takes its time
    for number, (count, state) in enumerate(states_along(make(), whole, every)):
        many = None if number % 5 == 0 or count == len(whole) else 3
        assert resumed(make, state, many) == whole[count:][: many and 2 * many], count


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 300), st.integers(1, 5), st.integers(0, 60), st.booleans())
def test_cut_of_any_recipe(max_length, lanes, batches, spread):
    work = {"chunk_size": 3 if spread else 64, "stop_after_passes": 1 + lanes % 2}

    def make(**options):
        return packed(
            max_length=max_length, microbatch=1, canonical_replicas=lanes, work=work, **options
        )

    whole = rows(make())
    head, state = cut(make, batches)
    assert head + resumed(make, state) == whole
    assert head + resumed(lambda: make(runner="threads"), state) == whole


def test_a_cut_far_from_a_tick_and_at_ticks():
    """Ticks come every 1,024 draws; documents of one token make many draws a row."""
    from tests.properties.recipes import token_dataset

    def make():
        return packed([token_dataset("tiny", [1, 2, 0] * 1200, 2)], max_length=64, microbatch=1)

    whole = rows(make())
    assert len(whole) == 56
    for batches in (0, 1, 15, 16, 17, 21, 22, 31, 32, 33, 55, 56):
        head, state = cut(make, batches)
        assert head + resumed(make, state) == whole


@pytest.mark.parametrize("kind", ["records", "split", "kept payload"])
def test_cut_without_packing(tokenizer_file, kind):
    def make():
        pipeline = Pipeline(source([text_dataset("words", 50)], chunk_size=4))
        changes = {"split": {"split_long_samples": True, "max_length": 9}}.get(kind, {})
        keep = kind == "kept payload"
        return pipeline.tokenize(
            tokenizer_id=tokenizer_file, field="text", preserve_upstream_payload=keep, **changes
        ).options(canonical_replicas=2, runner="inline")

    def seen(items):
        return [(r.meta.sample_id, r.meta.lineage, r.payload) for r in items]

    whole = seen(make())
    for count in range(0, len(whole) + 1, 3):
        pipeline = make()
        items = iter(pipeline)
        head = seen(islice(items, count))
        state = pipeline.checkpoint()
        items.close()
        assert head + seen(make().restore(state)) == whole


def test_a_restored_state_is_the_same_state_byte_for_byte():
    def make():
        return packed(max_length=29, canonical_replicas=3)

    for batches in (0, 1, 5, 20, 10_000):
        _, state = cut(make, batches)
        assert make().restore(state).checkpoint() == state
        pipeline = make().restore(state)
        engine_state = pipeline._launch(pipeline._restored)
        pipeline._restored, pipeline._engine = None, engine_state
        assert json.dumps(pipeline.checkpoint()) == json.dumps(state)


def test_many_rounds_of_one_batch_each():
    def make():
        return packed(max_length=40, canonical_replicas=2)

    whole = rows(make())
    state, found = make().checkpoint(as_bytes=True), []
    while True:
        pipeline = make().restore(state)
        items = iter(pipeline)
        batch = next(items, None)
        if batch is None:
            break
        found += rows_of(batch)
        state = pipeline.checkpoint(as_bytes=True)
        items.close()
    assert found == whole


def test_a_state_describes_what_was_handed_out_not_what_was_made_ahead():
    inline = packed(canonical_replicas=2)
    ahead = packed(canonical_replicas=2, runner="threads", prefetch_batches=50)
    for pipeline in (inline, ahead):
        items = iter(pipeline)
        for _ in range(5):
            next(items)
        pipeline.state = pipeline.checkpoint()
        items.close()
    assert inline.state == ahead.state


def test_after_the_end_nothing_is_left():
    pipeline = packed()
    rows(pipeline)
    assert rows(packed().restore(pipeline.checkpoint())) == []


def test_steps_resume_with_other_ranks_and_microbatches():
    def make(degree=1, group=0, microbatch=2):
        return packed(
            microbatch=microbatch,
            max_length=29,
            global_batch_size=12,
            canonical_replicas=4,
            dp_degree=degree,
            dp_group_id=group,
        )

    whole = rows(make())
    _, state = cut(make, 18)  # three steps
    for degree in (1, 2, 3, 4, 6, 12):
        share = 12 // degree
        parts = [rows(make(degree, g, 1).restore(state)) for g in range(degree)]
        steps = min(len(p) for p in parts) // share
        rest = [row for t in range(steps) for p in parts for row in p[t * share : (t + 1) * share]]
        assert rest == whole[36 : 36 + len(rest)]
        assert len(rest) >= len(whole) - 36


def test_inside_a_step_another_number_of_ranks_is_refused():
    def make(degree=1):
        return packed(global_batch_size=12, canonical_replicas=4, dp_degree=degree, dp_group_id=0)

    _, state = cut(make, 4)
    with pytest.raises(CheckpointError, match=r"inside step 0 with dp_degree=1, options say 2"):
        iter(make(2).restore(state))


def test_another_recipe_is_refused_and_named():
    _, state = cut(packed, 3)
    message = r"another recipe\n.*\n    pack_flat, max_length: was 33, is 34"
    with pytest.raises(CheckpointError, match=message):
        iter(packed(max_length=34).restore(state))
    with pytest.raises(CheckpointError, match="work source, seed: was 7, is 8"):
        iter(packed(work={"seed": 8}).restore(state))
    grown = [*two_datasets()[:1], two_datasets(5)[1]]
    with pytest.raises(CheckpointError, match="data of 'code'"):
        iter(packed(grown).restore(state))


def test_lanes_that_nobody_named_are_those_of_the_checkpoint():
    _, state = cut(lambda: packed(canonical_replicas=3), 5)
    assert rows(packed().restore(state)) == rows(packed(canonical_replicas=3).restore(state))
    with pytest.raises(CheckpointError, match="canonical_replicas=3, options say 2"):
        iter(packed(canonical_replicas=2).restore(state))


@pytest.mark.parametrize(("lanes", "degree"), [(4, 1), (1, 2), (2, 4), (4, 2)])
def test_a_state_taken_after_a_restore_inside_a_step(lanes, degree):
    """Lanes that this rank does not deliver from any more in a step belong to its state too."""
    from tests.properties.recipes import token_dataset

    def make(group):
        return (
            Pipeline(source([token_dataset("ones", [1] * 64, 2)], chunk_size=4))
            .batch(1)
            .options(
                runner="inline",
                canonical_replicas=lanes,
                global_batch_size=4,
                dp_degree=degree,
                dp_group_id=group,
            )
        )

    def ids(items):
        return [batch.ids[0] for batch in items]

    for group in range(degree):
        whole = ids(make(group))
        for first in range(5):
            pipeline = make(group)
            items = iter(pipeline)
            head = ids(islice(items, first))
            again = make(group).restore(pipeline.checkpoint(scope="local"))
            for second in range(5):
                rest = iter(again)
                middle = ids(islice(rest, second))
                state = again.checkpoint(scope="local")
                assert again.accounting()["ones"]["rows_drawn"] <= 64
                rest.close()
                assert head + middle + ids(make(group).restore(state)) == whole
                again = make(group).restore(pipeline.checkpoint(scope="local"))
