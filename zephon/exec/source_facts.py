"""A work source as worker processes know it: what is drawn from, without what draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zephon.work.component import Component
from zephon.work.source import WorkSource


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What building a segment asks of a work source, without what draws: that stays here.

    A work source of the user may hold anything, also what no pickle takes.
    """

    components: tuple[Component, ...]
    mixture_unit: str
    ids: tuple[tuple[str, int], ...]
    chunk_size: int | None

    @classmethod
    def of(cls, source: WorkSource | SourceFacts) -> SourceFacts:
        """Take the facts down."""
        ids = tuple(source.component_ids().items())
        hint = source.chunk_size_hint()
        return cls(tuple(source.components), source.mixture_unit, ids, hint)

    def component_ids(self) -> Mapping[str, int]:
        """Give the public id of each component, by name."""
        return dict(self.ids)

    def chunk_size_hint(self) -> int | None:
        """Give the draws that a chunk id counts; None: the source does not say."""
        return self.chunk_size
