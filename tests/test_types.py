"""Identity, records and batches as documented, and how columns become records."""

import copy
import dataclasses
import pickle
import threading

import numpy as np
import pytest
import torch

import zephon.types
from zephon.types import (
    BatchRows,
    ContributorRef,
    SampleBatch,
    SampleCursor,
    SampleMeta,
    SampleRecord,
    Spans,
    TokenField,
    record_of,
)


def packed_rows(**changes):
    """Two rows of 6 tokens in chunks of 10 draws.

    Row 0: document (1, 0, 7), draw 12, its tokens 0 to 4; then the first 2 tokens of part 1 of
    (2, 3, 4), draw 13. Row 1: the rest of that part, tokens 2 to 5, and 3 pad tokens.
    """
    rows = BatchRows(
        fields={
            "input_ids": TokenField(
                np.array([10, 11, 12, 13, 20, 21, 22, 23, 24, 0, 0, 0]), np.array([0, 6, 12])
            ),
            "positions": TokenField(
                np.array([0, 1, 2, 3, 0, 1, 0, 1, 2, 0, 1, 2], np.int32), np.array([0, 6, 12])
            ),
        },
        tokens_field="input_ids",
        masks=(),
        spans=Spans(
            row_splits=np.array([0, 2, 3]),
            start=np.array([0, 0, 2]),
            length=np.array([4, 2, 3]),
            closes=np.array([True, False, True]),
            component=np.array([0, 1, 1], np.int32),
            dataset_id=np.array([1, 2, 2]),
            shard_id=np.array([0, 3, 3]),
            row=np.array([7, 4, 4]),
            ordinal=np.array([12, 13, 13]),
            child=np.array([-1, 1, 1], np.int32),
        ),
        lane=np.array([5, 6]),
        padding=np.array([0, 3]),
        packing="flat",
        payload=None,
        container="list",
        chunk_size=10,
        pad_token_id=0,
        pad_to_longest=False,
    )
    return dataclasses.replace(rows, **changes)


def document_rows():
    """The three pieces of ``packed_rows``, each a row that is one document without tokens."""
    rows = packed_rows(packing="none", fields={}, tokens_field=None, padding=None)
    spans = dataclasses.replace(rows.spans, row_splits=np.arange(4))
    return dataclasses.replace(rows, spans=spans, lane=np.array([5, 5, 6]))


def record(payload, **meta):
    return SampleRecord(SampleMeta((0, 0, 0), 0, 0, **meta), payload)


# -- identity ---------------------------------------------------------------------------------


def test_the_documented_names_are_public():
    documented = """ChunkId ChunkOffset ComponentId DatasetId LaneId LineageIndex LocalSampleId
        ShardId LineagePath SampleId SampleCursor SampleCursorKey ContributorRef SampleMeta
        SampleRecord SampleBatch StreamItem SamplePayload SamplePayloadAtom SamplePayloadArray
        SamplePayloadDict SampleNumeric"""
    assert set(documented.split()) <= set(zephon.types.__all__)
    assert all(hasattr(zephon.types, name) for name in zephon.types.__all__)
    assert zephon.types.ChunkId is int


def test_cursors_order_by_chunk_offset_lineage_and_sample():
    ordered = [
        SampleCursor(0, 0, (9, 9, 9)),
        SampleCursor(0, 1, (0, 0, 1)),
        SampleCursor(0, 1, (0, 0, 2)),
        SampleCursor(0, 1, (0, 0, 0), (0,)),
        SampleCursor(0, 1, (0, 0, 0), (0, 3)),
        SampleCursor(0, 1, (0, 0, 0), (1,)),
        SampleCursor(1, 0, (0, 0, 0)),
    ]
    shuffled = [ordered[i] for i in (3, 6, 0, 5, 1, 4, 2)]
    assert sorted(shuffled) == ordered
    assert ordered[0] < ordered[1] <= ordered[1] < ordered[2]
    assert ordered[2] > ordered[1] >= ordered[1]
    with pytest.raises(TypeError):
        _ = ordered[0] < 3
    with pytest.raises(TypeError):
        _ = ordered[0] >= (0, 0)


