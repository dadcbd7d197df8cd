"""Fixtures of this room."""

from tests.io.shard_cache.places import source  # noqa: F401
