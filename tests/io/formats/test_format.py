"""Bytes of row groups, where a format knows them."""

import os

import pytest

from tests import written
from zephon.io.formats import FORMATS

ROWS = [{"text": "x" * (10 * i)} for i in range(10)]


def group_bytes(data, number):
    return FORMATS[data.kind].group_bytes(data.shards[number])


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "jsonl.gz", "jsonl.zst"])
def test_groups_add_up_to_their_shard(kind, tmp_path):
    data = written.dataset(kind, tmp_path, ROWS)
    for number, shard in enumerate(data.shards):
        found = group_bytes(data, number)
        assert len(found) == len(shard.group_rows)
        assert found.sum() == shard.decoded_bytes


def test_rows_in_memory_are_not_weighed():
    assert group_bytes(written.dataset("in_memory", None, ROWS), 0) is None


def test_a_footer_that_cannot_be_read_is_somebody_elses_to_say(tmp_path):
    data = written.dataset("parquet", tmp_path, ROWS)
    os.truncate(tmp_path / "000.parquet", 10)
    assert group_bytes(data, 0) is None
    (tmp_path / "000.parquet").unlink()
    assert group_bytes(data, 0) is None
