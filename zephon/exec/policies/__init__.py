"""Decisions on integers, one policy a file: lengths in, places out. They see no token.

Read ``policy`` (what a policy promises), then ``each`` and ``wrap``. ``token_merge`` stands before
them where weights count tokens: it decides in which order documents come (``due_documents``: when
each is due).
"""

from zephon.exec.policies.each import Each
from zephon.exec.policies.policy import Pieces, Placements, Policy
from zephon.exec.policies.wrap import Wrap

__all__ = ["Each", "Pieces", "Placements", "Policy", "Wrap"]
