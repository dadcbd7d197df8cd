"""What lies in the cache and how much it is, and what dead processes left there, which goes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from zephon.io.shard_cache.names import CLAIM, PART, SHARD, TOLD
from zephon.io.shard_cache.owners import UNHEARD_SECONDS, lives
from zephon.io.shard_cache.root import dataset_folders


class Kept(NamedTuple):
    """A shard that lies in the cache; the least recently held sorts first."""

    used_ns: int
    bytes: int
    key: bytes
    path: str


class Counted(NamedTuple):
    """What lies in the cache: whole shards, and the bytes of those under way."""

    shards: list[Kept]
    coming: int

    @property
    def bytes(self) -> int:
        """Of all of it."""
        return self.coming + sum(shard.bytes for shard in self.shards)


def leaving(shards: Iterable[Kept], held: Collection[bytes], excess: int) -> list[Kept]:
    """Choose which shards leave: those held longest ago, and no more than needed.

    Args:
        shards: in any order.
        held: keys of shards that stay.
        excess: bytes that have to go.
    """
    chosen: list[Kept] = []
    for shard in sorted(shards):
        if excess <= 0:
            break
        if shard.key not in held:
            chosen.append(shard)
            excess -= shard.bytes
    return chosen


def count(root: Path) -> Counted:
    """See what lies in the cache, and remove what dead processes began and did not finish."""
    shards: list[Kept] = []
    coming = 0
    with contextlib.suppress(FileNotFoundError):  # cleared right now
        for folder in dataset_folders(root):
            with contextlib.suppress(FileNotFoundError):
                coming += _count_folder(folder, shards)
    return Counted(shards, coming)


def remove_shard(shard: Kept) -> int:
    """Remove a shard and what is told of it; return its bytes, 0 if it stays or was gone."""
    folder, name = os.path.split(shard.path)
    freed = 0
    with contextlib.suppress(OSError):
        os.unlink(shard.path)
        freed = shard.bytes
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, f"{name[: 2 * len(shard.key)]}.told"))
    return freed


def _count_folder(folder: Path, shards: list[Kept]) -> int:
    found: list[tuple[str, os.DirEntry[str]]] = []
    used: dict[str, int] = {}
    coming = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if shard := SHARD.fullmatch(entry.name):
                    found.append((shard[1], entry))
                elif told := TOLD.fullmatch(entry.name):
                    used[told[1]] = entry.stat(follow_symlinks=False).st_mtime_ns
                elif part := PART.fullmatch(entry.name):
                    if not _abandoned(entry, part[3]):
                        coming += int(part[2])
                elif CLAIM.fullmatch(entry.name):
                    _remove_if_old(entry.path, entry.stat(follow_symlinks=False).st_mtime)
    keys = set()
    for text, entry in found:
        keys.add(text)
        with contextlib.suppress(FileNotFoundError):
            size = entry.stat(follow_symlinks=False).st_size
            shards.append(Kept(used.get(text, 0), size, bytes.fromhex(text), entry.path))
    for text in used.keys() - keys:  # written a moment before its shard, or left alone
        _remove_if_old(str(folder / f"{text}.told"), used[text] / 1e9)
    return coming


def _abandoned(entry: os.DirEntry[str], owner: str) -> bool:
    """Tell whether nobody writes a part any more; then it goes."""
    if lives(owner, entry.stat(follow_symlinks=False).st_mtime):
        return False
    with contextlib.suppress(OSError):
        os.unlink(entry.path)
    return True


def _remove_if_old(path: str, touched_s: float) -> None:
    if time.time() - touched_s > UNHEARD_SECONDS:
        with contextlib.suppress(OSError):
            os.unlink(path)
