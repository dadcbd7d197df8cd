"""A declared field that nobody has seen is warned of on the line that declares it."""

import json
import warnings

import pytest

from zephon import Dataset, InMemoryShard
from zephon.build_index import build_index

ROWS = [{"score": 1, "meta": {"k": 2}}] * 64 + [{"late": 3}]


def opened(path, rows=ROWS, *, index=False, **schema):
    (path / "0.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    if index:
        build_index("jsonl", path, progress=False)
    return Dataset.from_path("a", path, schema=schema)


def test_a_misspelt_name_is_said_with_the_one_that_is_meant(tmp_path):
    told = r"dataset 'a': schema .* none of the first 64 rows .* has 'scor'; did you mean 'score'\?"
    with pytest.warns(RuntimeWarning, match=told) as caught:
        opened(tmp_path, scor="int64")
    assert [each.filename for each in caught] == [__file__]
    with pytest.warns(RuntimeWarning, match=told) as caught:
        Dataset.from_dict("a", {0: InMemoryShard(ROWS)}, schema={"scor": "int64"})
    assert [each.filename for each in caught] == [__file__]


def test_what_was_seen_is_not_warned_of(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened(tmp_path, score="int64", **{"meta.k": "int64"})
        opened(tmp_path, rows=[], scor="int64")
        opened(tmp_path, index=True, late="int64")


def test_an_index_knows_all_rows(tmp_path):
    with pytest.warns(RuntimeWarning, match="has 'latte'; did you mean 'late'"):
        opened(tmp_path, index=True, latte="int64")
