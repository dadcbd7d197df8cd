"""What is compared of a row: everything that it holds, and nothing of its neighbours."""

import dataclasses

import numpy as np
import pytest

from tests.verification import recipes
from zephon import Pipeline, SampleBatch
from zephon.verification.row_digests import digests_of


def batches(pipeline, count=3):
    return pipeline.collect(count)


def test_a_row_is_the_same_alone_and_in_any_batch():
    """Rows differ in their number of documents, so the bounds of a batch are filled up."""
    wide = [row for batch in batches(recipes.right(), 6) for row in digests_of(batch)]
    narrow = recipes.right()._in_batches_of(1)
    alone = [row for batch in batches(narrow, 24) for row in digests_of(batch)]
    assert wide == alone
    assert len({row.sha256 for row in wide}) == 24


def test_rows_of_unequal_lengths_are_hashed_one_by_one():
    def made(size):
        return (
            Pipeline(recipes.source())
            .pack_sequences(30, num_bins=2, tokens_field="tokens")
            .batch(size)
        )

    wide = [row for batch in batches(made(6), 2) for row in digests_of(batch)]
    assert wide == [row for batch in batches(made(1), 12) for row in digests_of(batch)]
    assert all("training labels" in row.names for row in wide)


def test_a_tokenized_row_is_not_widened_by_longer_ones(tokenizer_file):
    from tests.written import pipeline as read
    from zephon import Dataset, InMemoryShard

    texts = [{"text": "to be " * (1 + i % 5)} for i in range(12)]
    words = Dataset.from_dict("words", {0: InMemoryShard(texts)})

    def made(size):
        called = read(words).tokenize(
            tokenizer_id=str(tokenizer_file), field="text", padding="longest"
        )
        return called.batch(size)

    wide = [row for batch in batches(made(6), 2) for row in digests_of(batch)]
    assert wide == [row for batch in batches(made(1), 12) for row in digests_of(batch)]
    assert all("training padding_mask" in row.names for row in wide)


def test_everything_of_a_row_is_named():
    (batch,) = batches(recipes.right(), 1)
    (row, *_) = digests_of(batch)
    wanted = {
        "meta sample_id", "meta lane_id", "meta lineage", "meta tags",
        "meta component_token_counts",
        "payload tokens", "payload weight", "payload positions", "training input_ids",
        "training labels", "training positions", "training loss_mask", "training padding_mask",
        "training cu_seqlens", "training max_seqlen", "training document_ids", "training ids",
    }  # fmt: skip
    assert wanted <= set(row.names)


@pytest.mark.parametrize("packed", [True, False])
def test_one_changed_value_is_found_and_named(packed):
    made = recipes.right() if packed else recipes.plain_rows()
    item = batches(made, 1)[0]
    record = item.records[0] if packed else item
    payload = dict(record.payload)
    weight = np.array(payload["weight"])
    weight[0] = np.nextafter(weight[0], 1e9)
    payload["weight"] = weight if isinstance(payload["weight"], np.ndarray) else weight.tolist()
    changed = dataclasses.replace(record, payload=payload)
    ((before,), (after,)) = digests_of(SampleBatch([record])), digests_of(SampleBatch([changed]))
    assert before.sha256 != after.sha256
    assert before.differing(after) == ["payload weight"]
    moved = dataclasses.replace(record, meta=dataclasses.replace(record.meta, lane_id=77))
    assert digests_of(SampleBatch([moved]))[0].differing(before) == ["meta lane_id"]


def test_rows_without_tokens_are_their_records():
    from tests.written import pipeline as read
    from zephon import Dataset, InMemoryShard

    rows = [{"text": "a", "seen": 1.5}, {"text": "b", "seen": None}]
    words = Dataset.from_dict("words", {0: InMemoryShard(rows)})
    first, second = (digests_of(record)[0] for record in read(words))
    assert "payload seen" in first.names and not any(n.startswith("training") for n in first.names)
    assert {"payload text", "payload seen", "meta sample_id"} <= set(first.differing(second))
