import pickle
from pathlib import Path

import numpy as np
import pytest

from zephon.errors import DataError, DatasetError
from zephon.io import Dataset, InMemoryShard
from zephon.io.fields import TOKENS, Field
from zephon.io.formats.memory import GROUP_ROWS, Memory


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
        Memory().count("d", Path("x"))
