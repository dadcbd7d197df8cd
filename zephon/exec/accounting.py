"""Where every token went, per component, at the delivered row: delivered, held, or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.arrivals import Counts
from zephon.exec.engine import Engine
from zephon.exec.towers import counted, counted_at

FUNCTION = "function"
"""Why tokens are dropped that were packed: a function behind packing let go of their row."""


def account(engine: Engine, components: Sequence[str]) -> dict[str, Any]:
    """Count rows and tokens of the lanes that this rank runs, up to what was handed out.

    Returns:
        Per component: rows_drawn, and of these rows_filtered (by an expression) and rows_dropped
        (by a function, or by a filter behind one) that gave no document; tokens_made (those that
        reached the policy), tokens_delivered, share_delivered (of all components' delivered
        tokens), tokens_held (drawn and to be delivered yet), and tokens_dropped by reason. With
        ranks that share lanes, delivered counts whole steps of a lane, whoever handed them out.

        Where operators of the user see rows in order, tokens are those that the last of them made,
        with what never reached it; or, if its rows have none, those that were given to it.
    """
    _, states = engine.state()
    drawn = Counts.none(len(components))
    placed, held, below, lost_above = (np.zeros(len(components), np.int64) for _ in range(4))
    dropped: dict[str, NDArray[np.int64]] = {}
    shared = engine.topology.global_batch_size is not None or engine.cut_short
    for lane, state in states.items():
        run = engine.lanes[lane]
        if engine.finished and not shared:
            counts = counted(run, engine.token_floor)
        else:
            # Ranks that share steps stop together, as a run does that is cut short: what a lane
            # drew after its last row depends on how far ahead it ran, so it does not count.
            counts = counted_at(state, engine.token_floor)
            run = engine.lane_again(lane, state)
        drawn = drawn.plus(counts)
        for number, floor in enumerate(run.floors()):
            account = None if floor.below is None else floor.below.ledger.account
            if account is not None:
                lost_above += account.rows_dropped
            if number < engine.token_floor and account is not None:
                # Rows of this floor have no tokens: what their records say of those below counts.
                function = dropped.get(FUNCTION, np.zeros(len(components), np.int64))
                dropped[FUNCTION] = function + account.tokens_dropped
                below += account.tokens_made
                held += account.tokens_held + floor.held_tokens(noted=True)
                noted = floor.placed_tokens(noted=True)
                held, placed = (held + noted, placed) if number else (held, placed + noted)
                continue
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
    # A component may span datasets, which the engine counts apart.
    names = list(dict.fromkeys(components))
    place = np.array([names.index(name) for name in components])
    rows, made, filtered, lost = (_summed(each, place) for each in drawn)
    made += _summed(below, place)
    lost += _summed(lost_above, place)
    held, placed = _summed(held, place), _summed(placed, place)
    dropped = {reason: _summed(tokens, place) for reason, tokens in dropped.items()}
    delivered = made - held - placed - sum(dropped.values())
    if engine.finished:
        dropped |= {"end_of_data": held, "drop_last": placed}
        held, placed = np.zeros_like(held), np.zeros_like(placed)
    total = max(int(delivered.sum()), 1)
    return {
        name: {
            "rows_drawn": int(rows[i]),
            "rows_filtered": int(filtered[i]),
            "rows_dropped": int(lost[i]),
            "tokens_made": int(made[i]),
            "tokens_delivered": int(delivered[i]),
            "share_delivered": int(delivered[i]) / total,
            "tokens_held": int(held[i] + placed[i]),
            "tokens_dropped": {
                reason: int(tokens[i]) for reason, tokens in dropped.items() if tokens[i]
            },
        }
        for i, name in enumerate(names)
    }


def _summed(values: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    sums = np.zeros(int(place.max()) + 1, np.int64)
    np.add.at(sums, place, values)
    return sums
