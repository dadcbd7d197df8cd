"""Row groups of which nothing need be read, since what files say of them proves that no row passes.

Statistics are tested for many neighbouring row groups at once, at the first touch of one of them:
the test of one alone costs as much. What was found is remembered, a byte or two a row group.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from zephon.expressions import RowFilter
from zephon.io.formats.format import GroupReader
from zephon.io.group_cache import GroupCache

_SPAN = 64  # row groups that are tested together
_SPAN_BYTES = 512  # what is remembered of them holds
_MOST_BYTES = 2 << 20


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """Neighbouring row groups of one shard.

    first: the first of them. excluded: of which no row passes. counted: of these, which were asked
    for; both of shape [groups].
    """

    first: int
    excluded: NDArray[np.bool_]
    counted: NDArray[np.bool_]


class ExcludedGroups:
    """Says which row groups of one dataset hold no row that passes; any thread may ask.

    Args:
        parts: filters of which each alone excludes a row group, if all that it looks at is good.
        reader: knows statistics of all that they look at.
        group_counts: row groups of each shard, shape [shards], int64.
    """

    def __init__(
        self, parts: Sequence[RowFilter], reader: GroupReader, group_counts: NDArray[np.int64]
    ) -> None:
        self._parts = [(part, set(part.reads)) for part in parts]
        self._reader = reader
        self._group_counts = group_counts
        self._spans = GroupCache(_MOST_BYTES)  # two threads do not test the same
        self._lock = threading.Lock()

    def find(
        self, shards: NDArray[np.int64], groups: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], int]:
        """Find those of some row groups that hold no row that passes.

        Args:
            shards: position of each row group's shard in the dataset's, ascending, shape [groups].
            groups: its position in that shard's row groups, each once, shape [groups].

        Returns:
            a mask of its own, shape [groups]; and how many of them nobody had asked for before.

        Raises:
            ShardError: a file cannot be read, or changed since it was counted.
        """
        cuts = np.flatnonzero(shards[1:] != shards[:-1]) + 1
        found, new = np.zeros(len(groups), np.bool_), 0
        for start, stop in pairwise([0, *cuts.tolist(), len(groups)]):
            found[start:stop], more = self._of_shard(int(shards[start]), groups[start:stop])
            new += more
        return found, new

    def _of_shard(self, shard: int, groups: NDArray[np.int64]) -> tuple[NDArray[np.bool_], int]:
        found, number = np.zeros(len(groups), np.bool_), groups // _SPAN
        marks: list[tuple[NDArray[np.bool_], NDArray[np.int64]]] = []
        for each in dict.fromkeys(number.tolist()):
            span = self._spans.get((shard, each), partial(self._tested, shard, each), _bytes_of)
            mine = number == each
            inside = groups[mine] - span.first
            found[mine] = excluded = span.excluded[inside]
            marks.append((span.counted, inside[excluded]))
        if not all(counted[inside].all() for counted, inside in marks):
            self._reader.check_unchanged(shard)  # as who reads a row group for the first time does
        new = 0
        with self._lock:
            for counted, inside in marks:
                new += int(np.count_nonzero(~counted[inside]))
                counted[inside] = True
        return found, new

    def _tested(self, shard: int, number: int) -> _Span:
        first = number * _SPAN
        groups = range(first, min(first + _SPAN, int(self._group_counts[shard])))
        told = self._reader.statistics(shard, groups)
        excluded = np.zeros(len(groups), np.bool_)
        for part, reads in self._parts:
            sure = [place for place, about in enumerate(told) if reads <= about.keys()]
            if sure:
                excluded[sure] |= ~part.may_keep([told[place] for place in sure])
        return _Span(first, excluded, np.zeros(len(groups), np.bool_))


def _bytes_of(_: _Span) -> int:
    return _SPAN_BYTES
