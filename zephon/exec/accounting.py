"""Where every token went, per component, at the delivered row: delivered, held, or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zephon.exec.engine import Engine
from zephon.exec.history import Arrivals, LaneState


def account(engine: Engine, components: Sequence[str]) -> dict[str, Any]:
    """Count rows and tokens of the lanes that this rank runs, up to what was handed out.

    Returns:
        Per component: rows_drawn, tokens_made (those that reached the policy), tokens_delivered,
        tokens_held (drawn and to be delivered yet), and tokens_dropped by reason. With ranks that
        share lanes, delivered counts whole steps of a lane, whoever handed them out.
    """
    _, states = engine.state()
    rows = np.zeros(len(components), np.int64)
    made, held = np.zeros_like(rows), np.zeros_like(rows)
    for lane, state in states.items():
        run = engine.lanes[lane]
        if engine.finished and engine.topology.global_batch_size is None:
            drawn, tokens = run.rows_drawn, run.tokens_made
        else:
            # Ranks that share steps stop together: what a lane drew after its last step depends
            # on how far ahead it ran, so it does not count as drawn.
            drawn, tokens = _drawn(state, len(components))
            run = engine.lane_at(lane, state)
        rows += drawn
        made += tokens
        held += run.tokens_not_taken()
    dropped = held if engine.finished else np.zeros_like(held)
    waiting = held - dropped
    return {
        name: {
            "rows_drawn": int(rows[i]),
            "tokens_made": int(made[i]),
            "tokens_delivered": int(made[i] - held[i]),
            "tokens_held": int(waiting[i]),
            "tokens_dropped": {"end_of_data": int(dropped[i])} if dropped[i] else {},
        }
        for i, name in enumerate(components)
    }


def _drawn(state: LaneState, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and tokens drawn per component up to the draw of the last delivered row."""
    log: Arrivals = state.log
    first_of_draw = np.diff(log.ordinal, prepend=-1) != 0
    counts = state.tick.counts
    rows = np.bincount(log.component[first_of_draw], minlength=components)
    tokens = np.bincount(log.component, weights=log.length, minlength=components)
    return counts.rows + rows, counts.tokens + tokens.astype(np.int64)
