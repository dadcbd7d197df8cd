"""Where every token went, per component and lane: delivered, held, or dropped, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.engine import Engine
from zephon.exec.history import LaneState
from zephon.exec.towers import counted, counted_at

FUNCTION = "function"
"""Why tokens are dropped that were packed: a function behind packing let go of their row."""


def account(engine: Engine) -> dict[str, Any]:
    """Count rows and tokens of the lanes that this rank runs, up to what was handed out.

    Returns:
        Per component, those that an edit of the run removed last: rows_drawn, and of these
        rows_filtered (by an expression), rows_dropped (by a function, or by a filter behind
        one), rows_skipped and rows_quarantined (bad ones, as ``on_error`` of their dataset says)
        and rows_null (whose text is null, where ``null_text="drop"``) that gave no document, each
        once; tokens_made (those that
        reached the policy), tokens_delivered, share_delivered (of all components' delivered
        tokens), tokens_held (drawn and to be delivered yet), and tokens_dropped by reason
        (oversized, function, edit, end_of_data, drop_last); and lanes, the same of each lane,
        where share_delivered is that of the lane's tokens. With a global batch all counts are of
        whole steps, whoever handed out their rows, and a rank that stands within a step counts from
        its beginning: so two ranks say the same of a lane that they share, and who adds up ranks
        takes each lane once. Ranks that ended apart count it as far as each got, and a run that is
        restored from their parts as far as the last of them.

        Where operators of the user see rows in order, tokens are those that the last of them made,
        with what never reached it; or, if its rows have none, those that were given to it.
    """
    _, states = engine.state()
    # A component may span datasets, which the engine counts apart.
    names = list(dict.fromkeys(engine.components))
    place = np.array([names.index(name) for name in engine.components])
    lanes = {lane: _lane(engine, lane, state).joined(place) for lane, state in states.items()}
    totals = sum(lanes.values(), _Counted.none(len(names))).by_name(names)
    each = {lane: counted.by_name(names) for lane, counted in lanes.items()}
    return {
        name: {**totals[name], "lanes": {lane: found[name] for lane, found in each.items()}}
        for name in names
    }


@dataclass(frozen=True, slots=True)
class _Counted:
    """What is counted of a lane, or of several; arrays of shape [components]."""

    rows: NDArray[np.int64]
    filtered: NDArray[np.int64]
    lost: NDArray[np.int64]
    skipped: NDArray[np.int64]
    quarantined: NDArray[np.int64]
    null: NDArray[np.int64]
    made: NDArray[np.int64]
    held: NDArray[np.int64]
    dropped: Mapping[str, NDArray[np.int64]]

    @classmethod
    def none(cls, components: int) -> _Counted:
        return cls(*(np.zeros(components, np.int64) for _ in _ARRAYS), dropped={})

    def __add__(self, other: _Counted) -> _Counted:
        dropped = dict(self.dropped)
        for reason, tokens in other.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + tokens
        sums = (getattr(self, name) + getattr(other, name) for name in _ARRAYS)
        return _Counted(*sums, dropped=dropped)

    def joined(self, place: NDArray[np.int64]) -> _Counted:
        """Add up what belongs to one component."""
        dropped = {reason: _summed(tokens, place) for reason, tokens in self.dropped.items()}
        return _Counted(*(_summed(getattr(self, name), place) for name in _ARRAYS), dropped=dropped)

    def by_name(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Say it component by component."""
        delivered = self.made - self.held - sum(self.dropped.values())
        total = max(int(delivered.sum()), 1)
        return {
            name: {
                "rows_drawn": int(self.rows[i]),
                "rows_filtered": int(self.filtered[i]),
                "rows_dropped": int(self.lost[i]),
                "rows_skipped": int(self.skipped[i]),
                "rows_quarantined": int(self.quarantined[i]),
                "rows_null": int(self.null[i]),
                "tokens_made": int(self.made[i]),
                "tokens_delivered": int(delivered[i]),
                "share_delivered": int(delivered[i]) / total,
                "tokens_held": int(self.held[i]),
                "tokens_dropped": {
                    reason: int(tokens[i]) for reason, tokens in self.dropped.items() if tokens[i]
                },
            }
            for i, name in enumerate(names)
        }


_ARRAYS = ("rows", "filtered", "lost", "skipped", "quarantined", "null", "made", "held")


def _lane(engine: Engine, lane: int, state: LaneState) -> _Counted:
    """Count a lane at a state of it."""
    shared = engine.topology.global_batch_size is not None or engine.cut_short
    if engine.finished and not shared:
        run = engine.lanes[lane]
        drawn = counted(run, engine.token_floor)
    else:
        # Ranks that share steps stop together, as a run does that is cut short: what a lane
        # drew after its last row depends on how far ahead it ran, so it does not count.
        drawn = counted_at(state, engine.token_floor)
        run = engine.lane_again(lane, state)
    placed, held, below, lost = (np.zeros(len(drawn.rows), np.int64) for _ in range(4))
    dropped: dict[str, NDArray[np.int64]] = {}
    for number, floor in enumerate(run.floors()):
        account = None if floor.below is None else floor.below.ledger.account
        if account is not None:
            lost += account.rows_dropped
        if number < engine.token_floor and account is not None:
            # Rows of this floor have no tokens: what their records say of those below counts.
            dropped[FUNCTION] = dropped.get(FUNCTION, 0) + account.tokens_dropped
            below += account.tokens_made
            held += account.tokens_held + floor.held_tokens(noted=True)
            noted = floor.placed_tokens(noted=True)
            held, placed = (held + noted, placed) if number else (held, placed + noted)
            continue
        if floor.carried is not None:
            below += floor.carried.made
        above = number > engine.token_floor  # something of what leaves counts as made there
        for reason, tokens in floor.dropped_tokens().items():
            dropped[reason] = dropped.get(reason, 0) + tokens
            below += tokens * above
        held += floor.held_tokens()
        if number:
            held += floor.placed_tokens()
            below += (floor.held_tokens() + floor.placed_tokens()) * above
        else:
            placed += floor.placed_tokens()
    if shared:  # then there is no last batch to be dropped
        held, placed = held + placed, np.zeros_like(placed)
    if engine.finished:
        dropped |= {"end_of_data": held, "drop_last": placed}
        held = placed = np.zeros_like(held)
    made = drawn.tokens + below
    return _Counted(
        rows=drawn.rows,
        filtered=drawn.filtered,
        lost=drawn.dropped + lost,
        skipped=drawn.skipped,
        quarantined=drawn.quarantined,
        null=drawn.null,
        made=made,
        held=held + placed,
        dropped=dropped,
    )


def _summed(values: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    sums = np.zeros(int(place.max()) + 1, np.int64)
    np.add.at(sums, place, values)
    return sums
