"""Columns of any type from Parquet files that have them in several."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zephon.errors import DatasetError
from zephon.io import Dataset
from zephon.io.fields import TEXT, Column
from zephon.io.formats import parquet


@pytest.fixture(name="parquet")
def write_parquet(tmp_path):
    """Write tables as shards; give the dataset."""

    def write(*tables, group=3, **options):
        for number, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=group, **options)
        return Dataset.from_path("d", tmp_path)

    return write


def of_type(path, dtype):
    return Column(path, "any", values=dtype)


def groups_of(dataset, *columns):
    """Read the first row group of each shard: its columns, and what is wrong by row."""
    reader = parquet.Parquet().reader("d", dataset.shards, columns, payload=False)
    read = [reader.read(shard, 0) for shard in range(len(dataset.shards))]
    faults = [
        {row: why for f in g.faults for row, why in zip(f.rows.tolist(), f.details, strict=True)}
        for g in read
    ]
    return [group.columns for group in read], faults


def test_a_column_of_any_type_from_shards_that_differ(parquet):
    shards = [
        pa.table(
            {"n": pa.array([1, None], pa.int8()), "t": pa.array(["a", "b"]).dictionary_encode()}
        ),
        pa.table({"t": pa.array([None, "c"], pa.string_view()), "n": [1.5, 2.0]}),
        pa.table({"n": pa.nulls(2)}),
    ]
    dataset = parquet(*shards)
    types = {field.name: field.type for field in dataset.fields()}
    assert types == {"n": pa.float64(), "t": TEXT}
    batches, faults = groups_of(dataset, of_type("n", pa.float64()), of_type("t", TEXT))
    assert [batch.schema for batch in batches] == [pa.schema({"n": pa.float64(), "t": TEXT})] * 3
    assert [batch.column("n").to_pylist() for batch in batches] == [[1, None], [1.5, 2], [None] * 2]
    assert [batch.column("t").to_pylist() for batch in batches] == [
        ["a", "b"],
        [None, "c"],
        [None] * 2,
    ]
    assert faults == [{}, {}, {}]


def test_a_value_that_would_change_is_a_fault_of_its_row(parquet):
    dataset = parquet(pa.table({"n": [2**53 + 1, 5], "m": [{"x": "a"}, {"x": "b"}]}))
    (batch,), (faults,) = groups_of(dataset, of_type("n", pa.float64()), of_type("m.x", TEXT))
    assert batch.to_pydict() == {"n": [None, 5.0], "m.x": ["a", "b"]}
    assert faults == {
        0: ": field 'n' must be a value of type double, got 9007199254740993; "
        "mend or remove the row"
    }


def test_a_leaf_of_an_object_that_a_shard_has_only_as_null(parquet):
    dataset = parquet(pa.table({"m": [{"x": "a"}]}), pa.table({"m": pa.nulls(1)}))
    batches, _ = groups_of(dataset, of_type("m.x", TEXT))
    assert [batch.column(0).to_pylist() for batch in batches] == [["a"], [None]]


def test_invalid_utf8_in_a_column_of_any_type(parquet):
    broken = pa.array([b"a", b"\xff"]).view(pa.string())
    dataset = parquet(pa.table({"t": broken, "l": [["x"], ["y"]]}))
    (batch,), (faults,) = groups_of(dataset, of_type("t", TEXT))
    assert batch.column("t").to_pylist() == ["a", None]
    assert "got bytes that are not UTF-8; mend or remove the row" in faults[1]


def test_a_column_that_cannot_be_of_that_type(parquet):
    dataset = parquet(pa.table({"n": [1]}), pa.table({"n": ["1"]}))
    with pytest.raises(
        DatasetError, match=r"'1.parquet'.*'n' must be a value of type int64, got string"
    ):
        groups_of(dataset, of_type("n", pa.int64()))


def test_types_do_not_depend_on_the_order_of_shards(tmp_path):
    tables = [
        pa.table({"a": pa.array([{"x": 1}]), "l": pa.array([[]], pa.list_(pa.null()))}),
        pa.table({"a": pa.array([{"y": "s", "x": 0.5}]), "l": [[1]]}),
    ]
    found = []
    for order in (tables, tables[::-1]):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        for number, table in enumerate(order):
            pq.write_table(table, folder / f"{number}.parquet")
        dataset = Dataset.from_path("d", folder)
        found.append({field.name: field.type for field in dataset.fields()})
    wanted = {"a": pa.struct([("x", pa.float64()), ("y", TEXT)]), "l": pa.large_list(pa.int64())}
    assert found == [wanted, wanted]


def test_types_that_do_not_go_together_and_double_names(parquet):
    double = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["d", "d"])
    dataset = parquet(pa.table({"n": [1]}), pa.table({"n": ["1"]}), double)
    assert [(field.name, field.type) for field in dataset.fields()] == [("n", None), ("d", None)]
    assert dataset.type_conflict("n").startswith(
        "shard '0.parquet' has int64, shard '1.parquet' has string; "
    )
    assert dataset.type_conflict("d").startswith("shard '2.parquet' has 2 columns of that name; ")
    assert dataset.type_conflict("x") == "no row has it"


def test_shards_without_rows_have_no_say_in_types(parquet):
    dataset = parquet(pa.table({"n": pa.array([], pa.string())}), pa.table({"n": [1]}))
    assert dataset.fields()[0].type == pa.int64()
    empty = pa.table({"n": pa.array([], pa.string())})
    assert parquet(empty, empty).fields()[0].type == TEXT
