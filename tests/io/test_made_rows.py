"""Rows of Python objects: whose they are, and what they say of themselves."""

import pickle

import numpy as np
import pytest

from zephon.io.formats.memory import ObjectRows
from zephon.io.made_rows import MadeRecords, MadeRows, part_of, split_records
from zephon.io.payload import Payload
from zephon.types import ContributorRef, SampleMeta


def payload(source, count):
    return Payload((source,), np.zeros(count, np.int32), np.arange(count))


def metas(count):
    return [SampleMeta((0, 0, n), 0, 0, n, tags={"n": n}) for n in range(count)]


def test_each_look_gives_a_copy():
    value = {"x": [1], "a": np.zeros(2)}
    rows = MadeRows([value])
    for look in (rows.row(0), rows.rows(np.array([0]))[0]):
        look["x"].append(2)
        look["a"][:] = 5
    assert value["x"] == [1]
    assert value["a"].tolist() == [0, 0]


def test_what_cannot_be_copied_is_given_as_it_is():
    value = (n for n in ())
    assert MadeRows([value]).row(0) is value


def test_moved_rows_are_the_objects_but_no_two_are_one():
    values = [{"x": [n]} for n in range(3)]
    rows = MadeRows(values)
    found = rows.moved(np.array([2, 0]))
    assert found[0] is values[2]
    assert found[1] is values[0]
    first, other, second = rows.moved(np.array([1, 0, 1]))
    assert first is values[1]
    assert other is values[0]
    assert second == first
    assert second["x"] is not first["x"]


def test_a_payload_moves_rows_of_several_sources():
    values = [{"n": 0}, {"n": 1}]
    mine = [{"n": 2}]
    rows = Payload.concat([payload(MadeRows(values), 2), payload(ObjectRows(mine), 1)])
    found = rows.take(np.array([2, 1])).moved()
    assert found == [{"n": 2}, {"n": 1}]
    assert found[1] is values[1]
    assert found[0] is not mine[0]
    assert rows.rows() == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert not rows.has_metas


def test_some_rows_do_not_keep_the_others():
    class Value:
        pass

    values = [Value() for _ in range(4)]
    few, places = MadeRows(values).some(np.array([3, 1, 3]))
    assert few.moved(places)[:2] == [values[3], values[1]]
    assert len(few._values) == 2
    few, places = MadeRecords(values, metas(4)).some(np.array([3, 1, 3]))
    assert [few.meta(place).sample_id[2] for place in places.tolist()] == [3, 1, 3]
    assert (len(few._values), len(few._metas)) == (2, 2)


def test_records_say_who_they_are_to_each_who_asks():
    known = metas(2)
    rows = payload(MadeRecords(["a", "b"], known), 2)
    assert rows.has_metas
    assert rows.meta(1) == known[1]
    rows.meta(1).tags["n"] = 9
    assert known[1].tags == {"n": 1}


def test_records_may_be_all_that_is_left_of_rows():
    rows = payload(MadeRecords(["a", "b", "c"], metas(3)), 3).metas_only()
    rows = rows.take(np.array([2, 0])).copied()
    assert rows.rows() == [{}, {}]
    assert rows.row(0) is not rows.row(0)
    assert [rows.meta(i).sample_id[2] for i in range(2)] == [2, 0]


@pytest.mark.parametrize("values", [["a", {"b": 1}], None])
def test_records_travel(values):
    sent = payload(MadeRecords(values, metas(2)), 2)
    came = pickle.loads(pickle.dumps(sent, protocol=5))
    assert came.rows() == sent.rows()
    assert [came.meta(i) for i in range(2)] == metas(2)
    came = pickle.loads(pickle.dumps(payload(MadeRows([1, [2]]), 2), protocol=5))
    assert came.rows() == [1, [2]]


def split():
    """Split the second of three records into three parts."""
    last = np.array([True, False, False, True, True])
    child = np.array([0, 0, 1, 2, 0], np.int32)
    rows = payload(MadeRecords(["a", "b", "c"], metas(3)), 3)
    return split_records(rows, np.array([0, 1, 1, 1, 2]), child, last)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows,
        lambda rows: rows.copied(),
        lambda rows: pickle.loads(pickle.dumps(rows)),
        lambda rows: rows.take(np.arange(5)[::-1]).copied().take(np.arange(5)[::-1]),
    ],
)
def test_parts_are_children_and_the_last_uses_the_row_up(change):
    parts = change(split())
    assert parts.rows() == ["a", "b", "b", "b", "c"]
    found = [parts.meta(i) for i in range(5)]
    assert [meta.lineage for meta in found] == [(), (0,), (1,), (2,), ()]
    assert [meta.component_sample_counts[0] for meta in found] == [1, 0, 0, 1, 1]
    assert [meta.sample_id[2] for meta in found] == [0, 1, 1, 1, 2]
    assert parts.metas_only().rows() == [{}] * 5
    assert parts.metas_only().meta(2) == found[2]


def flags(meta):
    return [ref.is_last_child for ref in meta.contribution_refs()]


def test_a_part_that_does_not_close_uses_nothing_up():
    meta = metas(1)[0]
    assert part_of(meta, (), closes=True) == meta
    part = part_of(meta, (2, 1), closes=False)
    assert part.lineage == (2, 1)
    assert part.contribution_refs() == (ContributorRef(part.cursor, False),)
    assert part.component_sample_counts == {0: 0}
    assert meta.component_sample_counts == {0: 1}
    last = part_of(part_of(meta, (0,), closes=False), (3,), closes=True)
    assert last.contribution_refs() == (ContributorRef(last.cursor, False),)


def test_parts_of_a_merged_record_are_made_of_its_sources():
    first, second, meta = metas(3)
    sources = (ContributorRef(first.cursor), ContributorRef(second.cursor, False))
    merged = meta.with_contributors(sources)
    assert part_of(merged, (1,), closes=True).contributors == sources
    part = part_of(merged, (0,), closes=False)
    assert [ref.cursor for ref in part.contribution_refs()] == [first.cursor, second.cursor]
    assert flags(part) == [False, False]
    assert flags(merged) == [True, False]
