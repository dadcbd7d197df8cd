"""What becomes of bad rows of each component of a work source, as their datasets say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zephon.exec.block import QUARANTINED, SKIPPED
from zephon.io.row_policy import ANOTHER_POLICY, RAISES, RowPolicy

if TYPE_CHECKING:
    from zephon.exec.source_facts import SourceFacts
    from zephon.work.source import WorkSource

_REASONS = {"raise": 0, "skip": SKIPPED, "quarantine": QUARANTINED}


@dataclass(frozen=True, slots=True)
class RowPolicies:
    """The policy of each component, by its number; of one that is not told, bad rows raise."""

    policies: tuple[RowPolicy, ...] = ()

    @classmethod
    def of(cls, source: WorkSource | SourceFacts) -> RowPolicies:
        """Ask the datasets of a source."""
        return cls(tuple(component.dataset.policy for component in source.components))

    @property
    def lose_rows(self) -> bool:
        """Whether some row that is drawn may be left out."""
        return any(policy.loses_rows for policy in self.policies)

    @property
    def forgive(self) -> bool:
        """Whether some bad row is left out."""
        return any(policy.on_error != "raise" for policy in self.policies)

    def reason(self, component: int) -> int:
        """Say as what a bad row of a component is lost; 0: it ends the run."""
        return _REASONS[self._of(component).on_error]

    def null_text(self, component: int) -> str:
        """Say what a null means to a component where text is read."""
        return self._of(component).null_text

    def nulls(self) -> Sequence[str]:
        """List what nulls mean, of each component."""
        return [policy.null_text for policy in self.policies]

    def advice(self, component: int) -> str:
        """Say what else can be done about a bad row that ends a run, the end of a message."""
        known = component < len(self.policies)
        return f", or {ANOTHER_POLICY}" if known and self._of(component).on_error == "raise" else ""

    def _of(self, component: int) -> RowPolicy:
        known = component < len(self.policies)
        return self.policies[component] if known else RAISES
