"""Fields as clean text."""

import numpy as np
import pytest

from zephon.errors import DataError, DataTypeError
from zephon.exec.bad_row import BadRow
from zephon.exec.operators.decode_text import decoded
from zephon.planner.logical.functions import DecodeText


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"gr\xc3\xb6\xc3\x9fe", "größe"),
        (bytearray(b"a"), "a"),
        (memoryview(b"a"), "a"),
        (np.bytes_(b"a"), "a"),
        ("a\r\nb\rc\n\r", "a\nb\nc\n\n"),
        (b"a\r\nb", "a\nb"),
        (None, "None"),
        (3, "3"),
        ([1], "[1]"),
    ],
)
def test_every_value_becomes_text(value, text):
    row = {"text": value, "other": b"x"}
    assert decoded(row, DecodeText()) == {"text": text, "other": b"x"}
    assert row["text"] is value


def test_options_and_absent_fields():
    node = DecodeText(
        text_fields=("a", "b.c", "gone"),
        encoding="latin-1",
        normalize_newlines=False,
        lowercase=True,
    )
    made = decoded({"a": b"\xd6\r\n", "b": {"c": b"X"}}, node)
    assert made == {"a": "ö\r\n", "b": {"c": b"X"}}
    assert decoded({"text": b"a\xff"}, DecodeText(errors="replace")) == {"text": "a\ufffd"}


@pytest.mark.parametrize(
    ("row", "node", "kind", "problem"),
    [
        ("text", DecodeText(), DataTypeError, "a row must be a dict, got a str"),
        (
            {"text": b"ab\xff"},
            DecodeText(),
            DataError,
            "field 'text' must be text in 'utf-8', got bytes that are not, at byte 2",
        ),
        ({"text": b"a"}, DecodeText(encoding="utf-9"), DataError, "no encoding 'utf-9' is known"),
    ],
)
def test_what_is_no_text_is_a_bad_row(row, node, kind, problem):
    with pytest.raises(BadRow) as told:
        decoded(row, node)
    assert told.value.problem.startswith(problem)
    assert told.value.kind is kind
    assert told.value.__cause__ is None


def test_what_an_object_raises_is_kept():
    class Odd:
        def __str__(self):
            raise ZeroDivisionError("no")

    with pytest.raises(BadRow, match="raised ZeroDivisionError: no") as told:
        decoded({"text": Odd()}, DecodeText())
    assert isinstance(told.value.__cause__, ZeroDivisionError)
