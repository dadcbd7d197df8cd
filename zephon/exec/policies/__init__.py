"""Decisions on integers, one policy a file: lengths in, places out. They see no token.

Read ``policy`` (what a policy promises), ``chain`` (how they follow each other), then the packers:
``wrap`` cuts one stream; ``first_fit`` and ``best_fit`` (``open_bins``) keep
documents whole in rows that stay open; ``best_fit_wrap`` and ``best_fit_decreasing`` choose from a
pool (``candidates``); ``domains`` packs each domain by itself. What reorders: ``reservoir`` and
``block_shuffle``, ``windows`` before a packer, ``ensure_mixture`` (``contributions``: what it
weighs; ``mixing``: what is owed), ``apart`` between a shuffle of rows and a packer.
``token_merge`` stands before them where weights count tokens: it decides in which order documents
come (``due_documents``: when each is due).
"""

from zephon.exec.policies.apart import Apart
from zephon.exec.policies.best_fit import BestFit
from zephon.exec.policies.best_fit_decreasing import BestFitDecreasing
from zephon.exec.policies.best_fit_wrap import BestFitWrap
from zephon.exec.policies.block_shuffle import BlockShuffle
from zephon.exec.policies.chain import Chain
from zephon.exec.policies.domains import Domains
from zephon.exec.policies.ensure_mixture import EnsureMixture
from zephon.exec.policies.first_fit import FirstFit
from zephon.exec.policies.policy import AT_END, NO_UNITS, Documents, Held, Policy, Units
from zephon.exec.policies.reservoir import Reservoir
from zephon.exec.policies.together import Together
from zephon.exec.policies.windows import Windows
from zephon.exec.policies.wrap import Wrap

__all__ = [
    "AT_END",
    "NO_UNITS",
    "Apart",
    "BestFit",
    "BestFitDecreasing",
    "BestFitWrap",
    "BlockShuffle",
    "Chain",
    "Documents",
    "Domains",
    "EnsureMixture",
    "FirstFit",
    "Held",
    "Policy",
    "Reservoir",
    "Together",
    "Units",
    "Windows",
    "Wrap",
]
