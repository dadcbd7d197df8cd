"""Where each position of a component's passes lies: which shard, and which place in it.

Per pass one table of the shards' order and their cumulative rows, 16 bytes a shard, kept for the
passes in use; within a shard nothing is held. No loop over shards anywhere: a dataset of 10^6
shards costs a tenth of a second when a pass begins, one of a few shards some microseconds.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.work.deal import Runs
from zephon.work.order import permute

KEPT_WINDOWS = 4
"""Tables kept for a component: its lanes are in the same pass, or in two neighbouring ones."""

MERGED_SHARDS = 4096
"""Passes over at most so many shards are laid out in one table when one call spans several."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Neighbouring places of one shard; all shape [pieces], in the order taken."""

    pass_index: NDArray[np.int64]
    shard: NDArray[np.int64]  # position in the dataset
    start: NDArray[np.int64]  # first place in the shard's order
    length: NDArray[np.int64]
    size: NDArray[np.int64]  # rows of the shard
    key: NDArray[np.uint64]  # decides the shard's order in this pass

    @staticmethod
    def concat(pieces: list[Pieces]) -> Pieces:
        """Put pieces one after another."""
        if len(pieces) == 1:
            return pieces[0]
        return Pieces(
            pass_index=np.concatenate([each.pass_index for each in pieces]),
            shard=np.concatenate([each.shard for each in pieces]),
            start=np.concatenate([each.start for each in pieces]),
            length=np.concatenate([each.length for each in pieces]),
            size=np.concatenate([each.size for each in pieces]),
            key=np.concatenate([each.key for each in pieces]),
        )


@dataclass(frozen=True, slots=True)
class _Window:
    """Shard after shard of one or more whole passes that follow each other."""

    listed: NDArray[np.int64]  # shape [shards of all the passes]: which of the listed shards
    starts: NDArray[np.int64]  # shape [shards + 1]: rows before each, from the window's start
    row_keys: NDArray[np.uint64]  # shape [passes]: from them the keys of each pass's shards


class Passes:
    """The order of one component's rows, pass after pass; any number of threads may ask.

    Shards without rows are left out before anything is chosen, so that they change nothing.

    Args:
        seed: of the recipe.
        name: of the component; equally shaped datasets move differently because of it.
        counts: rows of each shard, shape [shards], int64; only read.
        shuffle_shards: permute the shards of each pass.
        shuffle_within_shard: give each shard of each pass a key for the order of its rows.
        fresh: each pass is shuffled anew; otherwise all are shuffled like pass 0.
    """

    __slots__ = ("_fresh", "_kept", "_position", "_row_key", "_shard_key", "_size", "rows")

    def __init__(
        self,
        *,
        seed: int,
        name: str,
        counts: NDArray[np.int64],
        shuffle_shards: bool,
        shuffle_within_shard: bool,
        fresh: bool,
    ) -> None:
        self._position = np.flatnonzero(counts)
        self._size = counts[self._position].astype(np.int64)
        self._shard_key = seeds.key(seed, name, "shards") if shuffle_shards else None
        self._row_key = seeds.key(seed, name, "rows") if shuffle_within_shard else None
        self._fresh = fresh
        self._kept = _Kept(KEPT_WINDOWS)
        self.rows = int(self._size.sum())

    def pieces(self, runs: Runs) -> Pieces:
        """Cut runs where a shard ends, and say which shard each piece lies in."""
        first, last = int(runs.pass_index[0]), int(runs.pass_index[-1])
        if first == last:
            return self._cut(runs, first, self._kept_window(first))
        if len(self._size) <= MERGED_SHARDS:
            return self._cut(runs, first, self._window(first, last))
        edges = np.searchsorted(runs.pass_index, np.arange(first, last + 2)).tolist()
        return Pieces.concat(
            [
                self._cut(
                    runs.slice(edges[i], edges[i + 1]), first + i, self._kept_window(first + i)
                )
                for i in range(last - first + 1)
            ]
        )

    def _cut(self, runs: Runs, first_pass: int, window: _Window) -> Pieces:
        pass_index = runs.pass_index
        begin = (pass_index - first_pass) * self.rows + runs.start
        end = begin + runs.length
        shard = np.searchsorted(window.starts, begin, side="right") - 1
        parts = np.searchsorted(window.starts, end, side="left") - shard
        total = int(parts.sum())
        if total > len(parts):
            shard = np.repeat(shard - (np.cumsum(parts) - parts), parts) + np.arange(total)
            pass_index = np.repeat(pass_index, parts)
            begin = np.maximum(np.repeat(begin, parts), window.starts[shard])
            end = np.minimum(np.repeat(end, parts), window.starts[shard + 1])
        listed = window.listed[shard]
        if self._row_key is None:
            key = np.zeros(len(listed), dtype=np.uint64)
        else:
            key = seeds.subkeys(window.row_keys[pass_index - first_pass], listed)
        return Pieces(
            pass_index=pass_index,
            shard=self._position[listed],
            start=begin - window.starts[shard],
            length=end - begin,
            size=self._size[listed],
            key=key,
        )

    def _kept_window(self, pass_index: int) -> _Window:
        which = pass_index if self._fresh else 0
        return self._kept.get(which, lambda: self._window(which, which))

    def _window(self, first: int, last: int) -> _Window:
        """Lay out the shards of passes ``first`` to ``last``."""
        shards, passes = len(self._size), last - first + 1
        pass_index = np.arange(first, last + 1) if self._fresh else np.zeros(passes, np.int64)
        listed = np.tile(np.arange(shards, dtype=np.int64), passes)
        if self._shard_key is not None:
            each_pass = np.full(passes, shards, dtype=np.int64)
            keys = seeds.subkeys(self._shard_key, pass_index)
            listed = permute(listed, each_pass, each_pass, keys)
        starts = np.zeros(len(listed) + 1, dtype=np.int64)
        np.cumsum(self._size[listed], out=starts[1:])
        row_keys = np.zeros(passes, dtype=np.uint64)
        if self._row_key is not None:
            row_keys = seeds.subkeys(self._row_key, pass_index)
        return _Window(listed, starts, row_keys)


class _Kept:
    """The tables used last, shared by threads; a copy or an unpickled one starts empty."""

    __slots__ = ("_limit", "_lock", "_windows")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._windows: OrderedDict[int, _Window] = OrderedDict()

    def get(self, pass_index: int, make: Callable[[], _Window]) -> _Window:
        with self._lock:  # held while a table is made: others most likely wait for the same one
            window = self._windows.get(pass_index)
            if window is None:
                window = self._windows[pass_index] = make()
                if len(self._windows) > self._limit:
                    self._windows.popitem(last=False)
            else:
                self._windows.move_to_end(pass_index)
            return window

    def __reduce__(self) -> tuple[type[_Kept], tuple[int]]:
        return _Kept, (self._limit,)
