"""Where each position of a component's passes lies: which shard, and which row of it.

A pass is its shards in an order, the rows of each in an order, and the sequence that comes of it
cut into blocks, each in an order. Per pass one table of the shards' order and their cumulative
rows, 12 bytes a shard, kept for the passes in use; passes that keep the shards as they are share
one. Within shards and blocks nothing is held. No loop over shards anywhere: a dataset of 10^6
shards costs 0.05 s when a pass that moves them begins, one of a few shards some microseconds.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.work.order.blocks import Blocks
from zephon.work.order.permutation import permute
from zephon.work.order.runs import Runs, count_up, first_of_each

KEPT_WINDOWS = 4
"""Tables kept for a component: its lanes are in the same pass, or in two neighbouring ones."""

MERGED_SHARDS = 4096
"""Passes over at most so many shards are laid out in one table when one call spans several."""

MERGED_TABLE = 1 << 16
"""Shards of all passes in one such table, at most; more are laid out one table after another."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows lie; all shape [rows], in the order asked for."""

    pass_index: NDArray[np.int32]
    shard: NDArray[np.int64]  # position in the dataset
    row: NDArray[np.int64]  # of the shard

    @staticmethod
    def concat(places: list[Places]) -> Places:
        """Put places one after another. New memory, but for a single table."""
        if len(places) == 1:
            return places[0]
        columns = [[getattr(each, field.name) for each in places] for field in fields(Places)]
        return Places(*(np.concatenate(column) for column in columns))

    @staticmethod
    def empty() -> Places:
        """Make a table without rows."""
        wide = np.zeros(0, dtype=np.int64)
        return Places(wide.astype(np.int32), wide, wide)


@dataclass(frozen=True, slots=True)
class _Window:
    """Shard after shard of one or more whole passes that follow each other."""

    listed: NDArray[np.integer]  # shape [shards of all the passes]: which of the listed shards
    starts: NDArray[np.int64]  # shape [shards + 1]: rows before each, from the window's start


