"""Feeding a policy units of any shape, however grouped, written down and rebuilt on the way."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from tests.exec.policies.known import Known, pieces_of
from zephon.exec.policies.policy import AT_END, Units


class Renumbered:
    """The same documents under arrival numbers that are ``by`` higher."""

    def __init__(self, known, by):
        self.known, self.by = known, by

    def components(self, seqs):
        return self.known.components(seqs - self.by)

    def lengths(self, seqs):
        return self.known.lengths(seqs - self.by)

    def last_parts(self, seqs):
        return self.known.last_parts(seqs - self.by)

    def measures(self, name, seqs):
        return self.known.measures(name, seqs - self.by)

    def weights(self, seq):
        return self.known.weights(seq - self.by)


def renumbered(units, by):
    trigger = np.where(units.trigger == AT_END, AT_END, units.trigger + by)
    return Units(units.splits, units.seq + by, units.start, units.length, trigger)


def units_of(rows, triggers):
    """Make units of lists of (seq, start, length)."""
    pieces = np.array([piece for row in rows for piece in row], np.int64).reshape(-1, 3)
    return Units(
        splits=np.cumsum([0, *map(len, rows)]),
        seq=pieces[:, 0].copy(),
        start=pieces[:, 1].copy(),
        length=pieces[:, 2].copy(),
        trigger=np.array(triggers, np.int64),
    )


def plain(units):
    """List units with their triggers."""
    return list(zip(pieces_of(units), units.trigger.tolist(), strict=True))


def written(held):
    """Turn what is held into plain values."""
    return pieces_of(held.units), {name: each.tolist() for name, each in held.numbers.items()}


def feed(policy, units, known, sizes, *, lane=0, resume_at=None, by=1000):
    """Push units in groups of these sizes, the last one over again; then finish.

    Args:
        resume_at: units after which the state is written down, and rebuilt with its documents
            renumbered; a push ends there.

    Returns:
        All units that left, as plain values, and the state.
    """
    state, out, at, number = policy.make_state(lane), [], 0, 0
    sizes, shift = list(sizes) or [1], 0
    while at < len(units):
        stop = min(at + sizes[min(number, len(sizes) - 1)], len(units))
        if resume_at is not None and at < resume_at < stop:
            stop = resume_at
        pushed = policy.push(state, renumbered(units.rows(at, stop), shift), _view(known, shift))
        out += plain(renumbered(pushed, -shift))
        at, number = stop, number + 1
        if at == resume_at:
            held = policy.held(state)
            shift += by
            state = policy.resume(lane, _moved(held, by), _view(known, shift))
            assert written(policy.held(state)) == written(_moved(held, by))
    out += plain(renumbered(policy.finish(state, _view(known, shift)), -shift))
    return out, state


def held_after(policy, units, known, sizes, count, lane=0):
    """Write down what is held after ``count`` units."""
    state, at, number = policy.make_state(lane), 0, 0
    sizes = list(sizes) or [1]
    while at < count:
        stop = min(at + sizes[min(number, len(sizes) - 1)], count)
        policy.push(state, units.rows(at, stop), known)
        at, number = stop, number + 1
    return written(policy.held(state))


def _view(known, by):
    return Renumbered(known, by) if by else known


def _moved(held, by):
    return type(held)(renumbered(held.units, by), held.numbers)


ROWS = st.integers(1, 16)


@st.composite
def streams(draw, most=120, groups=3, rows=ROWS):
    """Draw documents and units of them: whole documents, or rows cut out of a stream of them."""
    count = draw(st.integers(0, most))
    numbers = draw(st.randoms(use_true_random=False))
    lengths = [numbers.choice([0, 1, 2, 3, 8, 20]) for _ in range(count)]
    known = Known(
        lengths,
        components=[numbers.randrange(groups) for _ in range(count)],
        last_parts=[numbers.random() < 0.8 for _ in range(count)],
        weight=np.array([numbers.choice([0.0, 0.1, 1.0, 2.5]) for _ in range(count)]),
    )
    if draw(st.booleans()):
        packed = [[(seq, 0, length)] for seq, length in enumerate(lengths)]
    else:
        packed = cut(lengths, draw(rows))
    triggers = [row[-1][0] for row in packed]
    ended = draw(st.integers(0, 2)) and len(packed) - len(packed) // 4
    if ended:
        triggers = [*triggers[:ended], *[AT_END] * (len(packed) - ended)]
    return known, units_of(packed, triggers)


def cut(lengths, most):
    """Cut the documents into rows of at most ``most`` tokens, the last one shorter."""
    rows, room = [], 0
    for seq, length in enumerate(lengths):
        ends = sorted({0, length, *range(room, length, most)}) if length else [0, 0]
        for start, stop in pairwise(ends):
            if not room or not rows:
                rows.append([])
                room = most
            rows[-1].append((seq, start, stop - start))
            room -= stop - start
    return rows


GROUPINGS = st.lists(st.integers(1, 40), max_size=12)
