import pickle

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import DataError, DatasetError
from zephon.io import Dataset, InMemoryShard
from zephon.io.data_file import DataFile
from zephon.io.fields import TEXT, TOKENS, Column, Field
from zephon.io.formats.memory import GROUP_ROWS, Memory, ObjectRows


def in_memory(*shards):
    return Dataset.from_dict("d", {key: InMemoryShard(rows) for key, rows in enumerate(shards)})


def test_columns_of_the_users_rows(read, text, tokens):
    rows = [{"text": "a", "ids": [1]}, {"text": "", "ids": np.array([2, 3], np.uint16)}]
    taken = read(in_memory(rows, rows[:1]), text, tokens).take([2, 1, 0]).columns
    assert taken.column("text").to_pylist() == ["a", "", "a"]
    assert taken.column("ids").type == TOKENS
    assert taken.column("ids").to_pylist() == [[1], [2, 3], [1]]


def test_a_bad_row_raises_only_when_taken(read, text):
    rows = read(in_memory([{"text": "a"}, {"text": None}, {}, "b", {"text": "a\ud800"}]), text)
    assert rows.values([0]) == ["a"]
    for row, message in enumerate(
        [
            "",
            "must be text, got null",
            "no field 'text'; the row has no fields",
            "got text",
            "UTF-8",
        ]
    ):
        if row:
            with pytest.raises(DataError, match=rf"dataset 'd', shard '0', row {row}: .*{message}"):
                rows.take([0, row])


def test_whole_rows_are_copies_of_any_object(read):
    class Odd:
        pass

    mine = [{"a": [1], "odd": Odd()}, "plain"]
    rows = read(in_memory(mine), payload=True)
    payload = rows.take([1, 0]).payload
    payload.row(1)["a"].append(2)
    assert payload.row(0) == "plain"
    assert mine[0]["a"] == [1]
    assert payload.row(1)["odd"] is not mine[0]["odd"]


def test_some_rows_keep_no_other_alive_and_know_their_place(read):
    class Unpicklable:
        def __reduce__(self):
            raise TypeError("a row of mine cannot be pickled")

        def __deepcopy__(self, memo):
            raise TypeError("nor copied")

    mine = [{"n": 0}, {"n": 1}, {"odd": Unpicklable()}, {"n": 3}]
    payload = read(in_memory(mine), payload=True).take([3, 0, 3]).payload.copied()
    travelled = pickle.loads(pickle.dumps(payload))
    assert [travelled.row(i) for i in range(3)] == [{"n": 3}, {"n": 0}, {"n": 3}]
    odd = read(in_memory(mine), payload=True).take([3, 2]).payload.copied()
    with pytest.raises(DataError, match="dataset 'd', shard '0', row 2: a row must be one that"):
        odd.row(1)


def test_large_shards_are_read_in_groups(read, text):
    rows = [{"text": str(n)} for n in range(2 * GROUP_ROWS + 5)]
    dataset = in_memory(rows, [])
    assert dataset.shards[0].group_rows.tolist() == [GROUP_ROWS, GROUP_ROWS, 5]
    assert dataset.shards[1].group_rows.tolist() == []
    picks = [2 * GROUP_ROWS + 4, 0, GROUP_ROWS, GROUP_ROWS - 1]
    assert read(dataset, text).values(picks) == [str(pick) for pick in picks]


def test_fields_are_those_of_the_first_rows():
    dataset = in_memory([], [{"text": "a"}] * 63 + [{"ids": [1]}, {"late": 1}])
    assert dataset.fields() == (Field("text", "text"), Field("ids", "tokens"))
    assert not dataset.fields_complete
    assert in_memory([]).fields() == ()


def test_there_is_no_path():
    with pytest.raises(DatasetError, match=r"no path, got 'x'; use Dataset.from_dict"):
        Memory().count("d", DataFile("x", "x"))


class Text(str):
    """A text that is somebody's own."""


def plain_row():
    return {"a": 1, "b": "x", "c": [1, None, "y"], "d": None, "e": []}


