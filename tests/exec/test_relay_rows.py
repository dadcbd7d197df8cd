"""Records of rows, and rows of records: who they are, and whose memory they hold."""

import numpy as np
import pytest

from tests.exec.by_hand import chain_of, lane_of, push
from zephon.errors import ExecutionError
from zephon.exec.assemble import Assembler, Naming
from zephon.exec.relay_rows import RowsOfRecords, records_of_rows
from zephon.planner.physical import RowLayout
from zephon.types import SampleMeta, SampleRecord

# Components 0 and 2 read one dataset of two shards, 1 another one of three.
NAMING = Naming(
    component_id=np.array([4, 6, 5], np.int32),
    dataset_id=np.array([70, 80, 70]),
    shard_id=np.array([9, 3, 21, 20, 22]),
    first_shard=np.array([0, 2, 0]),
    chunk_size=8,
)


def record(sample_id, counts, payload=None):
    return SampleRecord(SampleMeta(sample_id, 3, 0, 5, component_sample_counts=counts), payload)


def test_records_name_the_source_rows_of_their_samples():
    rows = RowsOfRecords(NAMING, "op")
    made = [
        record((70, 3, 11), {4: 1}, {"a": 1}),
        record((80, 22, 12), {6: 1}, {"a": 2}),
        record((70, 9, 13), {5: 0}, {"a": 3}),
        record((70, 9, 14), {6: 1, 5: 1}, {"a": 4}),
        record((70, 9, 15), {99: 1}, {"a": 5}),
    ]
    morsel = rows.rows(3, 17, made)
    refs = morsel.refs
    assert refs.component.tolist() == [0, 1, 2, 2, 0]
    assert refs.shard.tolist() == [1, 2, 0, 0, 0]
    assert refs.row.tolist() == [11, 12, 13, 14, 15]
    assert (set(refs.lane.tolist()), set(refs.ordinal.tolist())) == ({3}, {17})
    assert refs.child.tolist() == [0, 1, 2, 3, 4]
    assert refs.last_child.tolist() == [False] * 4 + [True]
    assert morsel.payload.rows() == [{"a": i} for i in range(1, 6)]
    assert [morsel.payload.meta(i) for i in range(5)] == [each.meta for each in made]
    assert rows.component_ids == [4, 5, 6]


@pytest.mark.parametrize("sample_id", [(71, 3, 0), (70, 4, 0), (70, 22, 0), (80, 9, 0)])
def test_a_record_of_no_dataset_is_refused(sample_id):
    with pytest.raises(ExecutionError, match=r"op: a record must name a sample of the data, got"):
        RowsOfRecords(NAMING, "op").rows(3, 0, [record(sample_id, {4: 1})])


def test_rows_become_records_of_their_own():
    naming = Naming(
        component_id=np.zeros(1, np.int32),
        dataset_id=np.array([2]),
        shard_id=np.array([8]),
        first_shard=np.zeros(1, np.int64),
        chunk_size=4,
    )
    layout = RowLayout(tokens_field="input_ids", packing="flat", max_length=5)
    assembler = Assembler(layout, naming, pad_token_id=None)
    run = lane_of([3, 4, 2], chain_of(5))
    list(push(run, [3, 4, 2], [3]))
    run.end()
    placed = run.take(1)
    records, again = (records_of_rows(assembler, run, placed) for _ in range(2))
    (found,) = records
    assert list(found.payload["input_ids"]) == [0, 1, 2, 1000, 1001]
    assert found.meta.sample_id == (2, 8, 0)
    assert [ref.cursor.sample_id for ref in found.meta.contribution_refs()] == [
        (2, 8, 0),
        (2, 8, 1),
    ]
    found.payload["input_ids"][0] = 99
    assert again[0].payload["input_ids"][0] == 0
    assert records_of_rows(assembler, run, []) == []
