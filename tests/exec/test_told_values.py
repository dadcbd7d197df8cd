"""What functions close over is told as far as it is short: no secret, no text, no long list."""

import json

import pytest

from tests.exec.changed_recipes import pipe
from zephon.exec.change import differences
from zephon.exec.function_identity import identity_of, identity_of_value

SECRET = "hf_abcdefghijklmnopqrstuvwxyz"


def closing_over(value):
    def keep(row):
        return row if value else None

    return keep


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("de", "de"),
        ("x" * 16, "x" * 16),
        (b"ab", "b'ab'"),
        (0.1 + 0.2, "0.30000000000000004"),
        ([1, "a", (2.5,)], [1, "a", ["2.5"]]),
        ({"a": 1}, [["'a'", 1]]),
    ],
)
def test_what_is_short_is_told(value, told):
    assert identity_of_value(value) == told


@pytest.mark.parametrize(
    ("value", "other", "text"),
    [
        (SECRET, SECRET.upper(), "29 characters"),
        (b"x" * 40, b"y" * 40, "40 bytes"),
        ("\ud800" * 20, "\ud801" * 20, "20 characters"),
        (list(range(1000)), [*range(999), 0], "list of 1,000"),
        ({i: i for i in range(500)}, dict.fromkeys(range(500), 1), "dict of 500"),
        (set(range(500)), set(range(1, 501)), "set of 500"),
        (("ab",) * 500, ("ba",) * 500, "tuple of 500"),
    ],
)
def test_what_is_long_is_known_by_its_digest(value, other, text):
    found, changed = identity_of_value(value), identity_of_value(other)
    assert found["text"] == changed["text"] == text
    assert found.keys() == {"text", "sha256"}
    assert found != changed
    assert found == identity_of_value(value)
    [(_, was, now)] = differences(found, changed)
    assert was == text
    assert now.startswith("another that looks the same in short (digest ")


def test_no_secret_stands_in_a_state():
    for value in (SECRET, [SECRET], {SECRET: 1}, {1: SECRET}, {SECRET}, (b"x", SECRET.encode())):
        function = closing_over(value)
        state = pipe(steps=lambda p, f=function: p.map_transform(f)).checkpoint()
        assert SECRET not in json.dumps(state)
        assert "closure" in json.dumps(state)


def test_keys_that_are_digested_stay_apart():
    one, other = ({f"{SECRET}{end}": 1} for end in "ab")
    assert identity_of_value(one) != identity_of_value(other)


def test_a_state_does_not_grow_with_what_a_function_holds():
    few, many = (len(json.dumps(identity_of(closing_over(set(range(n)))))) for n in (10**3, 10**5))
    assert abs(few - many) < 10
