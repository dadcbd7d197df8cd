"""The splits of one source row travel as one unit, where a shuffle stands before the split."""

from __future__ import annotations

import numpy as np

from zephon.exec.policies.policy import Documents, Held, Policy, Units


class Together(Policy[None]):
    """Makes one unit of all documents of a source row; they always come together."""

    joins = True

    def make_state(self, lane: int) -> None:
        """Return the only state there is."""
        return

    def push(self, state: None, units: Units, documents: Documents) -> Units:
        """Join documents up to the last part of their row; see ``Policy.push``."""
        last = np.flatnonzero(documents.last_parts(units.seq))
        return Units(
            splits=np.concatenate([[0], last + 1]),
            seq=units.seq,
            start=units.start,
            length=units.length,
            trigger=units.trigger[last],
        )

    def held(self, state: None) -> Held:
        """Nothing is held."""
        return Held()

    def resume(self, lane: int, held: Held, documents: Documents) -> None:
        """Return the only state there is."""
        return
