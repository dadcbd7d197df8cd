"""One canonical stream: workers, runner, memory and rules change the speed and no byte."""

import polars as pl
import pytest

from tests.properties.recipes import packed, rows, source, text_dataset, tokens_of, two_datasets
from zephon import Pipeline
from zephon.planner.compiler import compile_plan
from zephon.planner.fusions import FUSIONS
from zephon.planner.rewrites import REWRITES


@pytest.fixture(scope="module")
def oracle():
    return rows(packed(canonical_replicas=3))


@pytest.mark.parametrize("runner", ["inline", "threads"])
@pytest.mark.parametrize("memory", ["1kb", "20kb", "256mb"])
@pytest.mark.parametrize("prefetch", [0, 1, 50])
def test_runner_task_size_and_queue_change_no_byte(oracle, runner, memory, prefetch):
    pipeline = packed(
        canonical_replicas=3,
        runner=runner,
        memory_budget=memory,
        prefetch_batches=prefetch,
        max_workers=1 + prefetch % 3,
    )
    assert rows(pipeline) == oracle


def test_microbatch_size_changes_no_row():
    def stream(microbatch):
        return rows(packed(microbatch=microbatch, drop_last=False))

    assert stream(1) == stream(7) == stream(1000)


def two_of_three(row):
    """Look at a field that no packed row has."""
    return None if row["id"] % 3 == 0 else row


def one_more(row):
    return row["id"] + 1


def records_of_two_of_three(records):
    return [record for record in records if two_of_three(record.payload)]


def running_count(count, records):
    for record in records:
        count += record.payload["id"]
        record.payload["input_ids"] = [count, *record.payload["input_ids"][1:]]
    return count, records


LOOKS = {
    "map": lambda p: p.map_transform(two_of_three),
    "filter and map": lambda p: p.filter(pl.col("id") > 3).map_transform(two_of_three),
    "operator": lambda p: p.add_op(
        "op", process_many=records_of_two_of_three, preserves_cursor_order=True
    ),
    "state": lambda p: p.stateful_transform("count", init_state=int, push=running_count),
    "weights": lambda p: p.ensure_mixture(weight_by=one_more, max_buffer_size=9),
}
"""Steps that look at the row which tokenize keeps, though a packer drops it afterwards."""


def text_pipeline(tokenizer_file, kind):
    pipeline = Pipeline(source([text_dataset("words", 70)], chunk_size=4))
    if kind in LOOKS:
        kept = pipeline.options(auto_validation="off").tokenize(
            tokenizer_id=tokenizer_file, field="text", preserve_upstream_payload=True
        )
        return LOOKS[kind](kept).pack_flat(max_length=17, algorithm="wrap").batch(2)
    if kind == "records":
        return pipeline.tokenize(tokenizer_id=tokenizer_file, field="text")
    if kind == "kept payload":
        return pipeline.tokenize(
            tokenizer_id=tokenizer_file, field="text", preserve_upstream_payload=True
        )
    if kind == "padded":
        return pipeline.tokenize(
            tokenizer_id=tokenizer_file, field="text", padding="max_length",
            truncation=True, max_length=12,
        ).batch(3)  # fmt: skip
    if kind == "split":
        return pipeline.tokenize(
            tokenizer_id=tokenizer_file, field="text", split_long_samples=True, max_length=12
        ).batch(3)
    return (
        pipeline.tokenize(tokenizer_id=tokenizer_file, field="text", parallelism=2)
        .pack_flat(max_length=17, algorithm="wrap")
        .batch(2)
    )


def payloads(pipeline):
    found = []
    for item in pipeline:
        for record in getattr(item, "records", (item,)):
            found.append((record.meta.sample_id, record.meta.lineage, record.payload))
    return found


RULES = {rule.__name__: rule for rule in (*REWRITES, *FUSIONS)}


@pytest.mark.parametrize("kind", ["records", "kept payload", "padded", "split", "packed", *LOOKS])
@pytest.mark.parametrize("without", [*RULES, "all"])
def test_a_rule_never_changes_a_byte(tokenizer_file, kind, without):
    wanted = payloads(text_pipeline(tokenizer_file, kind))
    pipeline = text_pipeline(tokenizer_file, kind)
    off = set(RULES.values()) if without == "all" else {RULES[without]}
    pipeline._plan = compile_plan(
        pipeline._node,
        rewrites=tuple(r for r in REWRITES if r not in off),
        fusions=tuple(f for f in FUSIONS if f not in off),
    )
    assert len(wanted) > 10
    assert payloads(pipeline) == wanted


def test_iterating_twice_gives_the_same_rows():
    pipeline = packed()
    assert rows(pipeline) == rows(pipeline)


def test_every_document_is_delivered_once_in_order_but_for_the_last_row():
    datasets = two_datasets()
    one = packed(datasets[:1], microbatch=1, drop_last=False, max_length=7)
    tokens = [t for batch in one for t in tokens_of(batch)]
    delivered = sorted(tokens)
    made = [t for shard in datasets[0].backend["shards"].values()
            for i in range(len(shard)) for t in shard[i]["input_ids"]]  # fmt: skip
    assert len(made) - len(delivered) == len(made) % 7
    assert len(set(delivered)) == len(delivered)
    assert set(delivered) <= set(made)
