"""What steps take beside numbers and words: so far, the groups of components that share rows."""

from typing import Literal, TypeAlias

from zephon.ops.domain_groups import DomainGroups

PackingAlgorithm: TypeAlias = Literal[
    "first_fit", "best_fit", "wrap", "best_fit_wrap", "best_fit_decreasing"
]

__all__ = ["DomainGroups", "PackingAlgorithm"]