def test_a_cursor_survives_the_way_through_its_key():
    cursor = SampleCursor(2, 5, (1, 2, 3)).child(4).child(0)
    assert cursor.lineage == (4, 0)
    assert cursor.base_offset == (2, 5)
    assert cursor.as_key() == (2, 5, (4, 0), (1, 2, 3))
    assert SampleCursor.from_key(cursor.as_key()) == cursor
    assert SampleCursor.from_key([2, 5, [4, 0], [1, 2, 3]]) == cursor  # as JSON gives it back


def test_a_plain_meta_is_its_own_closing_contributor():
    meta = SampleMeta((1, 2, 3), 4, 5, 6)
    assert meta.component_sample_counts == {0: 1}
    assert meta.component_token_counts is None
    assert (meta.lineage, meta.tags) == ((), {})
    assert meta.cursor == SampleCursor(5, 6, (1, 2, 3))
    assert meta.as_cursor_key() == meta.cursor.as_key()
    assert meta.contributors is None
    assert meta.contribution_refs() == (ContributorRef(meta.cursor, True),)
    assert meta.contribution_cursors() == (meta.cursor,)
    assert meta.padding_length is None
    assert not (meta.tombstone or meta.is_sentinel or meta.is_flush_sentinel)


def test_changed_metas_leave_the_old_one_alone():
    meta = SampleMeta((1, 2, 3), 4, 5, component_token_counts={0: 9})
    child = meta.child(2)
    assert child.lineage == (2,)
    assert child.child(0).with_lineage([7]).lineage == (7,)
    child.tags["mine"] = 1
    child.component_sample_counts[0] = 5
    child.component_token_counts[0] = 5
    assert meta == SampleMeta((1, 2, 3), 4, 5, component_token_counts={0: 9})
    ref = ContributorRef(SampleCursor(0, 0, (0, 0, 0)), is_last_child=False)
    assert meta.with_contributors([ref]).contributors == (ref,)
    assert meta.with_contributors([ref]).contribution_refs() == (ref,)
    assert meta.with_tombstone().tombstone
    assert not meta.with_tombstone().with_tombstone(False).tombstone
    assert meta.tags == {}
    assert hash(meta) == hash(SampleMeta((1, 2, 3), 4, 5, component_token_counts={0: 9}))


def test_control_records_are_known_by_their_tags():
    flush = SampleMeta((0, 0, 0), 0, 0, tags={"_flush_sentinel": True})
    assert flush.is_flush_sentinel
    assert flush.is_sentinel
    ended = SampleMeta((0, 0, 0), 0, 0, tags={"_source_exhausted": True})
    assert ended.is_sentinel
    assert not ended.is_flush_sentinel


# -- records ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        {"a": [1, 2.5, "x", None, float("nan")]},
        {"a": np.array([1.0, np.nan])},
        {"a": torch.tensor([1, 2]), "b": {"c": (1, [2])}},
        np.array(["x"]),
        None,
    ],
)
def test_records_of_the_same_content_are_equal(payload):
    assert record(payload) == record(copy.deepcopy(payload))
    assert SampleBatch([record(payload)]) == SampleBatch([record(copy.deepcopy(payload))])
    assert record(payload) != record(payload, chunk_offset=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], (1, 2)),
        ([1, 2], [1, 2, 3]),
        (np.array([1]), np.array([1], np.int32)),
        (np.array([1]), np.array([2])),
        (torch.tensor([1]), torch.tensor([1.0])),
        (torch.tensor([1]), np.array([1])),
        ({"a": 1}, {"b": 1}),
        (1, True),
    ],
)
def test_records_of_other_content_differ(one, other):
    assert record({"x": one}) != record({"x": other})
    assert SampleBatch([record({"x": one})]) != SampleBatch([record({"x": other})])


def test_records_are_mutable_dataclasses():
    one = record({"a": 1})
    one.payload = {"a": 2}
    assert dataclasses.replace(one, payload=3).payload == 3
    assert one != 3
    with pytest.raises(AttributeError, match="no attribute 'paylod'"):
        _ = one.paylod


def test_an_engine_s_record_is_an_ordinary_one_whose_payload_waits():
    one = record_of(packed_rows(), 0)
    assert type(one) is SampleRecord
    twin = SampleRecord(one.meta, one.payload)
    fresh = record_of(packed_rows(), 0)
    for made in (pickle.loads(pickle.dumps(fresh)), copy.deepcopy(fresh), copy.copy(fresh)):
        assert made == twin
    assert dataclasses.replace(fresh, payload=1).payload == 1
    assert "payload={'input_ids': [10, 11" in repr(record_of(packed_rows(), 0))
    assert one.payload is one.payload
    assert fresh.meta is fresh.meta


