"""What the rows of JSON lines are, slowly, by Python's ``json``; and how Zephon reads the same."""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader

MARK = "\ufeff"
BAD = object()  # stands for a row that is an error
WAYS = {
    "text": {"columns": (Column("text", "text"),)},
    "ids": {"columns": (Column("ids", "tokens"),)},
    "n": {"columns": (), "frame": (Column("n", "any", values=pa.int64()),)},
    "x": {"columns": (), "frame": (Column("x", "any", values=pa.float64()),)},
    "m.t": {"columns": (Column("m.t", "text", missing="empty"),)},
    "whole": {"columns": (), "payload": True},
}
_BITS = {"n": (-(2**63), 2**63), "ids": (-(2**31), 2**31)}


@dataclass(frozen=True)
class Line:
    """A line that is a row: its bytes, its number counted from 1, and where it begins."""

    content: bytes
    number: int
    byte: int

    def value(self, way):
        """Give what the row has to be when it is read in one of ``WAYS``; ``BAD`` for an error."""
        try:
            if way == "whole":
                return json.loads(self.content.decode().lstrip(MARK))
            row = json.loads(self.content.decode("utf-8", "surrogateescape").lstrip(MARK))
        except (ValueError, RecursionError):
            return BAD
        return _VALUES[way](row) if isinstance(row, dict) else BAD


def lines_of(text):
    """Find the rows of a text: lines that are more than white space."""
    found, byte = [], 0
    if text.startswith(MARK.encode()):
        byte, text = 3, text[3:]
    for number, content in enumerate(text.split(b"\n"), 1):
        try:
            blank = not content.decode().lstrip(MARK).strip()
        except UnicodeDecodeError:
            blank = False
        if not blank:
            found.append(Line(content, number, byte))
        byte += len(content) + 1
    return found


def check(dataset, texts, *, ways=tuple(WAYS), chance=None, limit_bytes=1 << 30):
    """Compare all rows of a dataset, or some in another order, with those of its texts.

    Args:
        dataset: files in the order of ``texts``.
        texts: of each file, decompressed.
        ways: in which rows are read.
        chance: shuffles rows; None reads all of them in order.
        limit_bytes: of decoded blocks that memory holds.
    """
    lines = [lines_of(text) for text in texts]
    assert dataset.counts().tolist() == [len(each) for each in lines]
    places = [(shard, row) for shard, each in enumerate(lines) for row in range(len(each))]
    if chance is not None:
        places = chance.choices(places, k=len(places)) if places else []
    shards, rows = np.array(places, np.int64).reshape(-1, 2).T
    for way in ways:
        settings = {"payload": False, **WAYS[way]}
        reader = RowReader(dataset, **settings, cache=GroupCache(limit_bytes))
        taken = reader.take(shards, rows, late_faults=True)
        if way == "whole":
            found = [
                BAD if at in taken.faults else taken.payload.row(at) for at in range(len(places))
            ]
        else:
            column = (taken.frame if "frame" in settings else taken.columns).column(0)
            found = [BAD if at in taken.faults else v for at, v in enumerate(column.to_pylist())]
        for at, (shard, row) in enumerate(places):
            line = lines[shard][row]
            wanted = line.value(way)
            assert _same(found[at], wanted), (way, shard, row, line, found[at], wanted)
            if wanted is BAD:
                name = dataset.shards[shard].name
                where = f"dataset {dataset.name!r}, shard {name!r}, row {row} "
                where += f"(line {line.number}, byte {line.byte}): "
                said = taken.faults[at].why
                assert said.startswith(where), (said, where)
                assert "\n" not in said


def _same(one, two):
    """Equal in value and type, all the way down; NaN is itself."""
    if one is BAD or two is BAD:
        return one is two
    if type(one) is not type(two):
        return False
    if isinstance(one, list):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, dict):
        return list(one) == list(two) and all(map(_same, one.values(), two.values()))
    return repr(one) == repr(two)


def _text(value):
    if not isinstance(value, str):
        return BAD
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return BAD
    return value


def _integer(value, way):
    low, high = _BITS[way]
    good = isinstance(value, int) and not isinstance(value, bool) and low <= value < high
    return value if good else BAD


def _ids(row):
    value = row.get("ids")
    if not isinstance(value, list):
        return BAD
    found = [_integer(item, "ids") for item in value]
    return BAD if BAD in found else found


def _float(value):
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return BAD
    try:
        return float(value) if isinstance(value, float) or int(float(value)) == value else BAD
    except OverflowError:
        return BAD


def _nested(row):
    if "m.t" in row:
        return _text(row["m.t"])
    inner = row.get("m", {})
    return _text(inner.get("t", "")) if isinstance(inner, dict) else BAD


_VALUES = {
    "text": lambda row: _text(row.get("text")),
    "ids": _ids,
    "n": lambda row: None if row.get("n") is None else _integer(row["n"], "n"),
    "x": lambda row: _float(row.get("x")),
    "m.t": _nested,
}
