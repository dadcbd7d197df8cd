"""The shards of a far dataset as they lie on this machine, all of them or the first one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from zephon.io.formats.format import Format
from zephon.io.shard import Shard
from zephon.io.shards import Shards


class NearShards(Shards):
    """The shards of a dataset, each as ``locate`` makes it when somebody asks for it.

    Args:
        shards: of a far dataset.
        locate: is given a shard and its position; gives it with the path of a local file.
    """

    __slots__ = ("_locate",)

    def __init__(self, shards: Shards, locate: Callable[[Shard, int], Shard]) -> None:
        for name in Shards.__slots__:
            setattr(self, name, getattr(shards, name))
        self._locate = locate

    def _shard(self, place: int) -> Shard:
        return self._locate(super()._shard(place), place)


@contextmanager
def first_rows_here(known: Format, shards: Shards) -> Iterator[Shards]:
    """Have the first rows of the first shard that has any on this machine, for a while.

    Args:
        known: the format, which says how much of a file must be copied for that.
        shards: of a dataset, far or not.

    Raises:
        AccessError, ShardError, StorageError: their place does not give the file.
    """
    filled = shards.rows > 0
    if shards.far is None or known.reads_far_files or not filled.any():
        yield shards
        return
    first = int(filled.argmax())
    shard = shards[first]
    with shards.far.at(shard.name).copied(known.front_bytes(shard)) as path:
        # Nothing else is checked of a copy that lasts so long.
        here = replace(
            shard,
            path=path,
            mtime_ns=os.stat(path).st_mtime_ns,
            listed_by=None,
            mark=None,
            far=None,
        )
        yield NearShards(shards, lambda other, place: here if place == first else other)
