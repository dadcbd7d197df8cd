"""Whole shards of far places, kept on the local disk: a cache that loses nothing.

Read in this order: ``settings`` and ``cache`` (what callers ask: hold a shard), ``local_shard`` and
``holds`` (one that lies here, and who holds it), ``arrivals``, ``flights``, ``election``,
``fetching``, ``wanted_hashes``, ``disk`` and ``progress`` (how one comes: once a process, once a
machine, whole, and seen by who waits), ``room`` and ``counting`` (how much may lie here, and who
has to leave), ``users`` and ``owners`` (which processes use what, and whether they live),
``root``, ``names`` and ``told`` (the directory itself), ``prefetch`` (what is fetched before it is
asked for), ``contents`` (what lies here, for people).

Nothing here is right only because of a lock: files appear whole by a rename, and may be fetched
twice. It writes and removes below its own marked root alone, and there only what it made.
"""

from __future__ import annotations

from zephon.io.shard_cache.cache import CacheCounts, ShardCache
from zephon.io.shard_cache.holds import Hold
from zephon.io.shard_cache.prefetch import Prefetcher, Wanted
from zephon.io.shard_cache.settings import CacheSettings

__all__ = ["CacheCounts", "CacheSettings", "Hold", "Prefetcher", "ShardCache", "Wanted"]
