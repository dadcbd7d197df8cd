import io
import json

import pytest

from zephon.io.formats.line_blocks import index_lines
from zephon.io.formats.line_decoder import load_rows
from zephon.io.formats.line_types import found_types, joined_types, stored_types, summed
from zephon.io.seen_types import SeenTypes


def types_of_text(text):
    seen = SeenTypes(objects=False)
    index_lines(
        io.BytesIO(text),
        block_bytes=40,
        look=lambda part, lines, row: seen.look(load_rows(part, lines), row),
    )
    return summed(seen)


def test_types_over_blocks_with_the_row_that_has_them():
    rows = [{"n": None}, {"n": 1, "m": []}, "bare", {"n": 0.5}, {"m": ["x"]}, {"o": {"a": 1}}]
    text = "\n\n".join(json.dumps(row) for row in rows).encode()
    assert types_of_text(text) == {
        "n": [("double", 3)],
        "m": [("large_list<item: large_string>", 4)],
        "o": [("an object", 5)],
    }


def test_types_that_do_not_go_together_stay_apart():
    rows = [{"n": 1}, {"n": "2024-01-01"}, {"n": 2**63}, {"n": True}, {"n": 0.5}]
    assert types_of_text(b"\n".join(json.dumps(row).encode() for row in rows))["n"] == [
        ("double", 4), ("large_string", 1), ("an integer beyond 64 bits", 2), ("bool", 3),
    ]  # fmt: skip


def test_lines_that_only_python_reads_and_lines_that_nobody_does():
    text = b'{"n": NaN}\n{"n": 1\n{"n": "a", "n": 2}\n[1]\n'
    assert types_of_text(text) == {"n": [("double", 0)]}


def test_too_many_fields_are_no_types():
    seen = SeenTypes(objects=False, most=1)
    seen.look([{"a": 1, "b": 2}], 0)
    assert summed(seen) is None


def test_types_over_shards():
    types = joined_types(
        [
            ("a", {"n": [("null", 0)], "x": [("int64", 3)]}),
            ("b", {"n": [("int64", 2)], "o": [("a list that holds an object", 1)]}),
            ("c", {"x": [("large_string", 5), ("int64", 9)]}),
        ]
    )
    assert stored_types(json.loads(json.dumps(types))) == types
    found = found_types(types)
    assert str(found["n"].type) == "int64"
    conflict = "row 3 of shard 'a' has int64, row 5 of shard 'c' has large_string; "
    assert found["x"].conflict.startswith(conflict)
    assert found["o"].conflict.startswith("row 1 of shard 'b' has a list that holds an object; ")


def test_one_shard_where_nobody_looked():
    assert joined_types([("a", {"n": [("int64", 0)]}), ("b", None)]) is None
    assert found_types(None) == {}


@pytest.mark.parametrize("saved", [[], {"n": [["int64", "a"]]}, {"n": [["int64", "a", "0"]]}])
def test_types_that_were_not_stored_so(saved):
    with pytest.raises(ValueError, match="types are not as they are stored"):
        stored_types(saved)
