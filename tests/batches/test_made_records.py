"""Batches of rows that say who they are: their records, and what training gets of them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from tests.columns_by_hand import columns_of, plain
from tests.exec.operators.morsels import payload_of
from zephon.batches.columns import chunk_ids, lineage_paths, sample_ids
from zephon.batches.identity import PLACEMENT
from zephon.batches.row_records import record_of
from zephon.io.made_rows import MadeRecords
from zephon.types import ContributorRef, SampleBatch, SampleCursor, SampleMeta


def metas(count, **more):
    return [SampleMeta((4, 5, n), 0, 2, n, lineage=(n,), **more) for n in range(count)]


def unpacked(known, **more):
    """One document a row, of 2 and of 1 tokens."""
    return columns_of(
        {"input_ids": [[7, 8], [9]]},
        [[2], [1]],
        packing="none",
        metas=payload_of(MadeRecords(None, known), 2),
        **more,
    )


def packed(known, **more):
    """Documents 0, 1 and the first 2 tokens of 2 in a row; the last 3 of 2 and document 3."""
    return columns_of(
        {"input_ids": [[1, 2, 3, 4, 5], [6, 7, 8, 9]]},
        [[2, 1, 2], [3, 1]],
        starts=[0, 0, 0, 2, 0],
        ends=[True, True, False, True, True],
        packing="flat",
        padding=[0, 1],
        metas=payload_of(MadeRecords(None, [known[n] for n in (0, 1, 2, 2, 3)]), 5),
        **more,
    )


def test_a_row_is_who_its_document_says():
    known = metas(2, tags={"mine": 1}, component_sample_counts={3: 1})
    rows = unpacked(known)
    found = [record_of(rows, i).meta for i in range(2)]
    assert [meta.cursor for meta in found] == [meta.cursor for meta in known]
    assert [meta.component_token_counts for meta in found] == [{3: 2}, {3: 1}]
    assert [meta.component_sample_counts for meta in found] == [{3: 1}, {3: 1}]
    assert [meta.tags["mine"] for meta in found] == [1, 1]
    assert found[0].tags[PLACEMENT]["tokens_field"] == "input_ids"
    assert PLACEMENT not in known[0].tags
    assert record_of(rows, 0).payload == {"input_ids": [7, 8]}


def test_counts_that_a_document_gives_stay():
    known = metas(2, component_token_counts={0: 5, 1: 6})
    assert record_of(unpacked(known), 0).meta.component_token_counts == {0: 5, 1: 6}
    rows = columns_of(
        {}, [[0], [0]], payload=[{}, {}], metas=payload_of(MadeRecords(None, metas(2)), 2)
    )
    assert record_of(rows, 0).meta.component_token_counts is None


@pytest.mark.parametrize("make", [unpacked, packed])
def test_columns_and_records_say_the_same(make):
    rows = make(metas(4) if make is packed else metas(2))
    found = [record_of(rows, i).meta for i in range(2)]
    assert sample_ids(rows) == [meta.sample_id for meta in found]
    assert chunk_ids(rows) == [meta.chunk_id for meta in found] == [2, 2]
    assert lineage_paths(rows) == [meta.lineage for meta in found]
    batch = pickle.loads(pickle.dumps(SampleBatch.from_rows(rows)))
    assert batch.ids == sample_ids(rows)
    assert [record.meta for record in batch] == found


def test_a_packed_row_is_made_of_what_its_documents_are_made_of():
    sources = [SampleCursor(2, n, (9, 9, n)) for n in range(3)]
    merged = (
        ContributorRef(sources[0]),
        ContributorRef(sources[1]),
        ContributorRef(sources[2], False),
    )
    known = metas(4)
    known[2] = replace(
        known[2].with_contributors(merged),
        component_sample_counts={0: 1, 1: 1},
        component_token_counts={0: 3, 1: 2},
    )
    first, second = (record_of(packed(known), i).meta for i in range(2))
    assert first.contributors == (
        ContributorRef(known[0].cursor),
        ContributorRef(known[1].cursor),
        *(ContributorRef(source, False) for source in sources),
    )
    assert second.contributors == (*merged, ContributorRef(known[3].cursor))
    assert (first.component_sample_counts, second.component_sample_counts) == (
        {0: 2, 1: 0}, {0: 2, 1: 1},
    )  # fmt: skip
    assert (first.component_token_counts, second.component_token_counts) == (
        {0: 5, 1: 0}, {0: 2, 1: 2},
    )  # fmt: skip
    assert (first.lineage, second.lineage) == ((0, 0), (2, 2))
    assert first.tags["_packing_metadata"]["num_sequences"] == 3
    assert second.padding_length == 1


def test_what_an_engine_packed_before_is_read_as_it_was_packed():
    rows = columns_of(
        {"input_ids": [[1, 2, 3, 0], [4, 5, 6, 7]], "positions": [[0, 1, 0, 0], [0, 1, 2, 0]]},
        [[2, 1], [3, 1]],
        packing="flat",
        padding=[1, 0],
    )
    asked = {
        "return_labels": True,
        "return_padding_mask": True,
        "return_document_ids": True,
        "dtype": None,
        "mask_document_boundaries": True,
    }
    wanted = plain(SampleBatch.from_rows(rows).to_training(**asked))
    records = [record_of(rows, i) for i in range(2)]
    made = payload_of(
        MadeRecords([record.payload for record in records], [record.meta for record in records]), 2
    )
    again = replace(
        columns_of({}, [[0], [0]], metas=made),
        payload=made,
    )
    assert plain(SampleBatch.from_rows(again).to_training(**asked)) == wanted
    seen = SampleBatch.from_rows(again)
    assert [record.payload for record in seen] == [record.payload for record in records]
    assert plain(seen.to_training(**asked)) == wanted
    assert [record.meta for record in seen] == [record.meta for record in records]


def test_tokens_of_rows_that_say_who_they_are_are_read_from_columns():
    batch = SampleBatch.from_rows(unpacked(metas(2), pad_token_id=0, pad_to_longest=True))
    made = batch.to_training(dtype=None, return_padding_mask=True)
    assert made["input_ids"] == [[7, 8], [9, 0]]
    assert made["padding_mask"] == [[False, False], [False, True]]
    assert made["ids"] == [(4, 5, 0), (4, 5, 1)]
    assert [record.meta.tags["_pad_token_id"] for record in batch] == [0, 0]


def test_a_batch_travels_without_rows_of_other_batches():
    rows = payload_of(MadeRecords([b"x" * 10_000] * 50, metas(50)), 50)
    rows = rows.take(np.array([3, 4]))
    batch = SampleBatch.from_rows(replace(columns_of({}, [[0], [0]]), payload=rows, metas=rows))
    sent = pickle.dumps(batch)
    assert len(sent) < 50_000
    assert pickle.loads(sent) == batch
