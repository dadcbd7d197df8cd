"""Whole rows after column steps: the row below, without some fields, with computed ones over it."""

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

from zephon.batches.identity import SampleMeta
from zephon.errors import DataError
from zephon.io.formats.memory import ObjectRows
from zephon.io.payload import Payload, RowSource
from zephon.io.shaped_rows import ShapedRows

BELOW = [{"a": 1, "b": "x", "c": [1]}, {"a": 2, "b": "y"}, {"a": 3, "d": None}]
COMPUTED = pa.record_batch(
    {
        "n": pa.array([1, 2, None], pa.int8()),
        "ids": pa.array([[1, 2], [], None], pa.large_list(pa.int32())),
        "day": pa.array([date(2020, 2, 29), None, None]),
    }
)


def payload(source, count):
    return Payload((source,), np.zeros(count, np.int32), np.arange(count))


def shaped(below=BELOW, computed=(), **changes):
    return ShapedRows(
        None if below is None else payload(ObjectRows(below), len(below)),
        **{"over": below is not None, "computed": COMPUTED.select(list(computed)), **changes},
    )


def test_fields_go_are_renamed_and_are_laid_over():
    rows = shaped(gone=("c",), new={"b": "text", "a": "b"}, computed=["n"])
    wanted = [
        {"b": 1, "text": "x", "n": 1}, {"b": 2, "text": "y", "n": 2}, {"b": 3, "d": None, "n": None}
    ]  # fmt: skip
    assert [rows.row(index) for index in range(3)] == wanted
    assert rows.rows(np.array([2, 0, 2])) == [wanted[2], wanted[0], wanted[2]]
    assert list(rows.row(0)) == ["b", "text", "n"]


def test_computed_values_are_those_of_parquet_rows():
    row = shaped(None, computed=["n", "ids", "day"]).row(0)
    assert type(row["n"]) is np.int8
    assert row["ids"].dtype == np.int32
    assert row["day"] == np.datetime64("2020-02-29")
    assert shaped(None, computed=["ids"]).rows(np.array([2])) == [{"ids": None}]


def test_each_look_gives_fresh_values():
    rows = shaped()
    rows.row(0)["c"].append(2)
    assert rows.row(0)["c"] == [1]


def test_some_rows_are_copied_out():
    rows = shaped(gone=("c",), new={"a": "k"}, computed=["n"])
    few, places = rows.some(np.array([2, 0, 2]))
    assert [few.row(place) for place in places.tolist()] == [rows.row(n) for n in (2, 0, 2)]
    assert few._computed.num_rows == 2
    nothing, places = shaped(None).some(np.array([1]))
    assert nothing.row(int(places[0])) == {}


def test_a_row_that_is_no_object_cannot_have_fields():
    with pytest.raises(DataError, match="row 0: a row must be an object with fields to"):
        shaped(["text"], computed=["n"]).row(0)


def test_two_fields_of_one_name_are_a_bad_row():
    told = "^dataset 'd', shard '7', row 3: a row must have no field 'b', since another is"
    below = ObjectRows(BELOW, "dataset 'd', shard '7'", [3, 5, 8])
    rows = ShapedRows(payload(below, 3), over=True, new={"a": "b"}, computed=COMPUTED.select([]))
    few, places = rows.some(np.array([2, 0]))
    for source, index in ((rows, 0), (few, int(places[1]))):
        with pytest.raises(DataError, match=told):
            source.row(index)
        assert source.place(index) == "dataset 'd', shard '7', row 3"
    assert shaped(new={"a": "b"}).row(2) == {"b": 3, "d": None}


class Named(RowSource):
    has_metas = True

    def row(self, index):
        return {"a": index}

    def meta(self, index):
        return SampleMeta(sample_id=(0, 0, index), lane_id=0, chunk_id=0)

    def metas_only(self):
        return OnlyNamed()


class OnlyNamed(Named):
    def row(self, index):
        return {}


def test_rows_say_who_they_are_if_those_below_do():
    for over in (True, False):
        rows = ShapedRows(payload(Named(), 3), over=over, computed=COMPUTED.select(["n"]))
        assert rows.has_metas
        assert rows.meta(1).sample_id == (0, 0, 1)
        assert rows.row(1) == ({"a": 1, "n": 2} if over else {"n": 2})
        only = rows.metas_only()
        assert (only.row(1), only.meta(1).sample_id) == ({}, (0, 0, 1))
    assert not shaped().has_metas


def test_a_computed_value_that_python_does_not_have_is_refused():
    computed = pa.record_batch({"d": pa.array([1000, 1001], pa.duration("ns"))})
    rows = ShapedRows(None, over=False, computed=computed)
    assert rows.row(0) == {"d": timedelta(microseconds=1)}
    with pytest.raises(DataError, match=r"^field 'd' must hold what Python has .*lose data: 1001"):
        rows.row(1)
