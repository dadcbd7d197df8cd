"""What an operator writes down: JSON values, copied, or refused by name."""

import enum
import json

import numpy as np
import pytest

from zephon.errors import ExecutionError
from zephon.exec.custom_steps.step import json_values


class Mode(enum.IntEnum):
    """A number under a name."""

    FAST = 3


def test_values_are_copied_as_what_json_reads_back():
    given = {"wide": 1 << 127, "mode": Mode.FAST, "half": np.float64(0.5), "pair": (True, None)}
    copied = json_values("op", given)
    assert copied == json.loads(json.dumps(copied))
    assert [type(copied[name]) for name in ("wide", "mode", "half")] == [int, int, float]
    assert copied["pair"] == [True, None]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1 << 9000]}, "op: snapshot must return integers of at most 8,192 bits, got one of"),
        ({1: 2}, "op: snapshot must return JSON values .*, got a dict with the key 1; convert"),
        ([np.int64(3)], "op: snapshot must return JSON values .*, got a int64; convert it"),
    ],
)
def test_what_is_no_json_value_is_refused(value, message):
    with pytest.raises(ExecutionError, match=message):
        json_values("op", value)
