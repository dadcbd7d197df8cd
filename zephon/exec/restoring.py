"""What a lane finds again when it is restored: the documents of a log, and states of policies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.arrivals import Arrivals
from zephon.exec.block import Known
from zephon.exec.half_used import HalfUsed, half_used
from zephon.exec.history import LaneState, Tick
from zephon.exec.intake import Intake
from zephon.exec.policies import NO_UNITS, Chain, Held, Units
from zephon.exec.policies.chain import States
from zephon.exec.rows import HeldRows
from zephon.exec.strands import Strands
from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs

_MISFITS = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, MemoryError)


def resumed(chain: Chain, tick: Tick, held: HeldRows) -> tuple[States, Units]:
    """Rebuild the states of policies; give also the rows that they had finished.

    Those are there where an edit of the run stands between the draws that finished them and their
    delivery: as one more part, behind what the policies remember.

    Args:
        chain: the policies.
        tick: of a lane.
        held: gets the documents of all pieces.

    Raises:
        CheckpointError: they are states of other policies.
    """
    seqs = np.concatenate([*(part.units.seq for part in tick.stages), NO_UNITS.seq])
    _, firsts, where = np.unique(seqs, return_index=True, return_inverse=True)
    held.append_unread(tick.known.take(firsts))
    found, at = [], 0
    for part in tick.stages:
        units, stop = part.units, at + len(part.units.seq)
        seq = where[at:stop].astype(np.int64)
        units = Units(units.splits, seq, units.start, units.length, units.trigger)
        found.append(Held(units, part.numbers))
        at = stop
    with fitting(held.lane):
        states = chain.resume(held.lane, found[: len(chain)], held)
        (ready,) = found[len(chain) :] or [Held()]
        if ready.numbers:
            raise ValueError("there are states of more policies")
    return states, ready.units


def halves_again(
    chain: Chain, state: LaneState, parts: Sequence[Units], held: HeldRows
) -> HalfUsed | None:
    """Follow the half-used documents of a lane on from its state; None if no policy makes such.

    Args:
        chain: the policies.
        state: the lane's.
        parts: all that is not delivered, the finished rows last.
        held: knows the documents.
    """
    if not chain.cuts:
        return None
    units = Units.concat(parts)
    seqs, place = np.unique(units.seq, return_inverse=True)
    known = held.known(seqs)
    left, half = half_used(replace(units, seq=place.reshape(-1)), known)
    names = zip(known.refs.ordinal[half].tolist(), known.refs.child[half].tolist(), strict=True)
    digests, seqs = state.halves.by_name(), seqs[half].tolist()
    entries = {
        seq: (*name, digests[name])
        for seq, name in zip(seqs, names, strict=True)
        if name in digests
    }
    halves = HalfUsed(dict(zip(seqs, left[half].tolist(), strict=True)), entries)
    halves.place(state.rows, parts[-1], held)
    return halves


@contextlib.contextmanager
def fitting(lane: int) -> Iterator[None]:
    """Let policies go on from a state; nothing in it runs code of the user.

    Raises:
        CheckpointError: what they find cannot be theirs.
    """
    try:
        yield
    except _MISFITS as exc:
        raise CheckpointError(
            f"restore: lane {lane} of the checkpoint does not fit the steps of this "
            f"pipeline: {exc}; it is damaged, restore an earlier one"
        ) from exc


def documents_again(
    lane: int, state: LaneState, draws: LaneStream | Strands
) -> tuple[Known, NDArray[np.int64]]:
    """Return a log's documents, and the tokens of the lane before each; see ``drawn_again``."""
    documents = state.log.documents()
    began = int(state.tick.counts.tokens.sum())
    times = began + np.cumsum(documents.length) - documents.length
    refs = drawn_again(lane, state, documents, draws)
    return Known(refs, documents.length, documents.position, documents.measures), times


def drawn_again(
    lane: int, state: LaneState, documents: Arrivals, draws: LaneStream | Strands
) -> Refs:
    """Return the references of a log's documents; splits of one draw are its children.

    Args:
        lane: whose log.
        state: holds the log.
        documents: the entries of the log that are documents.
        draws: where they came from, at the tick; strands go on to the end of the log.

    Raises:
        CheckpointError: other rows are drawn now.
    """
    if documents.refs is not None:
        return documents.refs
    ordinals = documents.ordinal
    if isinstance(draws, Strands):
        refs = draws.drawn_again(state)
        draws.roll(state.log, refs)
    else:
        refs = _same_draws(lane, state, draws).take(ordinals - state.tick.ordinal)
    starts = np.flatnonzero(np.diff(ordinals, prepend=-1))
    sizes = np.diff(starts, append=len(ordinals))
    child = np.arange(len(ordinals)) - np.repeat(starts, sizes)
    last = np.zeros(len(ordinals), bool)
    last[starts + sizes - 1] = True
    return replace(refs, child=child.astype(np.int32), last_child=last)


def _same_draws(lane: int, state: LaneState, stream: LaneStream) -> Refs:
    """Return the draws from the tick on; refuses a source that draws others now."""
    first, ordinals = state.tick.ordinal, state.log.ordinal
    count = int(ordinals[-1]) - first + 1
    draws = stream.draw(first, count)
    if len(draws) < count and stream.failure is not None:
        raise stream.failure
    if len(draws) == count:
        same = draws.component[ordinals - first] == state.log.component
        if same.all():
            return draws
    raise CheckpointError(
        f"restore: lane {lane} draws other rows than when the checkpoint was taken, from "
        f"draw {first} on; a work source must repeat itself, or restore all of its state"
    )


def set_intakes(
    intakes: Sequence[Intake],
    strands: Strands | None,
    tokens: NDArray[np.int64],
    state: LaneState,
) -> None:
    """Let intakes go on after what is drawn; what was read beyond is read again.

    Args:
        intakes: of the lane, or of its strands.
        strands: behind the state; None: the lane merges none.
        tokens: that each component has emitted, shape [components].
        state: of the lane.
    """
    if strands is None:
        (intake,) = intakes
        intake.next_draw = state.last_draw + 1 if state.rows else state.tick.ordinal
        intake.read = intake.next_draw
        return
    drawn = strands.point().position.tolist()
    for intake, position, emitted in zip(intakes, drawn, tokens.tolist(), strict=True):
        intake.next_draw = intake.read = position
        intake.tokens = emitted


def refuse_other_kind(lane: int, state: LaneState, *, fed: bool, merges: bool) -> None:
    """Refuse the state of a lane of another kind.

    Args:
        lane: which.
        state: of it.
        fed: an operator of the user feeds it.
        merges: it merges strands.

    Raises:
        CheckpointError: it is one.
    """
    if (state.below is not None) != fed:
        raise CheckpointError(
            f"restore: lane {lane} of the checkpoint must say what feeds it exactly where "
            "an operator of the user does; it is damaged, restore an earlier one"
        )
    if (state.tick.merge is not None) != merges:
        raise CheckpointError(
            f"restore: lane {lane} of the checkpoint must say where its components are "
            "exactly where they are merged by tokens; it is damaged, restore an earlier one"
        )


def refuse_missing_rows(lane: int, state: LaneState, placed: int) -> None:
    """Refuse a state whose draws gave fewer rows than it says, if none are to come once more.

    Raises:
        CheckpointError: they did.
    """
    if placed < state.rows and (state.below is None or not state.stopped):
        raise CheckpointError(
            f"restore: lane {lane} has {placed} rows at draw {state.last_draw}, the checkpoint "
            f"says {state.rows}; it is damaged"
        )
