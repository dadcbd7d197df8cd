"""Where two JSON values differ, and how that is told."""

import pytest

from zephon.exec.change import LONGEST, Change, differences, part_of, shown

STEP = {"text": "filter(n > 3)", "sha256": "ab" * 32}


@pytest.mark.parametrize(
    ("saved", "current", "found"),
    [
        ({"a": 1}, {"a": 2}, [("a", "1", "2")]),
        ({"a": {"b": 1}}, {"a": {"b": "x"}}, [("a.b", "1", "'x'")]),
        ({"a": 1}, {}, [("a", "1", None)]),
        ({}, {"a": 1}, [("a", None, "1")]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [("a[1].b", "2", "3")]),
        ({"a": [1]}, {"a": [1, 2]}, [("a", "[1]", "[1, 2]")]),
        ({"a": None}, {"a": False}, [("a", "None", "False")]),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, [("a", "1", "2"), ("b", "1", "2")]),
        ({"a": STEP}, {"a": {**STEP, "text": "filter(n > 4)"}}, [
            ("a", "filter(n > 3)", "filter(n > 4)"),
        ]),
        ({"a": STEP}, {"a": {**STEP, "sha256": "cd" * 32}}, [
            ("a", "filter(n > 3)", "another that looks the same in short (digest abababababab, now "
             "cdcdcdcdcdcd)"),
        ]),
        ({"a": [STEP]}, {"a": []}, [("a", "[filter(n > 3)]", "[]")]),
    ],
)  # fmt: skip
def test_differences_are_found_place_by_place(saved, current, found):
    assert list(differences(saved, current)) == found
    assert list(differences(saved, saved)) == []
    assert list(differences(current, current)) == []


@pytest.mark.parametrize("value", ["x" * 10_000, ["y"] * 10_000, {str(i): i for i in range(999)}])
def test_no_value_takes_much_room(value):
    text = shown(value)
    assert len(text) <= LONGEST
    assert text.endswith(" characters)")
    assert len(part_of("data of 'prose'", f"shard {value!r}")) <= LONGEST


def test_a_digest_is_told_by_how_it_begins():
    assert shown("0123456789abcdef" * 4) == "0123456789ab"
    assert shown("0123456789abcdef") == "'0123456789abcdef'"
    assert shown(["ab" * 20, {"a": 1.5}]) == "[abababababab, {a: 1.5}]"


@pytest.mark.parametrize(
    ("was", "now", "text"),
    [
        ("1", "2", "seed: was 1, is 2"),
        (None, "2", "seed: was not there, is 2"),
        ("1", None, "seed: was 1, is gone"),
    ],
)
def test_a_change_is_one_sentence(was, now, text):
    assert str(Change("seed", was, now, None)) == text
