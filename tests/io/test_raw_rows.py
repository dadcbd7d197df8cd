"""Rows as JSON, to be written down: every value has a form, whatever it is."""

import datetime
import decimal
import json

import numpy as np
import pytest

from zephon.io.raw_rows import json_of


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"a": None, "b": True, "n": 1 << 70}, {"a": None, "b": True, "n": 1 << 70}),
        ({"text": "größe 木"}, {"text": "größe 木"}),
        ("a\ud800", "a\ud800"),
        ([1.5, float("nan"), float("-inf")], [1.5, "nan", "-inf"]),
        (b"\xff", {"base64": "/w=="}),
        ({1: (2, 3)}, {"1": [2, 3]}),
        (np.array([[1, 2]], np.int8), [[1, 2]]),
        (np.float32(0.5), 0.5),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (decimal.Decimal("1.10"), "1.10"),
    ],
)
def test_a_value_as_json(value, wanted):
    assert json.loads(json_of(value)) == wanted


def test_text_stays_readable_where_it_can():
    assert json_of("größe") == '"größe"'.encode()
    assert json_of("a\ud800") == b'"a\\ud800"'
