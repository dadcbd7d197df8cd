"""Where every token went, per component, at the delivered row: delivered, held, or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.engine import Engine
from zephon.exec.history import Arrivals, LaneState


def account(engine: Engine, components: Sequence[str]) -> dict[str, Any]:
    """Count rows and tokens of the lanes that this rank runs, up to what was handed out.

    Returns:
        Per component: rows_drawn, tokens_made (those that reached the policy), tokens_delivered,
        share_delivered (of all components' delivered tokens), tokens_held (drawn and to be
        delivered yet), and tokens_dropped by reason. With ranks that
        share lanes, delivered counts whole steps of a lane, whoever handed them out.
    """
    _, states = engine.state()
    rows = np.zeros(len(components), np.int64)
    made, placed, held = np.zeros_like(rows), np.zeros_like(rows), np.zeros_like(rows)
    dropped: dict[str, NDArray[np.int64]] = {}
    shared = engine.topology.global_batch_size is not None
    for lane, state in states.items():
        run = engine.lanes[lane]
        if engine.finished and not shared:
            drawn, tokens = run.rows_drawn, run.tokens_made
        else:
            # Ranks that share steps stop together: what a lane drew after its last step depends
            # on how far ahead it ran, so it does not count as drawn.
            drawn, tokens = _drawn(state, len(components))
            run = engine.lane_again(lane, state)
        rows += drawn
        made += tokens
        placed += run.placed_tokens()
        held += run.held_tokens()
        for reason, tokens in run.dropped_tokens().items():
            dropped[reason] = dropped.get(reason, 0) + tokens
    if shared:  # ranks that share steps have no last batch of their own
        held, placed = held + placed, np.zeros_like(placed)
    # A component may span datasets, which the engine counts apart.
    names = list(dict.fromkeys(components))
    place = np.array([names.index(name) for name in components])
    rows, made, held, placed = (_summed(each, place) for each in (rows, made, held, placed))
    dropped = {reason: _summed(tokens, place) for reason, tokens in dropped.items()}
    delivered = made - held - placed - sum(dropped.values())
    if engine.finished:
        dropped |= {"end_of_data": held, "drop_last": placed}
        held, placed = np.zeros_like(held), np.zeros_like(placed)
    total = max(int(delivered.sum()), 1)
    return {
        name: {
            "rows_drawn": int(rows[i]),
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


def _drawn(state: LaneState, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and tokens drawn per component up to the draw of the last delivered row."""
    log: Arrivals = state.log
    first_of_draw = np.diff(log.ordinal, prepend=-1) != 0
    counts = state.tick.counts
    rows = np.bincount(log.component[first_of_draw], minlength=components)
    tokens = np.bincount(log.component, weights=log.length, minlength=components)
    return counts.rows + rows, counts.tokens + tokens.astype(np.int64)
