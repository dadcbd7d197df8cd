"""Lists of numbers are the same from every format, in a type that changes none of them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import written
from tests.io.conftest import Rows
from zephon import Dataset, InMemoryShard
from zephon.errors import DataError, DatasetError
from zephon.io.fields import NUMBERS, Column, can_hold, widened

VALUES = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": st.floats(width=32),
    "float64": st.floats(),
    "bool": st.booleans(),
}
LISTS = {kind: pa.list_(pa.type_for_alias(kind)) for kind in NUMBERS}


def lists_of(kind):
    return st.lists(st.lists(VALUES[kind], max_size=5), min_size=1, max_size=9)


def said(rows):
    """Compare by words: a not-a-number equals itself, and minus zero nothing else."""
    return repr(rows)


def datasets(folder, rows, item):
    """Write the same rows in every format."""
    written.parquet(folder / "parquet", "a.parquet", pa.table({"n": pa.array(rows, item)}))
    return {"parquet": Dataset.from_path("d", folder / "parquet"), **untyped(folder, rows)}


def untyped(folder, rows):
    """Write the same rows in the formats whose lists have no type of their own."""
    records = [{"n": row} for row in rows]
    written.lines(folder / "jsonl", "a.jsonl", records)
    return {
        "jsonl": Dataset.from_path("d", folder / "jsonl"),
        "in_memory": Dataset.from_dict("d", {0: InMemoryShard(records)}),
    }


@pytest.mark.parametrize("kind", NUMBERS)
@settings(max_examples=25)
@given(data=st.data())
def test_every_format_gives_the_values_as_written(kind, tmp_path_factory, data):
    rows = data.draw(lists_of(kind))
    order = data.draw(st.permutations(range(len(rows))))
    wanted = [[int(each) if kind == "bool" else each for each in rows[at]] for at in order]
    for made in datasets(tmp_path_factory.mktemp("n"), rows, LISTS[kind]).values():
        column = Column("n", kind)
        taken = Rows(made, column).take(order).columns.column("n")
        assert taken.type == column.type
        assert said(taken.to_pylist()) == said(wanted)


@pytest.mark.parametrize("kind", NUMBERS)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_seen_in_the_first_rows_can_be_read(kind, tmp_path_factory, data):
    rows = data.draw(lists_of(kind))
    for format_, made in datasets(tmp_path_factory.mktemp("n"), rows, LISTS[kind]).items():
        seen = made.first_lists(["n"])["n"]
        assert seen.lengths == tuple(map(len, rows))
        assert seen.container == ("np" if format_ == "parquet" else "list") == made.held_in("n")
        if format_ == "parquet":
            assert seen.kind == kind
        elif any(rows):
            assert seen.kind == {"int32": "int64", "float32": "float64"}.get(kind, kind)
        found = Rows(made, Column("n", seen.kind or "int64")).values()
        assert said(found) == said([[int(v) if kind == "bool" else v for v in r] for r in rows])


ODD = [
    ("int32", [2**31], "2147483648"),
    ("int64", [0.5], None),
    ("int64", [True], None),
    ("float32", [0.1], "0.1"),
    ("float64", [False], None),
    ("bool", [1], None),
    ("bool", [0], None),
]


@pytest.mark.parametrize(("kind", "odd", "value"), ODD)
@pytest.mark.parametrize("format_", ["jsonl", "in_memory"])
def test_another_value_is_an_error_of_its_row(kind, odd, value, format_, tmp_path):
    good = [True] if kind == "bool" else [1]
    made = untyped(tmp_path, [good, odd, good])[format_]
    rows = Rows(made, Column("n", kind))
    assert rows.values([0, 2]) == [[1], [1]]
    message = r"dataset 'd', shard .*, row 1.*: field 'n' must be a list of .*, got "
    with pytest.raises(DataError, match=message + (value or "a list that holds")):
        rows.values([1])


@pytest.mark.parametrize(
    ("kind", "item", "odd"),
    [
        ("int32", pa.int64(), 2**31), ("int64", pa.uint64(), 2**63), ("float32", pa.float64(), 0.1),
        ("float64", pa.int64(), 2**53 + 1),
    ],
)  # fmt: skip
def test_so_it_is_in_parquet(kind, item, odd, tmp_path):
    table = pa.table({"n": pa.array([[1], [1, odd], None, [None], [1]], pa.list_(item))})
    pq.write_table(table, tmp_path / "a.parquet")
    rows = Rows(Dataset.from_path("d", tmp_path), Column("n", kind))
    assert rows.values([0, 4]) == [[1], [1]]
    for row, got in enumerate([str(odd), "null", "a list that holds null"], 1):
        message = rf"row {row}: .*, got {got}; mend or remove the row, or leave the field out"
        with pytest.raises(DataError, match=message):
            rows.values([row])


@pytest.mark.parametrize(
    ("kind", "item"),
    [("bool", pa.int8()), ("bool", pa.uint8()), ("int64", pa.bool_()), ("int32", pa.float32()),
     ("float64", pa.bool_()), ("float64", pa.string()), ("float32", pa.list_(pa.int8()))],
)  # fmt: skip
def test_a_column_of_another_sort_is_refused(kind, item, tmp_path):
    values = [["a"]] if item == pa.string() else [[[1]]] if pa.types.is_list(item) else [[1]]
    pq.write_table(pa.table({"n": pa.array(values).cast(pa.list_(item))}), tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match=r"column 'n' must be a list of .*, got list<"):
        Rows(Dataset.from_path("d", tmp_path), Column("n", kind))


@pytest.mark.parametrize("format_", ["jsonl", "in_memory"])
def test_a_row_without_the_field_says_how_to_do_without_it(format_, tmp_path):
    if format_ == "jsonl":
        written.lines(tmp_path, "a.jsonl", [{"n": [1]}, {"m": [1]}])
        made = Dataset.from_path("d", tmp_path)
    else:
        made = Dataset.from_dict("d", {0: InMemoryShard([{"n": [1]}, {"m": [1]}])})
    with pytest.raises(DataError, match=r"row 1.*no field 'n'; the row has m; aligned_fields can"):
        Rows(made, Column("n", "float64")).values([1])
    assert Rows(made, Column("n", "float64", missing="empty")).values([0, 1]) == [[1], []]


@given(st.lists(st.sampled_from([*NUMBERS, ""]), max_size=4))
def test_what_is_widened_holds_all(kinds):
    found = widened(kinds)
    if found is None:
        assert "bool" in kinds
    elif found:
        assert all(can_hold(found, kind) for kind in kinds)
    else:
        assert set(kinds) <= {""}
