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
        takes = ", which aligned_fields={'n': 'float64'} takes" if got == "0.1" else ""
        message = (
            rf"row {row}: .*, got {got}{takes}; mend or remove the row, or leave the field out"
        )
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


LARGE = 2**53 + 1
ROUNDED = [
    [LARGE, 0.5],
    [0.5, -LARGE],
    [LARGE],
    [2**63 - 1, 1.0],
    [2**64 + 1, 1.0],
    [10**400, 1.0],
]


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("odd", ROUNDED, ids=lambda odd: f"{str(odd)[:24]}")
@pytest.mark.parametrize("format_", ["jsonl", "in_memory"])
def test_an_integer_that_a_float_rounds_is_an_error_of_its_row(format_, odd, kind, tmp_path):
    rows = Rows(untyped(tmp_path, [[0.5], odd, [0.25]])[format_], Column("n", kind))
    assert rows.values([0, 2]) == [[0.5], [0.25]]
    value = next(each for each in odd if isinstance(each, int))
    with pytest.raises(DataError, match=rf"row 1.*field 'n' must be .* numbers.*, got {value}"):
        rows.values([1])


@pytest.mark.parametrize("format_", ["jsonl", "in_memory"])
def test_large_integers_that_are_floats_are_read(format_, tmp_path):
    values = [2**53, -(2**53) - 2, 2**70, 1e300, -1e16, 0.5]
    rows = Rows(untyped(tmp_path, [values, [1]])[format_], Column("n", "float64"))
    assert rows.values([0, 1]) == [values, [1]]


def test_a_float_in_json_is_the_nearest_as_json_has_it(tmp_path):
    written.lines(tmp_path, "a.jsonl", [b'{"n": [9007199254740993.0, 9007199254740993e0, 1e400]}'])
    found = Rows(Dataset.from_path("d", tmp_path), Column("n", "float64")).values()
    assert found == [[2.0**53, 2.0**53, float("inf")]]


def without(format_, folder):
    """Make a dataset whose second row lacks the field ``n``."""
    if format_ == "jsonl":
        written.lines(folder, "a.jsonl", [{"n": [1]}, {"m": [1]}])
        return Dataset.from_path("d", folder)
    return Dataset.from_dict("d", {0: InMemoryShard([{"n": [1]}, {"m": [1]}])})


@pytest.mark.parametrize("format_", ["jsonl", "in_memory"])
@pytest.mark.parametrize(
    ("kind", "ways"), [("float64", ["aligned_fields"]), ("tokens", []), ("text", ["missing_field"])]
)
def test_a_row_without_the_field_says_how_to_do_without_it_once(format_, kind, ways, tmp_path):
    made = without(format_, tmp_path)
    with pytest.raises(DataError, match=r"row 1.*no field 'n'; the row has m; ") as caught:
        Rows(made, Column("n", kind)).values([1])
    for word in ("aligned_fields", "missing_field"):
        assert str(caught.value).count(word) == ways.count(word)
    assert str(caught.value).count("mend or remove") == 1
    if kind == "float64":
        assert Rows(made, Column("n", kind, missing="empty")).values([0, 1]) == [[1], []]


LATE = [("int64", 0.5, "a list that holds 0.5"), ("float32", 0.1, "0.1")]


@pytest.mark.parametrize(("kind", "odd", "got"), LATE)
@pytest.mark.parametrize("format_", ["jsonl", "in_memory"])
def test_a_late_fraction_says_how_to_state_the_type(format_, kind, odd, got, tmp_path):
    rows = Rows(untyped(tmp_path, [[1], [odd], None])[format_], Column("n", kind))
    message = rf"row 1.*, got {got}, which aligned_fields={{'n': 'float64'}} takes;.* leave the fie"
    with pytest.raises(DataError, match=message):
        rows.values([1])
    with pytest.raises(DataError, match=r"row 2.*got null; .*leave the field out") as caught:
        rows.values([2])
    assert "float64" not in str(caught.value)


@given(st.lists(st.sampled_from([*NUMBERS, ""]), max_size=4))
def test_what_is_widened_holds_all(kinds):
    found = widened(kinds)
    if found is None:
        assert "bool" in kinds
    elif found:
        assert all(can_hold(found, kind) for kind in kinds)
    else:
        assert set(kinds) <= {""}
