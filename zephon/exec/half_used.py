"""Documents of a lane of which some tokens are delivered and some are not, and their digests.

Only a packer that cuts documents leaves such behind. A run whose functions changed derives them
again, and goes on inside of one only if its tokens are the same: so a state carries 8 bytes of
each. Where a state may stand, the tokens of such a document are copied, from those that are held
anyway; they are hashed when a state is asked for, which is seldom.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from zephon.exec.block import Known
from zephon.exec.history_lock import HistoryLock
from zephon.exec.policies import Units
from zephon.exec.rows import HeldRows


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Half-used documents, in the order of the lane; all of shape [docs].

    ordinal, child: which draw of the lane, and which split of it. digest: of the tokens of all of
    the document, int64.
    """

    ordinal: NDArray[np.int64]
    child: NDArray[np.int64]
    digest: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.digest)

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int]]) -> Halves:
        """Make a table of documents, sorted by the lane's order."""
        table = np.array(sorted(rows), np.int64).reshape(len(rows), 3)
        return cls(*table.T.copy())

    def by_name(self) -> dict[tuple[int, int], int]:
        """Give each digest by draw and split."""
        names = zip(self.ordinal.tolist(), self.child.tolist(), strict=True)
        return dict(zip(names, self.digest.tolist(), strict=True))


NO_HALVES = Halves.of(())


def token_digest(tokens: NDArray[np.int32]) -> int:
    """Hash the tokens of a document, as a signed integer of 8 bytes.

    >>> token_digest(np.array([1, 2, 3], np.int32))
    -7044357283931317034
    """
    data = np.ascontiguousarray(tokens, "<i4").data
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True)


def half_used(pieces: Units, known: Known) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find which documents are half used.

    Args:
        pieces: all that is not delivered; ``seq`` is the place of each document in ``known``.
        known: the documents.

    Returns:
        Tokens of each document that are not delivered, shape [docs]; and the places of those of
        which others are.
    """
    left = np.bincount(pieces.seq, weights=pieces.length, minlength=len(known)).astype(np.int64)
    return left, np.flatnonzero(left < known.length)


_Named: TypeAlias = tuple[int, int, "int | NDArray[np.int32]"]
"""Draw, split, and the digest of a document, or its tokens."""


class HalfUsed:
    """Follows one lane from row to row; one thread writes, under the lock of the lane.

    Args:
        left: tokens that are not delivered of documents that are half used, by arrival number.
        entries: what a state says of these: draw, split, digest.
    """

    def __init__(
        self, left: Mapping[int, int], entries: Mapping[int, tuple[int, int, int]]
    ) -> None:
        self._left = dict(left)
        self._named: dict[int, _Named] = dict(entries)
        self._base: dict[int, _Named] = dict(entries)
        self._since: deque[tuple[int, dict[int, _Named | None]]] = deque()
        self._pieces: deque[tuple[int, int, int, int]] = deque()
        # Half used without a digest, in order.
        self._missing = {seq: None for seq in left if seq not in entries}

    def place(self, first: int, rows: Units, held: HeldRows) -> None:
        """Note the pieces of finished rows that are not whole documents.

        Args:
            first: number of the first row.
            rows: in order.
            held: knows their documents.
        """
        whole = held.lengths(rows.seq)
        at = np.flatnonzero(rows.length < whole)
        if not len(at):
            return
        number = first + np.searchsorted(rows.splits, at, side="right") - 1
        columns = (number, rows.seq[at], rows.length[at], whole[at])
        self._pieces.extend(zip(*(each.tolist() for each in columns), strict=True))

    def pass_row(
        self,
        rows: int,
        held: HeldRows,
        lock: HistoryLock,
        field: str,
        read: Callable[[NDArray[np.int64]], None],
    ) -> None:
        """Let a state stand behind so many rows: copy what is half used there.

        Args:
            rows: finished; those behind them are not released.
            held: knows the documents.
            lock: of the lane.
            field: the name of the tokens.
            read: gives unread documents their tokens.
        """
        with lock:
            missing = self._pass(rows)
        if not missing:
            return
        seqs = np.array(missing, np.int64)
        read(seqs)
        copies = _copies_of(held, seqs, field)
        entries = [(*name, copy) for name, copy in zip(held.names(seqs), copies, strict=True)]
        found = dict(zip(missing, entries, strict=True))
        with lock:
            self._named |= found
            self._missing.clear()
            self._since[-1][1].update(found)

    def _pass(self, rows: int) -> list[int]:
        """Go on to so many rows; list the documents whose tokens are missing."""
        left, pieces = self._left, self._pieces
        ended: dict[int, _Named | None] = {}
        while pieces and pieces[0][0] < rows:
            _, seq, length, whole = pieces.popleft()
            rest = left.get(seq, whole) - length
            if rest:
                left[seq] = rest
                if seq not in self._named:
                    self._missing[seq] = None
            else:
                left.pop(seq, None)
                self._missing.pop(seq, None)
                if self._named.pop(seq, None) is not None:
                    ended[seq] = None
        self._since.append((rows, ended))
        return list(self._missing)

    def at(self, rows: int) -> Halves:
        """List the documents that are half used when so many rows are delivered."""
        found = dict(self._base)
        for number, changed in self._since:
            if number > rows:
                break
            _change(found, changed)
        return Halves.of(
            [
                (draw, child, told if isinstance(told, int) else token_digest(told))
                for draw, child, told in found.values()
            ]
        )

    def forget_before(self, rows: int) -> None:
        """Drop what no state at ``rows`` or later needs."""
        while self._since and self._since[0][0] <= rows:
            _change(self._base, self._since.popleft()[1])


def _change(found: dict[int, _Named], changed: Mapping[int, _Named | None]) -> None:
    for seq, entry in changed.items():
        if entry is None:
            found.pop(seq, None)
        else:
            found[seq] = entry


def _copies_of(held: HeldRows, seqs: NDArray[np.int64], field: str) -> list[NDArray[np.int32]]:
    """Copy the tokens of documents that are held and read, given the name of the field."""
    part, start, _ = held.places(seqs)
    spans = zip(part.tolist(), start.tolist(), held.lengths(seqs).tolist(), strict=True)
    return [
        held.parts[number].buffer.columns[field][first : first + length].copy()
        for number, first, length in spans
    ]