@pytest.mark.parametrize(
    "row",
    [
        plain_row(),
        {**plain_row(), "f": {"g": [1]}},
        {"f": np.arange(3)},
        {"f": [[1]]},
        {"f": Text("x"), Text("g"): 1},
        {1: 2},
        {},
        "text",
    ],
)
def test_a_row_is_copied_as_deepcopy_copies_it(row):
    rows = ObjectRows([row])
    for found in (rows.row(0), rows.rows(np.array([0]))[0]):
        assert repr(found) == repr(row)
        if isinstance(row, dict):
            assert found is not row
            for name, value in row.items():
                if isinstance(value, list | dict | np.ndarray):
                    assert found[name] is not value


def test_fields_that_share_what_is_inside_go_on_sharing_it():
    inner = {"x": []}
    found = ObjectRows([{"a": inner, "b": [inner]}]).row(0)
    assert found["a"] is found["b"][0]
    assert found["a"] is not inner


def of_type(path, dtype):
    return Column(path, "any", values=dtype)


def test_types_of_all_rows_are_looked_for_when_somebody_asks():
    looks = []

    class Row(dict):
        def items(self):
            looks.append(1)
            return super().items()

    first = [{"n": 1, "t": "a"}] * 70
    dataset = in_memory(first, [Row(n=0.5, late=[1]), {"t": None}])
    looks.clear()
    fields = dataset.fields()
    assert not looks
    assert {field.name: field.type for field in fields} == {"n": pa.float64(), "t": TEXT}
    assert dataset.types.type_of("late") == pa.large_list(pa.int64())
    assert looks == [1]


def test_values_without_a_type_and_types_that_do_not_go_together():
    dataset = in_memory([{"n": 1, "b": 1}], [{"n": "x", "b": 2**63}])
    assert [field.type for field in dataset.fields()] == [None, None]
    conflict = "row 0 of shard '0' has int64, row 0 of shard '1' has large_string; "
    assert dataset.type_conflict("n").startswith(conflict)
    assert dataset.type_conflict("b").startswith(
        "row 0 of shard '1' has an integer beyond 64 bits; "
    )


def test_a_row_whose_own_code_raises_has_no_say_in_types():
    armed = []

    class Raising(dict):
        def __iter__(self):
            if armed:
                raise RuntimeError("no")
            return super().__iter__()

    dataset = in_memory([{"n": 1}, Raising(n="x"), {"n": None}])
    armed.append(True)
    assert dataset.types.type_of("n") == pa.int64()


def test_columns_of_any_type(read):
    rows = [
        {"n": 1, "m": {"x": np.array([1, 2])}, "t": "a"},
        {"n": np.float32(0.5), "m": None},
        {"n": None, "t": None, "m": {}},
    ]
    dataset = in_memory(rows)
    types = {field.name: field.type for field in dataset.fields()}
    assert types == {
        "n": pa.float64(),
        "m": pa.struct([("x", pa.large_list(pa.int64()))]),
        "t": TEXT,
    }
    columns = [
        *(of_type(name, dtype) for name, dtype in types.items()),
        of_type("m.x", pa.large_list(pa.int8())),
    ]
    group = Memory().reader("d", dataset.shards, tuple(columns), payload=False).read(0, 0)
    assert group.faults == ()
    assert [column.to_pylist() for column in group.columns.columns] == [
        [1, 0.5, None],
        [{"x": [1, 2]}, None, {"x": None}],
        ["a", None, None],
        [[1, 2], None, None],
    ]


def test_a_value_of_another_type_is_a_fault_of_its_row():
    dataset = in_memory([{"n": 1}, {"n": "1"}, "bare", {"n": True}])
    reader = Memory().reader("d", dataset.shards, (of_type("n", pa.int64()),), payload=False)
    group = reader.read(0, 0)
    assert group.columns.column(0).to_pylist() == [1, None, None, None]
    assert group.faults[0].rows.tolist() == [1, 2, 3]
    assert group.faults[0].details[0] == (
        ": field 'n' must be a value of type int64, got text '1'; mend or remove the row"
    )
