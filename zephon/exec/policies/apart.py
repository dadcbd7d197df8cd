"""Each piece becomes a unit of its own: what stands between a shuffle of source rows and a packer.

Where a shuffle comes before a tokenize that splits, the splits of a row travel through it together.
Packers place single documents, so they are taken apart again, in order.
"""

from __future__ import annotations

import numpy as np

from zephon.exec.policies.policy import Documents, Held, Policy, Units


class Apart(Policy[None]):
    """Makes a unit of each piece, let go by what let its unit go."""

    joins = False

    def make_state(self, lane: int) -> None:
        """Return the only state there is."""
        return

    def push(self, state: None, units: Units, documents: Documents) -> Units:
        """Take units apart; see ``Policy.push``."""
        if len(units.seq) == len(units):
            return units
        return Units.single(
            seq=units.seq,
            start=units.start,
            length=units.length,
            trigger=np.repeat(units.trigger, np.diff(units.splits)),
        )

    def held(self, state: None) -> Held:
        """Nothing is held."""
        return Held()

    def resume(self, lane: int, held: Held, documents: Documents) -> None:
        """Return the only state there is."""
        return
