"""Patterns name files as the hub's own tools read them."""

import pytest

from zephon.io.storage.globs import folder_of, has_signs, matches

NAMES = [
    "a.jsonl", "data/a.jsonl", "data/b.parquet", "data/en/a.jsonl", "data/en/deep/c-1.jsonl",
    ".hidden/a.jsonl", "data/.a.jsonl", "__pycache__/a.jsonl", "data/[x].jsonl", "data/é b.jsonl",
]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("a.jsonl", ["a.jsonl"]),
        ("*.jsonl", ["a.jsonl"]),
        ("data/*.jsonl", ["data/a.jsonl", "data/[x].jsonl", "data/é b.jsonl"]),
        ("data/?.jsonl", ["data/a.jsonl"]),
        ("data/[ab].*", ["data/a.jsonl", "data/b.parquet"]),
        ("data/[!a].*", ["data/b.parquet"]),
        ("data/[^a].*", ["data/b.parquet"]),
        ("data/*/*", ["data/en/a.jsonl"]),
        ("data/**/a.jsonl", ["data/a.jsonl", "data/en/a.jsonl"]),
        ("**/c-[0-9].jsonl", ["data/en/deep/c-1.jsonl"]),
        ("data/en/**", ["data/en/a.jsonl", "data/en/deep/c-1.jsonl"]),
        ("**/é*", ["data/é b.jsonl"]),
        (".hidden/*", [".hidden/a.jsonl"]),
        ("data/.*", ["data/.a.jsonl"]),
        ("nothing", []),
    ],
)
def test_a_pattern_names_these(pattern, wanted):
    assert [name for name in NAMES if matches(pattern, name)] == wanted


def test_the_folder_to_list_holds_all_that_a_pattern_names():
    for pattern in ("data/*/*", "data/en/*.jsonl", "**", "a.jsonl", "data/e[n]/a.jsonl"):
        above = folder_of(pattern)
        assert not has_signs(above)
        inside = [name for name in NAMES if matches(pattern, name)]
        assert all(name.startswith(above) for name in inside)
    assert folder_of("sample/10BT/*") == "sample/10BT"
