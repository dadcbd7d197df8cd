"""Where rows lie: datasets, formats, row groups. Reads; decides nothing.

Read ``dataset`` (what there is), ``opening`` (how that is found) and ``reader`` (rows by shard and
number) first, then ``formats``; ``group_cache`` and ``spill`` keep what was decoded. ``storage``
has places besides the local disk, and ``shard_cache`` keeps whole files of theirs.
"""

from __future__ import annotations

from zephon.io.dataset import Dataset
from zephon.io.in_memory import InMemoryShard
from zephon.io.options import (
    ArrowOptions,
    CacheOptions,
    LanceOptions,
    ParquetOptions,
    ParquetRGCacheOptions,
    StoreOptions,
    VortexOptions,
)

__all__ = [
    "ArrowOptions",
    "CacheOptions",
    "Dataset",
    "InMemoryShard",
    "LanceOptions",
    "ParquetOptions",
    "ParquetRGCacheOptions",
    "StoreOptions",
    "VortexOptions",
]