def test_a_batch_is_what_its_columns_say_until_a_record_says_otherwise():
    batch = SampleBatch.from_rows(packed_rows())
    said = batch.lane_ids
    first = batch.records[0]
    assert first.meta.lane_id == said[0]  # who looks at a meta changes nothing
    assert batch.lane_ids == said
    batch.records[1].meta = dataclasses.replace(batch.records[1].meta, lane_id=77)
    assert batch.lane_ids == [said[0], 77, *said[2:]]
    other = SampleBatch.from_rows(packed_rows())
    other.records[0].meta = first.meta  # equal, but somebody's own
    assert other.lane_ids == said


def test_records_of_documents_say_the_same_alone_and_together():
    rows = document_rows()
    together = SampleBatch.from_rows(rows).records
    for i in reversed(range(len(rows))):
        assert together[i].meta == record_of(rows, i).meta
        assert together[i].meta is together[i].meta
        assert together[i].payload == record_of(rows, i).payload


# -- from columns to records ------------------------------------------------------------------


def test_a_packed_row_is_named_after_its_first_document():
    batch = SampleBatch.from_rows(packed_rows())
    assert batch.ids == [(1, 0, 7), (2, 3, 4)]
    assert batch.lane_ids == [5, 6]
    assert batch.chunk_ids == [1, 1]
    assert batch.lineage_paths == [(0,), (1, 2)]  # part 1, from its token 2
    metas = [r.meta for r in batch.records]
    assert [m.sample_id for m in metas] == batch.ids
    assert [m.lineage for m in metas] == batch.lineage_paths
    assert [(m.chunk_id, m.chunk_offset) for m in metas] == [(1, 2), (1, 3)]
    assert [m.lane_id for m in metas] == batch.lane_ids


def test_a_packed_row_lists_what_went_into_it():
    first, second = (r.meta for r in SampleBatch.from_rows(packed_rows()).records)
    assert first.tags["_packing_metadata"] == {
        "num_sequences": 2,
        "total_length": 6,
        "packing_efficiency": 1.0,
        "padding_length": 0,
    }
    assert second.tags["_packing_metadata"] == {
        "num_sequences": 1,
        "total_length": 3,
        "packing_efficiency": 0.5,
        "padding_length": 3,
    }
    assert (first.padding_length, second.padding_length) == (0, 3)
    whole = SampleCursor(1, 2, (1, 0, 7))
    part = SampleCursor(1, 3, (2, 3, 4), (1,))
    assert first.contributors == (ContributorRef(whole, True), ContributorRef(part, False))
    assert second.contributors == (ContributorRef(part, True),)
    assert first.component_sample_counts == {0: 1, 1: 0}
    assert second.component_sample_counts == {1: 1}
    assert first.component_token_counts == {0: 4, 1: 2}
    assert second.component_token_counts == {1: 3}


def test_packing_without_padding_says_so():
    meta = record_of(packed_rows(padding=None), 0).meta
    assert meta.padding_length is None
    assert meta.tags["_packing_metadata"]["packing_efficiency"] == 1.0


def test_a_plain_row_keeps_the_identity_of_its_document():
    rows = packed_rows(packing="none", padding=None)
    first, second = (record_of(rows, i).meta for i in range(2))
    assert first.lineage == ()
    assert second.lineage == (1,)
    assert first.contributors is None
    assert list(first.tags) == ["_placement"]
    assert SampleBatch.from_rows(rows).lineage_paths == [(), (1,)]


@pytest.mark.parametrize(
    ("container", "kind"),
    [("list", list), ("tuple", tuple), ("np", np.ndarray), ("pt", torch.Tensor)],
)
def test_payloads_hold_what_the_batch_says(container, kind):
    payload = record_of(packed_rows(container=container), 1).payload
    assert list(payload) == ["input_ids", "positions"]
    assert all(type(value) is kind for value in payload.values())
    assert list(map(int, payload["input_ids"])) == [22, 23, 24, 0, 0, 0]
    if container == "np":
        assert payload["positions"].dtype == np.int32
    if container == "pt":
        assert payload["positions"].dtype == torch.int32


