"""What to train on and in which order: references, no I/O.

Read in this order: ``source`` (what the engine asks), ``static_mixture`` (the datasets and their
weights), ``lane`` (draws by position), ``interleave`` (whose turn it is), ``deal`` (which lane
takes which part of a pass), ``passes``, ``order`` and ``feistel`` (which row lies there), ``refs``
(the answer).
It may import seeds and errors, and io by name only.
"""

from zephon.work.mixture import MixtureSpec
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource

__all__ = ["MixtureSpec", "StaticMixtureWorkSource", "WorkSource"]
