"""Delivered rows as a table: a column a field, whatever holds the values."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from zephon.errors import DataError
from zephon.exec.tables import table_of
from zephon.types import SampleBatch, SampleMeta, SampleRecord


def record(payload, row=0):
    return SampleRecord(SampleMeta(sample_id=(0, 0, row), lane_id=0, chunk_id=0), payload)


def test_records_and_batches_give_rows():
    table = table_of([record({"a": 1}), SampleBatch([record({"a": 2, "b": "x"}), record({})])])
    assert table.to_pydict() == {"a": [1, 2, None], "b": [None, "x", None]}


@pytest.mark.parametrize("values", [[1, 2], np.array([1, 2]), torch.tensor([1, 2]), (1, 2)])
def test_lists_come_from_whatever_holds_them(values):
    assert table_of([record({"ids": values})]).to_pydict() == {"ids": [[1, 2]]}


def test_a_row_that_is_no_dict_stands_in_a_column_of_its_own():
    assert table_of([record("text"), record("more")]).to_pydict() == {"value": ["text", "more"]}


def test_no_rows_give_no_columns():
    assert table_of([]).num_columns == 0


def test_values_without_one_type_are_refused_by_the_name_of_the_field():
    with pytest.raises(DataError, match="the values of field 'odd' must have one type"):
        table_of([record({"odd": 1}), record({"odd": "one"})])


def test_known_types_are_kept_where_values_can_be_of_them():
    known = {"day": pa.date32(), "at": pa.timestamp("us", "UTC"), "n": pa.int8()}
    day, at = np.datetime64("2020-01-02", "D"), np.datetime64("2020-01-02T03:04:05", "us")
    table = table_of([record({"day": day, "at": at, "n": 3})], known)
    assert table.schema == pa.schema(list(known.items()))
    assert table_of([record({"n": "three"})], known).schema == pa.schema([("n", pa.string())])
    assert table_of([], known).schema == pa.schema(list(known.items()))


def test_times_of_several_units_stand_in_the_finest():
    times = [np.datetime64("2000-01-01T00:00:00.001", "ms"), np.datetime64(5, "us"), None]
    rows = [record({"at": time}) for time in times]
    assert table_of(rows).schema.types == [pa.timestamp("us")]
    for known in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")):
        column = table_of(rows, {"at": known})["at"]
        assert column.type == known
        counted = column.cast(pa.timestamp("us")).cast(pa.int64())
        assert counted.to_pylist() == [946684800001000, 5, None]


def test_times_that_no_one_unit_holds_are_refused():
    far, fine = np.datetime64("9999-01-01", "ms"), np.datetime64(5, "ns")
    with pytest.raises(DataError, match="the values of field 'at' must have one type"):
        table_of([record({"at": far}), record({"at": fine})], {"at": pa.timestamp("ns")})


def test_names_that_are_no_text_are_written_as_text():
    assert table_of([record({1: 5})]).to_pydict() == {"1": [5]}
    with pytest.raises(DataError, match="two are written '1'"):
        table_of([record({1: 5, "1": 6})])
    for rows in ([record({"\ud800": 5})], []):
        with pytest.raises(DataError, match=r"names of fields must be UTF-8.*'\\ud800'"):
            table_of(rows, {"\ud800": pa.int64()})
    with pytest.raises(DataError, match="the values of field 'n'"):
        table_of([record({"n": 2**70})])