class Kept:
    def __init__(self, *rows):
        self.rows = rows
        self.decoded = 0

    def __len__(self):
        return len(self.rows)

    def row(self, i):
        self.decoded += 1
        return copy.deepcopy(self.rows[i])


def test_fields_lie_over_the_kept_payload():
    kept = Kept({"text": "a", "input_ids": "old"}, "no dict")
    records = SampleBatch.from_rows(packed_rows(payload=kept, masks=("attention_mask",))).records
    assert kept.decoded == 0
    assert records[0].payload["text"] == "a"
    assert records[0].payload["input_ids"] == [10, 11, 12, 13, 20, 21]
    assert records[1].payload["attention_mask"] == [1, 1, 1, 0, 0, 0]
    assert list(records[1].payload) == ["input_ids", "positions", "attention_mask"]
    assert kept.decoded == 2
    raw = packed_rows(fields={}, tokens_field=None, payload=kept, masks=("attention_mask",))
    assert record_of(raw, 1).payload == "no dict"
    assert record_of(dataclasses.replace(raw, payload=None), 1).payload == {}


# -- batches ----------------------------------------------------------------------------------


def test_a_batch_is_made_of_records_in_order():
    records = [record({"tokens": [i]}, chunk_offset=i, lineage=(i,)) for i in range(3)]
    batch = SampleBatch(iter(records))
    assert batch.records == tuple(records)
    assert list(batch) == records
    assert len(batch) == 3
    assert batch.ids == [(0, 0, 0)] * 3
    assert (batch.lane_ids, batch.chunk_ids) == ([0] * 3, [0] * 3)
    assert batch.lineage_paths == [(0,), (1,), (2,)]
    assert repr(batch) == "SampleBatch(3 records, lanes: 0)"
    assert repr(SampleBatch([])) == "SampleBatch(0 records, lanes: none)"
    assert batch != records
    with pytest.raises(TypeError, match="item 1 must be a SampleRecord, got dict"):
        SampleBatch([records[0], {"tokens": [1]}])


def test_nothing_per_row_is_made_until_it_is_asked_for():
    batch = SampleBatch.from_rows(packed_rows())
    assert len(batch) == 2
    assert batch.ids
    assert batch.to_training()
    assert batch._built == {}
    assert batch.records is batch.records


def test_threads_that_ask_at_once_get_the_same_records():
    batch = SampleBatch.from_rows(packed_rows())
    ready, found = threading.Barrier(4), []

    def ask():
        ready.wait(timeout=10)
        found.append(batch.records)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len({id(records) for records in found}) == 1


def test_a_batch_is_what_its_records_became():
    batch = SampleBatch.from_rows(packed_rows())
    before = batch.to_training(dtype=None)
    batch.records[0].payload["input_ids"][0] = 99
    assert batch.to_training(dtype=None)["input_ids"][0][0] == 99
    batch.records[1].meta = batch.records[1].meta.with_lineage([8])
    assert batch.lineage_paths == [(0,), (8,)]
    assert SampleBatch.from_rows(packed_rows()).to_training(dtype=None) == before


@pytest.mark.parametrize("change", ["payload", "meta"])
def test_a_record_changed_without_a_look_counts(change):
    batch = SampleBatch.from_rows(packed_rows())
    if change == "payload":
        batch.records[0].payload = {"input_ids": [1] * 6, "positions": [0] * 6}
        assert batch.to_training(dtype=None)["input_ids"][0] == [1] * 6
    else:
        batch.records[0].meta = SampleMeta((7, 7, 7), 9, 0)
        assert batch.lane_ids == [9, 6]
        assert batch.to_training()["ids"] == [(7, 7, 7), (2, 3, 4)]


@pytest.mark.parametrize("carry", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_batches_travel(carry):
    batch = SampleBatch.from_rows(packed_rows())
    assert carry(batch) == SampleBatch.from_rows(packed_rows())
    batch.records[0].payload["input_ids"][0] = 99
    assert carry(batch).records[0].payload["input_ids"][0] == 99
    assert carry(batch) == batch
    assert carry(SampleBatch([record({"a": 1})])) == SampleBatch([record({"a": 1})])


def test_batches_are_not_hashable_as_their_records_may_change():
    with pytest.raises(TypeError):
        hash(SampleBatch([]))
    with pytest.raises(TypeError):
        hash(record(1))
