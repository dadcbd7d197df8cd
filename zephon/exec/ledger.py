"""What becomes of the rows that an operator of the user gets: they go on, are merged, or dropped.

A drawn row is known by its place in the lane. It goes on as long as a record that leaves the steps
above the operator is made of it. It is dropped where the last part of it came, and nothing of it
has left when the operator's memory is flushed. What is counted belongs to groups, so that it is
the same at a delivered position, however far the lane has run, and after every restore.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.types import SampleMeta

Place = tuple[int, int]
"""The chunk of a drawn row, and its place in that."""

_MOST = 1 << 16
"""Rows that an operator without flushes may hold; of more, the oldest count as dropped."""

_ENDS, _LEFT, _ON = 1, 2, 4  # the last part came; a record left the operator; and the steps above
_ROWS, _DROPPED, _MADE, _OPEN = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """What is counted behind a group.

    totals: of each component: rows dropped; tokens dropped; tokens that left more than came;
    tokens that came and did not leave yet; shape [4, components], int64. open: rows of which it is
    not known yet: chunk, offset, component, flags; shape [4, rows], int64.
    """

    totals: NDArray[np.int64]
    open: NDArray[np.int64]

    @classmethod
    def none(cls, components: int) -> Account:
        """Return that of a lane of which nothing came."""
        return cls(np.zeros((4, components), np.int64), np.empty((4, 0), np.int64))

    @property
    def rows_dropped(self) -> NDArray[np.int64]:
        """Rows of which nothing is left, shape [components]."""
        return self.totals[_ROWS]

    @property
    def tokens_dropped(self) -> NDArray[np.int64]:
        """Tokens of records that did not leave, shape [components]."""
        return self.totals[_DROPPED]

    @property
    def tokens_made(self) -> NDArray[np.int64]:
        """Tokens of records that left more than came, shape [components]."""
        return self.totals[_MADE] + np.maximum(-self.totals[_OPEN], 0)

    @property
    def tokens_held(self) -> NDArray[np.int64]:
        """Tokens of records that the operator holds, shape [components]."""
        return np.maximum(self.totals[_OPEN], 0)


_Row = tuple[int, int]  # component, flags


class Ledger:
    """Counts for one lane; one thread writes, any may ask for an account.

    Args:
        component_of: says which component the row counts for that a place and a record name.
        component_ids: public id of each component.
        account: where to begin.
        counts_tokens: whether what records say of their tokens counts.
    """

    def __init__(
        self,
        component_of: Callable[[int, SampleMeta], int],
        component_ids: NDArray[np.integer],
        account: Account,
        *,
        counts_tokens: bool,
    ) -> None:
        self._counts_tokens = counts_tokens
        self._component_of = component_of
        self._numbers = {int(each): n for n, each in reversed([*enumerate(component_ids)])}
        self._open: dict[Place, _Row] = {
            (chunk, offset): (component, flags)
            for chunk, offset, component, flags in account.open.T.tolist()
        }
        self._totals = account.totals
        self._base = dict(self._open), account.totals
        self._since: deque[tuple[int, dict[Place, _Row | None], NDArray[np.int64]]] = deque()

    def add(
        self,
        group: int,
        came: Sequence[SampleMeta],
        made: Sequence[SampleMeta],
        left: Sequence[SampleMeta],
        *,
        flushed: bool,
    ) -> int:
        """Count a group.

        Args:
            group: its number.
            came: of the records that the operator got.
            made: of those that it gave, tombstones among them.
            left: of those that are left behind the steps above it.
            flushed: the operator holds nothing any more.

        Returns:
            how many rows the operator was given, and neither gave on nor said that it drops them.
        """
        totals, changed = self._totals.copy(), dict[Place, _Row | None]()
        for meta in came:
            for place, dataset, ends in _parts(meta):
                self._mark(changed, place, _ENDS * ends, self._component_of(dataset, meta))
        for metas, flag in ((made, _LEFT), (left, _LEFT | _ON)):
            for meta in metas:
                told = _ENDS | _LEFT if meta.tombstone else flag
                for place in _places(meta):
                    if place in self._open:
                        self._mark(changed, place, told)
        lost = self._settle(changed, totals, flushed=flushed)
        if self._counts_tokens:
            self._count_tokens(totals, came, left, flushed=flushed)
        self._totals = totals
        self._since.append((group, changed, totals))
        return lost

    @property
    def account(self) -> Account:
        """The account behind the last group."""
        return Account(self._totals, np.empty((4, 0), np.int64))

    def at(self, group: int) -> Account:
        """Give the account behind a group; none before the last that was forgotten."""
        open_, totals = self._base
        rows = dict(open_)
        for number, changed, after in list(self._since):
            if number > group:
                break
            _change(rows, changed)
            totals = after
        table = [(*place, *row) for place, row in rows.items()]
        return Account(totals, np.array(table, np.int64).reshape(len(table), 4).T.copy())

    def forget_before(self, group: int) -> None:
        """Forget the accounts before that behind a group."""
        while self._since and self._since[0][0] <= group:
            _, changed, totals = self._since.popleft()
            rows = self._base[0]
            _change(rows, changed)
            self._base = rows, totals

    def _mark(
        self, changed: dict[Place, _Row | None], place: Place, flags: int, component: int = 0
    ) -> None:
        component, before = self._open.get(place, (component, 0))
        self._open[place] = changed[place] = component, before | flags

    def _settle(
        self, changed: dict[Place, _Row | None], totals: NDArray[np.int64], *, flushed: bool
    ) -> int:
        """Count rows that are done with, and forget them; return how many the operator kept."""
        lost = 0
        excess = len(self._open) - _MOST
        some = self._open if flushed or excess > 0 else changed
        for number, place in enumerate(list(some)):
            component, flags = self._open[place]
            goes_on, ends = flags & _ON, flags & _ENDS
            if number >= excess and not (ends if goes_on else flushed):
                continue
            if ends and not goes_on:
                totals[_ROWS, component] += 1
                lost += not flags & _LEFT
            del self._open[place]
            changed[place] = None
        return lost

    def _count_tokens(
        self,
        totals: NDArray[np.int64],
        came: Sequence[SampleMeta],
        left: Sequence[SampleMeta],
        *,
        flushed: bool,
    ) -> None:
        open_ = totals[_OPEN]
        self._add_tokens(open_, came, 1)
        if any(meta.component_token_counts is None for meta in left):
            open_[:] = 0  # nobody can tell what they hold
        else:
            self._add_tokens(open_, left, -1)
        if flushed:
            totals[_DROPPED] += np.maximum(open_, 0)
            totals[_MADE] += np.maximum(-open_, 0)
            open_[:] = 0

    def _add_tokens(self, into: NDArray[np.int64], metas: Iterable[SampleMeta], sign: int) -> None:
        for meta in metas:
            for component, tokens in (meta.component_token_counts or {}).items():
                if component in self._numbers:
                    into[self._numbers[component]] += sign * tokens


def _change(rows: dict[Place, _Row], changed: dict[Place, _Row | None]) -> None:
    for place, row in changed.items():
        if row is None:
            rows.pop(place, None)
        else:
            rows[place] = row


def _parts(meta: SampleMeta) -> list[tuple[Place, int, bool]]:
    """Name the places of the rows in a record, their datasets, and whether they end in it."""
    if meta.contributors is None:
        ends = not meta.component_sample_counts or any(meta.component_sample_counts.values())
        return [((meta.chunk_id, meta.chunk_offset), meta.sample_id[0], ends)]
    return [
        (ref.cursor.base_offset, ref.cursor.sample_id[0], ref.is_last_child)
        for ref in meta.contributors
    ]


def _places(meta: SampleMeta) -> list[Place]:
    own = (meta.chunk_id, meta.chunk_offset)
    if meta.contributors is None:
        return [own]
    return [own, *(ref.cursor.base_offset for ref in meta.contributors)]