class Passes:
    """The order of one component's rows, pass after pass; any number of threads may ask.

    Shards without rows are left out before anything is chosen, so that they change nothing.

    Args:
        seed: of the recipe.
        name: of the component; equally shaped datasets move differently because of it.
        counts: rows of each shard, shape [shards], int64, together below 2^52; kept, only read.
        shuffle_shards: permute the shards of each pass.
        shuffle_within_shard: permute the rows of each shard of each pass.
        block_size: permute each of the blocks of so many rows that the sequence is then cut
            into, >= 1; None: no blocks. With a block as long as a pass, neither the order of the
            shards nor that of their rows decides anything, and neither is worked out.
        fresh: each pass is shuffled anew; otherwise all are shuffled like pass 0.
    """

    __slots__ = (
        "_blocks",
        "_fresh",
        "_kept",
        "_position",
        "_row_key",
        "_shard_key",
        "_size",
        "rows",
    )

    def __init__(
        self,
        *,
        seed: int,
        name: str,
        counts: NDArray[np.int64],
        shuffle_shards: bool,
        shuffle_within_shard: bool,
        block_size: int | None,
        fresh: bool,
    ) -> None:
        filled = counts > 0
        # None: all shards have rows, so those listed are those of the dataset.
        self._position = None if filled.all() else np.flatnonzero(filled)
        self._size = counts if self._position is None else counts[self._position]
        self.rows = int(self._size.sum())
        shuffle_shards = shuffle_shards and len(self._size) > 1
        self._blocks = None
        if block_size is not None and block_size > 1:  # a block of one row changes nothing
            size = min(block_size, self.rows)
            self._blocks = Blocks(self.rows, size, seeds.key(seed, name, "blocks"), fresh)
            if self._blocks.whole:
                shuffle_shards = shuffle_within_shard = False
        self._shard_key = seeds.key(seed, name, "shards") if shuffle_shards else None
        self._row_key = seeds.key(seed, name, "rows") if shuffle_within_shard else None
        self._fresh = fresh
        self._kept = _Kept(KEPT_WINDOWS)

    def rows_at(self, runs: Runs) -> Places:
        """Say where each row of the runs lies; the runs' passes are ascending."""
        if len(runs.length) == 0:
            return Places.empty()
        first, last = int(runs.pass_index[0]), int(runs.pass_index[-1])
        if first == last or (self._blocks is not None and self._blocks.whole):
            return self._places(runs, first, self._kept_window(first))
        together = (
            max(1, MERGED_TABLE // len(self._size)) if len(self._size) <= MERGED_SHARDS else 1
        )
        firsts = np.arange(first, last + 1, together)
        edges = [*np.searchsorted(runs.pass_index, firsts).tolist(), len(runs.length)]
        found = []
        for which, (start, stop) in zip(firsts.tolist(), pairwise(edges), strict=True):
            if start < stop:
                final = int(runs.pass_index[stop - 1])
                window = self._kept_window(which) if together == 1 else self._window(which, final)
                found.append(self._places(runs.slice(start, stop), which, window))
        return Places.concat(found)

    def _places(self, runs: Runs, first: int, window: _Window) -> Places:
        if self._blocks is None:
            return self._in_sequence(runs, first, window)
        return self._in_blocks(self._blocks, runs, first, window)

    def _in_sequence(self, runs: Runs, first: int, window: _Window) -> Places:
        """Cut the runs where a shard ends; nothing is looked up row by row."""
        begin = (runs.pass_index - first) * self.rows + runs.start
        end = begin + runs.length
        slot = np.searchsorted(window.starts, begin, side="right") - 1
        parts = np.searchsorted(window.starts, end, side="left") - slot
        pass_index = np.repeat(runs.pass_index, parts)
        slot = count_up(slot, parts)
        begin = np.maximum(np.repeat(begin, parts), window.starts[slot])
        length = np.minimum(np.repeat(end, parts), window.starts[slot + 1]) - begin
        row = count_up(begin - window.starts[slot], length)
        listed = window.listed[slot]
        if self._row_key is not None:
            begins = first_of_each(slot)
            lengths = np.add.reduceat(length, begins)
            row_keys = self._row_keys(self._row_key, pass_index[begins], listed[begins])
            row = permute(row, lengths, self._size[listed[begins]], row_keys)
        return Places(
            pass_index=np.repeat(pass_index.astype(np.int32), length),
            shard=np.repeat(self._shards(listed), length),
            row=row,
        )

    def _in_blocks(self, blocks: Blocks, runs: Runs, first: int, window: _Window) -> Places:
        """Look up where in the sequence each row of a block comes from."""
        pass_index = np.repeat(runs.pass_index, runs.length)
        position = blocks.positions(runs)
        if not blocks.whole:
            np.add(position, (pass_index - first) * self.rows, out=position)
        # In ascending order the rows of a shard come together, and the search is six times faster.
        order = np.argsort(position)
        position = position[order]
        slot = np.searchsorted(window.starts, position, side="right") - 1
        ascending = position - window.starts[slot]
        listed = window.listed[slot]
        if self._row_key is not None:
            begins = first_of_each(slot)
            lengths = np.concatenate((begins[1:], [len(slot)])) - begins
            row_keys = self._row_keys(self._row_key, pass_index[begins], listed[begins])
            ascending = permute(ascending, lengths, self._size[listed[begins]], row_keys)
        shard, row = np.empty_like(position), np.empty_like(position)
        shard[order], row[order] = self._shards(listed), ascending
        return Places(pass_index=pass_index.astype(np.int32), shard=shard, row=row)

    def _row_keys(
        self, key: int, pass_index: NDArray[np.int64], listed: NDArray[np.integer]
    ) -> NDArray[np.uint64]:
        """Give the keys of the orders of some shards' rows, shape [shards]."""
        return seeds.subkeys(seeds.subkeys(key, pass_index if self._fresh else 0), listed)

    def _shards(self, listed: NDArray[np.integer]) -> NDArray[np.int64]:
        if self._position is None:
            return listed.astype(np.int64)
        return self._position[listed]

    def _kept_window(self, pass_index: int) -> _Window:
        which = pass_index if self._fresh and self._shard_key is not None else 0
        return self._kept.get(which, lambda: self._window(which, which))

    def _window(self, first: int, last: int) -> _Window:
        """Lay out the shards of passes ``first`` to ``last``."""
        shards, passes = len(self._size), last - first + 1
        listed = np.tile(np.arange(shards, dtype=np.int64), passes)
        if self._shard_key is not None:
            pass_index = np.arange(first, last + 1) if self._fresh else np.zeros(passes, np.int64)
            each_pass = np.full(passes, shards, dtype=np.int64)
            keys = seeds.subkeys(self._shard_key, pass_index)
            listed = permute(listed, each_pass, each_pass, keys)
        starts = np.zeros(len(listed) + 1, dtype=np.int64)
        np.cumsum(self._size[listed], out=starts[1:])
        return _Window(listed.astype(np.int32) if shards < 2**31 else listed, starts)


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
