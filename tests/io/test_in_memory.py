import pickle

import numpy as np
import pytest

from zephon.errors import DatasetError
from zephon.io import InMemoryShard
from zephon.io.in_memory import estimated_bytes


def test_a_shard_hands_out_the_users_own_rows():
    row = {"text": "a"}
    shard = InMemoryShard([row, {"text": "b"}])
    assert shard[0] is row
    assert shard.getsamples([1, 0, 0]) == [{"text": "b"}, row, row]
    assert len(shard) == 2
    assert shard.close() is None


def test_appending_to_the_list_later_does_not_change_the_count():
    rows = [{"text": "a"}]
    shard = InMemoryShard(rows)
    rows.append({"text": "b"})
    assert len(shard) == 1


def test_raw_bytes_are_estimated_from_rows_spread_over_the_shard():
    shard = InMemoryShard([{"t": "x" * 99} for _ in range(1000)])
    assert shard.raw_bytes == 100_000
    assert InMemoryShard([]).raw_bytes == 0


def test_an_empty_shard_and_pickling():
    shard = pickle.loads(pickle.dumps(InMemoryShard(iter([{"a": 1}]))))
    assert shard[0] == {"a": 1}
    with pytest.raises(IndexError):
        InMemoryShard([])[0]


@pytest.mark.parametrize(
    ("rows", "kind"),
    [(None, "NoneType"), (5, "int"), ("abc", "str"), (b"abc", "bytes"), ({"text": ["a"]}, "dict")],
)
def test_what_is_no_rows_is_refused(rows, kind):
    with pytest.raises(DatasetError, match=rf"rows must be a list of rows, got {kind}; put rows"):
        InMemoryShard(rows)


def test_rows_that_fail_while_they_are_made_say_so_themselves():
    with pytest.raises(TypeError, match="unsupported operand"):
        InMemoryShard({"n": n + 1} for n in (1, None))


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("é", 2),
        ("\ud800", 3),
        (b"abc", 3),
        (np.zeros(3, np.int32), 12),
        ([1, 2, 3], 24),
        (["ab", None], 10),
        ({"a": [{"b": "c"}]}, 3),
        (7, 8),
    ],
)
def test_bytes_of_values(value, size):
    assert estimated_bytes(value) == size
