"""Where rows lie: datasets, formats, row groups. Reads; decides nothing.

Read ``dataset`` (what there is) and ``reader`` (rows by shard and number) first, then ``formats``.
"""

from __future__ import annotations

from zephon.io.dataset import Dataset
from zephon.io.in_memory import InMemoryShard

__all__ = ["Dataset", "InMemoryShard"]
