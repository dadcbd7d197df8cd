"""Patterns of names against an independent matcher, and by hand where users trip."""

import fnmatch
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon.errors import DatasetError
from zephon.io.selection import DIRECT, Selection, escaped


def of(glob=None, recursive=False):
    return Selection.of("d", recursive=recursive, glob=glob)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.parquet", ["a.parquet", "a b#%.parquet"], ["en/a.parquet", "a.jsonl", ".a.parquet"]),
        ("train-*", ["train-1.jsonl"], ["Train-1.jsonl", "x/train-1.jsonl", "train.jsonl"]),
        ("**/*.jsonl", ["a.jsonl", "x/a.jsonl", "x/y/a.jsonl"], [".x/a.jsonl", "x/_y/a.jsonl"]),
        ("en/**", ["en/a", "en/x/a"], ["a", "de/en/a", "en"]),
        ("**/en/**/a", ["en/a", "x/en/a", "x/en/y/z/a"], ["x/a", "xen/a"]),
        ("*/a", ["x/a"], ["a", "x/y/a", ".x/a"]),
        ("?.jsonl", ["é.jsonl", "\n.jsonl", "\\.jsonl"], ["ab.jsonl", ".jsonl"]),
        ("[ab-d][!0-9]", ["ax", "c-"], ["a1", "ex", "-x"]),
        ("a[]]b", ["a]b"], ["ab"]),
        ("a[[]1][*]", ["a[1]*"], ["a1x", "a[1]x"]),
        ("a[b", ["a[b"], ["ab"]),
        ("a[z-a]", [], ["aa", "az", "a-"]),
        ("{a,b}.x", ["{a,b}.x"], ["a.x"]),
        ("a.b+c(d)|$^", ["a.b+c(d)|$^"], ["aXb+c(d)|$^"]),
        ("_day=*/a", ["_day=1/a"], ["day=1/a", "_day/a"]),
        ("*/a", ["_day=1/a"], ["_day/a"]),
        ("_extra/*", ["_extra/a"], ["_extra/.a", "_extra/_a"]),
        (".cache/**/.*", [".cache/.a", ".cache/x/.b"], [".cache/a", ".cache/.x/.b"]),
    ],
)
def test_by_hand(glob, yes, no):
    selection = of(glob)
    assert [name for name in yes if not selection.matches(name)] == []
    assert [name for name in no if selection.matches(name)] == []


def test_recursive_looks_for_a_pattern_in_every_folder():
    assert of(recursive=True).matches("x/y/a.jsonl")
    assert of("a.jsonl", recursive=True).matches("x/y/a.jsonl")
    assert of("x/a.jsonl", recursive=True).matches("y/x/a.jsonl")
    assert of("**/a.jsonl", recursive=True) == of("**/a.jsonl")
    assert of("a.jsonl", recursive=True) == of("**/a.jsonl")
    assert not of("a.jsonl").matches("x/a.jsonl")


def test_the_same_patterns_are_equal_in_any_order():
    assert of(["b", "a", "b"]) == of(("a", "b"))
    assert of() == DIRECT == of("*")
    assert (of().asked, of("*").asked) == (False, True)


@pytest.mark.parametrize(
    ("glob", "why"),
    [
        ("", "glob must be a pattern of names, or a list of some, got ''"),
        ([], r"got \[\]; pass one such as"),
        (["a", 3], "got 3"),
        (b"a", "got b'a'"),
        ({"a": 1}, "got {'a': 1}"),
        ("/data/*.parquet", r"part by part, got '/data/\*.parquet', which has a part ''"),
        ("../a", "which has a part '..'; write it relative to the directory"),
        ("./a", "a part '.'"),
        ("en/", "a part ''"),
        ("a**/b", r"\*\* in glob must be a part of its own, got 'a\*\*/b'"),
    ],
)
def test_what_can_match_nothing_is_refused(glob, why):
    with pytest.raises(DatasetError, match=f"dataset 'd': .*{why}"):
        of(glob)


def test_recursive_is_true_or_false():
    with pytest.raises(DatasetError, match="recursive must be True or False, got 1"):
        of(recursive=1)


def test_words_of_a_command():
    assert of().words == ""
    assert of(recursive=True).words == "--recursive "
    assert of(["a b/*", "c"]).words == "--glob 'a b/*' --glob c "


SIGNS = st.text("ab.[]!-*?\\\n_", min_size=1, max_size=6)


@settings(max_examples=400)
@given(st.lists(SIGNS, min_size=1, max_size=3), SIGNS)
def test_one_part_is_matched_as_fnmatch_does(names, pattern):
    if "**" in pattern or pattern in (".", ".."):
        return
    selection = of(pattern)
    expected = re.compile(fnmatch.translate(pattern)).match
    for name in names:
        hidden = name[0] in "._" and name[0] != pattern[0]
        assert selection.matches(name) == (expected(name) is not None and not hidden)


@settings(max_examples=300)
@given(st.text(min_size=1).filter(lambda text: "\0" not in text and "/" not in text))
def test_an_escaped_name_matches_itself_alone(name):
    if name in (".", ".."):
        return
    assert of(escaped(name)).matches(name)
    assert not of(escaped(name)).matches(f"{name}x")


PARTS = st.sampled_from(["a", "b", "*", "**", "a*"])


@settings(max_examples=400)
@given(st.lists(PARTS, min_size=1, max_size=4), st.lists(st.sampled_from("ab"), min_size=1))
def test_parts_are_matched_as_the_obvious_recursion_does(pattern, name):
    def obvious(pattern, name):
        if not pattern or not name:
            return not pattern and not name
        if pattern[0] == "**":
            if len(pattern) == 1:
                return True
            return obvious(pattern[1:], name) or (len(name) > 1 and obvious(pattern, name[1:]))
        return fnmatch.fnmatchcase(name[0], pattern[0]) and obvious(pattern[1:], name[1:])

    assert of("/".join(pattern)).matches("/".join(name)) == obvious(pattern, name)
