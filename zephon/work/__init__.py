"""What to train on and in which order: references, no I/O.

Read in this order: ``source`` (what the engine asks), ``static_mixture`` and ``mixture_plan``
(the datasets, their weights and rules), ``lanes`` and ``lane`` (draws by position), ``course`` and
``interleave`` (whose turn it is), ``ends`` (when a dataset or a lane ends), ``order`` (which lane
takes which part of a pass, and which row lies there), ``refs`` (the answer). A source of one's own
goes the other way round: ``chunks`` (what it hands out, and draws by position from that).
It may import seeds and errors, and io by name only.
"""

from zephon.work.budget import samples, tokens
from zephon.work.chunks.chunk import WorkChunk
from zephon.work.chunks.read_config import ComponentOrder, MixtureReadConfig, MixtureReadMode
from zephon.work.mixture import MixtureSpec
from zephon.work.schedule import MixtureSchedule
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource
from zephon.work.token_estimation import TokenEstimation

__all__ = [
    "ComponentOrder",
    "MixtureReadConfig",
    "MixtureReadMode",
    "MixtureSchedule",
    "MixtureSpec",
    "StaticMixtureWorkSource",
    "TokenEstimation",
    "WorkChunk",
    "WorkSource",
    "samples",
    "tokens",
]
