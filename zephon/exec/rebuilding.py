"""Policies begun anew with what is left of the documents that they held, made by other steps.

What stands before a packer holds documents, and gets in their place what they are now. A row that a
packer made stays as it is while none of its documents changed; otherwise it is taken apart, and so
is every row that shares a document with it. What comes of that goes into the packer first, then
what the packer held itself: each document once, at its first place, pieces that follow each other
as one. A document of which a part is delivered goes on at its first token that is not, if it is the
same document; otherwise its rest is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zephon.exec.block import Known
from zephon.exec.deriving import Derived
from zephon.exec.half_used import Halves, half_used
from zephon.exec.policies import AT_END, NO_UNITS, Chain, Documents, Held, Units
from zephon.exec.renumbering import Renumbering


@dataclass(frozen=True, slots=True, eq=False)
class Undelivered:
    """What a lane holds, and what becomes of it.

    parts: what each policy holds, and last the finished rows; ``seq`` is the place of each piece's
    document in ``known``. known: the documents as they were. digests: of those that are half used,
    as far as they are known, by draw and split. derived: what they are now.
    """

    parts: Sequence[Units]
    known: Known
    digests: dict[tuple[int, int], int]
    derived: Derived

    @classmethod
    def without(
        cls,
        parts: Sequence[Units],
        known: Known,
        digests: dict[tuple[int, int], int],
        gone: NDArray[np.int64],
        numbers: Renumbering,
    ) -> Undelivered:
        """Let all documents of some components go; the others stay what they are.

        Args:
            parts, known, digests: as above.
            gone: the components, by the numbers of then.
            numbers: of components then, and now.
        """
        place = np.where(np.isin(known.refs.component, gone), -1, np.arange(len(known)))
        names = zip(known.refs.ordinal.tolist(), known.refs.child.tolist(), strict=True)
        told = {name: digests.get(name, 0) for name in names}
        derived = Derived(
            known=known.renumbered(numbers),
            place=place,
            extras=np.zeros_like(place),
            digest=np.array([*told.values()], np.int64),
        )
        return cls(parts, known, told, derived)

    def fates(self) -> Fates:
        """Say what becomes of each document."""
        known, derived = self.known, self.derived
        left, half = half_used(Units.concat(self.parts), known)
        partly = np.zeros(len(known), bool)
        partly[half] = True
        ordinals, children = known.refs.ordinal[half].tolist(), known.refs.child[half].tolist()
        names = list(zip(ordinals, children, strict=True))
        same = [
            self.digests.get(name) == digest
            for name, digest in zip(names, derived.digest[half].tolist(), strict=True)
        ]
        stays = derived.place >= 0
        stays[half] &= np.array(same, bool)  # a row that is gone has no digest
        place = np.where(stays, derived.place, -1)
        extras = np.where(stays, derived.extras, 0)
        length = np.where(stays, _at(derived.known.length, place), 0)
        measured = _at(derived.known.measures, place) == known.measures
        same_now = (length == known.length) & measured.all(axis=0) & (extras == 0)
        named = zip(names, derived.digest[half].tolist(), same, strict=True)
        halves = [(*name, digest) for name, digest, kept in named if kept]
        stops = np.concatenate([[0], np.cumsum(derived.known.length)])
        with_extras = stops[place + 1 + extras] - stops[place]
        return Fates(
            place=place,
            extras=extras,
            changed=~stays | ~same_now,
            dropped=np.where(stays, 0, left),
            more=np.where(stays, with_extras - known.length, 0),
            halves=Halves.of(halves),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fates:
    """What becomes of documents; all of shape [docs].

    place: of each in the new table, -1 if it goes. extras: how many new ones follow it there.
    changed: it goes, or is not as long as it was, or others follow it. dropped: tokens that go with
    it. more: tokens that it and its extras have more than it had, if it stays.
    """

    place: NDArray[np.int64]
    extras: NDArray[np.int64]
    changed: NDArray[np.bool_]
    dropped: NDArray[np.int64]
    more: NDArray[np.int64]
    halves: Halves


def parts_now(chain: Chain, held: Undelivered, fates: Fates) -> list[Units]:
    """Say what each policy is to get, and which finished rows stay.

    Returns:
        For each policy, and then for the finished rows, units; ``seq`` is the place of each piece's
        document in the new table.
    """
    new, packer = held.derived.known, chain.packer
    if packer == len(chain):
        return [
            _documents(units, fates, new, joined=chain.joins(number))
            for number, units in enumerate(held.parts)
        ]
    found = [
        _documents(units, fates, new, joined=chain.joins(number))
        for number, units in enumerate(held.parts[:packer])
    ]
    rows = held.parts[packer + 1 :]
    broken = _broken(Units.concat(rows), fates.changed)
    stays = np.split(~broken, np.cumsum([len(units) for units in rows])[:-1])
    gone = [units.take(np.flatnonzero(~kept)) for units, kept in zip(rows, stays, strict=True)]
    pieces = [(u.seq, u.start, u.length) for u in (*reversed(gone), held.parts[packer])]
    seq, start, length = (np.concatenate(column) for column in zip(*pieces, strict=True))
    found.append(_once(seq, start, length, fates, new))
    for units, kept in zip(rows, stays, strict=True):
        whole = units.take(np.flatnonzero(kept))
        found.append(replace(whole, seq=fates.place[whole.seq]))
    return found


def pushed(
    chain: Chain, lane: int, parts: Sequence[Units], documents: Documents, trigger: int
) -> tuple[Held, ...]:
    """Push units into empty policies, the last of these first.

    Args:
        chain: the policies.
        lane: whose.
        parts: what each gets, and last the rows that are finished.
        documents: what is known of the documents.
        trigger: the document that counts as the last that came.

    Returns:
        What each policy remembers then, and last, if there are any, the finished rows.
    """
    states = chain.make_state(lane)
    rows = [parts[-1]]
    for number in range(len(chain) - 1, -1, -1):
        units = parts[number].let_go(np.full(len(parts[number]), trigger))
        rows.append(chain.push_from(number, states, units, documents))
    ready = Units.concat([units for units in rows if len(units)])
    ready = ready.let_go(np.full(len(ready), AT_END))
    return (*chain.held(states), *([Held(ready)] if len(ready) else []))


def _at(values: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """Look values up; 0 where there is no place."""
    padded = np.concatenate([values, np.zeros_like(values[..., :1])], axis=-1)
    if padded.shape[-1] == 0:
        padded = np.zeros((*values.shape[:-1], 1), np.int64)
    return padded[..., place]


def _documents(units: Units, fates: Fates, new: Known, *, joined: bool) -> Units:
    """Put what documents are now in their place, in units of whole documents.

    Args:
        units: of documents.
        fates: of these.
        new: the new table.
        joined: what follows a document is of its unit.
    """
    place, old = _expanded(units.seq, fates)
    unit = np.repeat(np.arange(len(units)), np.diff(units.splits))[old]
    starts = np.flatnonzero(np.diff(unit, prepend=-1)) if joined else np.arange(len(place))
    return Units(
        splits=np.append(starts, len(place)).astype(np.int64),
        seq=place,
        start=np.zeros(len(place), np.int64),
        length=new.length[place],
        trigger=np.full(len(starts), AT_END),
    )


def _expanded(seq: NDArray[np.int64], fates: Fates) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List what documents are now, and of which entry of ``seq`` each is."""
    place = fates.place[seq]
    counts = np.where(place < 0, 0, 1 + fates.extras[seq])
    old = np.repeat(np.arange(len(seq)), counts)
    within = np.arange(len(old)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place[old] + within, old


def _broken(rows: Units, changed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say which rows hold a document that changed, or share one with such a row."""
    broken, bad = np.zeros(len(rows), bool), changed.copy()
    while len(rows):
        now = np.logical_or.reduceat(bad[rows.seq], rows.splits[:-1])
        if (now == broken).all():
            break
        broken = now
        bad[rows.seq[np.repeat(broken, np.diff(rows.splits))]] = True
    return broken


def _once(
    seq: NDArray[np.int64],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    fates: Fates,
    new: Known,
) -> Units:
    """Make units for a packer of pieces of old documents.

    Args:
        seq, start, length: the pieces, in order; shape [pieces].
        fates: of the documents.
        new: the new table.
    """
    _, first, inverse = np.unique(seq, return_index=True, return_inverse=True)
    rank = first[inverse.reshape(-1)]  # of each piece: where its document stands first
    as_it_was = ~fates.changed[seq]
    others = np.flatnonzero(~as_it_was & (rank == np.arange(len(seq))))
    place, old = _expanded(seq[others], fates)
    table = np.concatenate(
        [
            np.stack([rank, start, fates.place[seq], start, length])[:, as_it_was],
            np.stack(
                [
                    rank[others][old],
                    place,  # new documents stand side by side
                    place,
                    np.zeros_like(place),
                    new.length[place],
                ]
            ),
        ],
        axis=1,
    )
    table = table[:, np.lexsort((table[1], table[0]))]
    _, _, place, start, length = table
    follows = np.zeros(len(place), bool)
    follows[1:] = (place[1:] == place[:-1]) & (start[1:] == (start + length)[:-1]) & (start[1:] > 0)
    begins = np.flatnonzero(~follows)
    if not len(begins):
        return NO_UNITS
    whole = np.add.reduceat(length, begins)
    return Units.single(place[begins], start[begins], whole, np.full(len(begins), AT_END))
