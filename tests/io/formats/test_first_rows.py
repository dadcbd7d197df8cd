"""What a field is, by the first rows; whatever a row's own code does, looking at it is safe."""

from collections import UserDict

import numpy as np
import pyarrow as pa
import pytest

from tests import written
from zephon import Dataset, InMemoryShard
from zephon.errors import ShardError
from zephon.io.fields import LOOKED_AT, Seen
from zephon.io.formats.first_rows import seen_in_column, seen_in_rows


class Breaks:
    def __array__(self, *_):
        raise OSError("the disk under this row is gone")


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ([1, 2], Seen("int64", (2,))),
        ((1, 2, 3), Seen("int64", (3,), "tuple")),
        ([1, 0.5], Seen("float64", (2,))),
        ([True, False], Seen("bool", (2,))),
        ([True, 2], Seen(None, (2,))),
        (["a"], Seen(None, (1,))),
        ([[1]], Seen(None, (1,))),
        ([None], Seen(None, (1,))),
        ([], Seen("", (0,))),
        (None, Seen("", (-1,))),
        ("text", Seen(None, (-1,))),
        (b"bytes", Seen(None, (-1,))),
        (7, Seen(None, (-1,))),
        ({"a": 1}, Seen(None, (-1,))),
        (np.zeros(3, np.uint8), Seen("int32", (3,), "np")),
        (np.zeros(3, np.uint32), Seen("int64", (3,), "np")),
        (np.zeros(3, np.float16), Seen("float32", (3,), "np")),
        (np.zeros(3), Seen("float64", (3,), "np")),
        (np.zeros(3, bool), Seen("bool", (3,), "np")),
        (np.array([1, 2.5], object), Seen("float64", (2,), "np")),
        (np.zeros(0), Seen("", (0,), "np")),
        (np.zeros((2, 2)), Seen(None, (-1,))),
        (np.array(["a"]), Seen(None, (1,), "np")),
        (Breaks(), Seen(None, (-1,))),
    ],
)
def test_one_value(value, seen):
    assert seen_in_rows([{"a": value}], ["a"]) == {"a": seen}


def test_tensors_are_arrays():
    import torch

    rows = [{"a": torch.ones(3), "b": torch.ones(2, requires_grad=True)}]
    found = seen_in_rows(rows, ["a", "b"])
    assert found == {"a": Seen("float32", (3,), "pt"), "b": Seen(None, (-1,))}


def test_several_rows_are_widened_and_odd_ones_count_as_rows():
    class Fails(UserDict):
        def __getitem__(self, key):
            raise RuntimeError("no")

    rows = [{"a": [1]}, {"a": [0.5, 2]}, {}, "text", {"a": None}, Fails()]
    assert seen_in_rows(rows[:5], ["a"]) == {"a": Seen("float64", (1, 2, -1, -1, -1))}
    assert seen_in_rows(rows, ["a"])["a"].lengths == (1, 2, -1, -1, -1, -1)
    mixed = [{"a": [1]}, {"a": (1,)}]
    assert seen_in_rows(mixed, ["a"])["a"].container == "list"
    assert seen_in_rows([{"a": [1]}, {"a": [True]}], ["a"])["a"].kind is None


def test_columns_know_their_kind_from_all_shards():
    column = pa.array([[1], None, []], pa.list_(pa.int8()))
    assert seen_in_column(column, [column.type]) == Seen("int32", (1, -1, 0), "np")
    others = [column.type, pa.list_(pa.float32()), pa.list_(pa.null())]
    assert seen_in_column(column, others).kind == "float64"
    assert seen_in_column(column, [column.type, pa.string()]).kind is None
    assert seen_in_column(pa.nulls(2), [pa.null()]) == Seen("", (-1, -1))
    assert seen_in_column(pa.array(["a"]), [pa.string()]) == Seen(None, (-1,))


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "jsonl.zst", "in_memory"])
def test_the_first_rows_of_the_first_shard_that_has_any(kind, tmp_path):
    rows = [{"a": [1] * (n % 4), "b": n} for n in range(3 * LOOKED_AT)]
    found = written.dataset(kind, tmp_path, rows, shards=2).first_lists(["a", "b"])
    assert found["a"].lengths == tuple(n % 4 for n in range(LOOKED_AT))
    assert found["a"].kind in ("int32", "int64")
    assert found["b"].kind is None


def test_empty_shards_are_passed_by(tmp_path):
    written.parquet(tmp_path / "p", "a.parquet", pa.table({"a": pa.array([], pa.list_(pa.int8()))}))
    written.parquet(tmp_path / "p", "b.parquet", [{"a": [1.5]}])
    assert Dataset.from_path("d", tmp_path / "p").first_lists(["a"])["a"].lengths == (1,)
    memory = Dataset.from_dict("d", {0: InMemoryShard([]), 1: InMemoryShard([{"a": (1, 2)}])})
    assert memory.first_lists(["a"])["a"] == Seen("int64", (2,), "tuple")
    assert memory.held_in("a") == "tuple"
    nothing = Dataset.from_dict("d", {0: InMemoryShard([])})
    assert nothing.first_lists(["a"]) == {"a": Seen("", ())}


def test_parquet_says_nothing_of_a_column_that_a_shard_lacks(tmp_path):
    written.parquet(tmp_path, "a.parquet", [{"a": [1], "b": [1]}])
    written.parquet(tmp_path, "b.parquet", [{"a": [1]}])
    dataset = Dataset.from_path("d", tmp_path)
    assert list(dataset.first_lists(["a", "b", "c"])) == ["a"]
    assert dataset.first_lists(["b"]) == {}


def test_a_bad_line_is_a_row_without_fields(tmp_path):
    written.lines(tmp_path, "a.jsonl", [{"a": [1]}, b"{oops", {"a": [2, 3]}])
    assert Dataset.from_path("d", tmp_path).first_lists(["a"])["a"].lengths == (1, -1, 2)


def test_a_file_that_changed_is_not_looked_at(tmp_path):
    written.parquet(tmp_path, "a.parquet", [{"a": [1]}])
    dataset = Dataset.from_path("d", tmp_path)
    written.parquet(tmp_path, "a.parquet", [{"a": [1]}] * 99)
    with pytest.raises(ShardError, match="written to since"):
        dataset.first_lists(["a"])
