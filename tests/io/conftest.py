"""Readers and row addresses for the tests of this room."""

from __future__ import annotations

import numpy as np
import pytest

from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader


class Rows:
    """Reads rows of a dataset as Python values."""

    def __init__(self, dataset, *columns, payload=False, limit_bytes=1 << 30):
        self.dataset = dataset
        self.cache = GroupCache(limit_bytes)
        self.reader = RowReader(dataset, columns, payload=payload, cache=self.cache)
        counts = dataset.counts()
        self.addresses = np.array(
            [(shard, row) for shard, count in enumerate(counts) for row in range(count)], np.int64
        ).reshape(-1, 2)

    def take(self, picks=None):
        picks = np.arange(len(self.addresses)) if picks is None else np.asarray(picks, np.int64)
        shards, rows = self.addresses[picks].T
        return self.reader.take(shards, rows)

    def values(self, picks=None, column=0):
        return self.take(picks).columns.column(column).to_pylist()

    def rows(self, picks=None):
        payload = self.take(picks).payload
        return [payload.row(i) for i in range(len(payload))]


TEXT = Column("text", "text")
TOKENS = Column("ids", "tokens")


@pytest.fixture
def read():
    return Rows


@pytest.fixture
def text():
    return TEXT


@pytest.fixture
def tokens():
    return TOKENS


@pytest.fixture
def lines(tmp_path):
    """Write bytes as the files of a directory; give the directory."""

    def write(**files):
        for name, content in files.items():
            (tmp_path / name.replace("__", ".")).write_bytes(content)
        return tmp_path

    return write
