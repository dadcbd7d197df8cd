"""Content marks of rows in memory: the same for the same data, in every process."""

import datetime
import enum
import pathlib
import subprocess
import sys
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest

from zephon.io.in_memory import InMemoryShard
from zephon.io.row_marks import MARKED_ROWS, full_hash_of_rows, mark_of_rows


class Colour(enum.Enum):
    RED = 1


@dataclass
class Point:
    x: int
    y: object = None


class Slotted:
    __slots__ = ("__weakref__", "a")

    def __init__(self, a):
        self.a = a


class Broken(dict):
    def __getitem__(self, key):
        raise RuntimeError(f"no {key} at {id(self)}")


class Image:
    """As pictures are: its content is to be had as an array alone."""

    def __init__(self, values):
        self.made = object()
        self._of = lambda: values

    @property
    def __array_interface__(self):
        return self._of().__array_interface__


def mark(*rows):
    return mark_of_rows(InMemoryShard(rows))


def test_equal_rows_have_equal_marks():
    assert mark({"a": 1, "b": [1, 2]}) == mark(OrderedDict(b=(1, 2), a=1))
    assert mark({"s": {"x", "y", "z"}}) == mark({"s": frozenset(["z", "y", "x"])})
    assert mark(Point(1, "a")) == mark(Point(1, "a"))
    assert mark({"a": np.arange(6)}) == mark({"a": np.arange(12)[::2] // 2})
    assert mark(object()) == mark(object())  # nothing of it can be seen
    assert mark({"f": len}) == mark({"f": print})


DIFFERENT = [
    "a", b"a", "", 1, 1.0, True, None, 2**70, float("nan"), 1j, [], ["a"], [["a"]], [[], "a"],
    ["ab", "c"], ["a", "bc"], [1, 2], [1.0, 2.0], [1, 2.0], [2**63], [True], {}, {"a": 1},
    {"a": {}}, {"a": None}, {1: "a"}, set(), {"a"}, np.arange(4), np.arange(4).reshape(2, 2),
    np.arange(4, dtype=np.int32), np.array(["a", None], object), np.array(["a", "b"]),
    np.float32(1), np.int8(1), np.datetime64("2020-01-01"), Decimal("1.0"), Decimal("1.00"),
    datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), Colour.RED,
    pathlib.PurePosixPath("a"), uuid.UUID(int=1), Point(1), Point(2), Point(1, Point(1)),
    Slotted(1), Slotted(2), Image(np.zeros(3)), Image(np.ones(3)), Broken(a=1), "\udc80", Point,
]  # fmt: skip


def test_other_values_have_other_marks():
    found = [mark(value) for value in DIFFERENT]
    for place, one in enumerate(found):
        assert one not in found[:place], DIFFERENT[place]
    assert len({mark({"v": value}) for value in DIFFERENT}) == len(DIFFERENT)


def test_marks_are_the_same_in_another_process():
    script = (
        "from tests.io.test_row_marks import *\n"
        "print(*[mark(value) for value in DIFFERENT], mark({'b': {'x', 'y'}, 'a': 1}))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(p for p in sys.path if p) + ":."},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split()
        for seed in ("1", "2")
    ]
    here = [mark(value) for value in DIFFERENT]
    assert runs[0] == runs[1] == [str(each) for each in [*here, mark({"b": {"x", "y"}, "a": 1})]]


def test_objects_that_hold_each_other_come_to_an_end():
    one, two = Point(1), Point(2)
    one.y, two.y = [two, two, two], [one, one, one]
    row = {"self": one}
    row["row"] = row
    assert mark(row) == mark(row) != mark(one)


@pytest.mark.parametrize("count", [1, 2, MARKED_ROWS, MARKED_ROWS + 1])
def test_first_and_last_row_count_and_how_many_they_are(count):
    rows = [{"text": f"row {n}"} for n in range(count)]
    first = mark(*rows)
    assert mark(*rows) == first
    for place in {0, count - 1}:
        changed = [*rows]
        changed[place] = {"text": "other"}
        assert mark(*changed) != first
    assert mark(*rows, {"text": "more"}) != first


def test_every_row_of_a_small_shard_counts_and_some_of_a_large_one():
    for count, all_rows in ((MARKED_ROWS, True), (3 * MARKED_ROWS, False)):
        rows = [{"n": n} for n in range(count)]
        first, full = mark(*rows), full_hash_of_rows(InMemoryShard(rows))
        places, seen = range(1, count, count // 40), 0
        for place in places:
            changed = [*rows]
            changed[place] = {"n": -1}
            seen += mark(*changed) != first
            if place < count // 8:
                assert full_hash_of_rows(InMemoryShard(changed)) != full
        assert seen == len(places) if all_rows else 0 < seen < len(places)
