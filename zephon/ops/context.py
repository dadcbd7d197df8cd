"""What an operator of the user is told: where it stands, and what it may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from zephon.errors import PlanError, nearest
from zephon.ops.accumulators import SourceExhaustion


@dataclass(frozen=True)
class StageInfo:
    """Where an operator stands in its pipeline; -1 and "" until it runs.

    op_index: which operator of its stage. collect_stats: times are measured.
    """

    stage_index: int = -1
    stage_name: str = ""
    op_index: int = -1
    collect_stats: bool = False


class OpContext(Mapping[str, Any]):
    """Services by name, read like a dict; ``setup`` and accumulator factories get one.

    Args:
        services: ``datasets_by_id`` and ``io_options``; and the functions
            ``get_component_id(name)``, ``get_component_name(id)``,
            ``get_chunk_mixture(lane, chunk)`` and ``get_source_exhaustion(lane)``, the last for
            accumulators.
        stage_info: where the operator stands.

    >>> OpContext({"io_options": None}).get("io_option", "none")
    'none'
    """

    __slots__ = ("_services", "stage_info")

    def __init__(
        self, services: Mapping[str, Any] | None = None, stage_info: StageInfo | None = None
    ) -> None:
        self._services = dict(services or {})
        self.stage_info = StageInfo() if stage_info is None else stage_info

    def __getitem__(self, key: str) -> Any:
        return self._services[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._services)

    def __len__(self) -> int:
        return len(self._services)

    def __repr__(self) -> str:
        return f"OpContext({', '.join(self._services) or 'no services'})"


def _no_mixture(lane: int, chunk: int) -> Mapping[int, float] | None:
    """Say that nobody knows."""
    return None


def _nothing_ended(lane: int) -> SourceExhaustion:
    return SourceExhaustion()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpServices:
    """What an engine offers to the operators that it runs.

    datasets_by_id: every dataset that is read. component_ids: by name. chunk_mixture: gives the
    weights in force, by component, at a lane and a chunk; None: nobody knows. source_exhaustion:
    says which components of a lane have ended.
    """

    datasets_by_id: Mapping[int, Any] = field(default_factory=dict)
    io_options: Any = None
    component_ids: Mapping[str, int] = field(default_factory=dict)
    chunk_mixture: Callable[[int, int], Mapping[int, float] | None] = _no_mixture
    source_exhaustion: Callable[[int], SourceExhaustion] = _nothing_ended

    def context(self, stage_info: StageInfo | None = None) -> OpContext:
        """Give the services under their public names."""
        return OpContext(
            {
                "datasets_by_id": dict(self.datasets_by_id),
                "io_options": self.io_options,
                "get_component_id": self.component_id,
                "get_component_name": self.component_name,
                "get_chunk_mixture": self.chunk_mixture,
                "get_source_exhaustion": self.source_exhaustion,
            },
            stage_info,
        )

    def component_id(self, name: str) -> int:
        """Give a component's number.

        Raises:
            PlanError: there is no component of this name.
        """
        if name not in self.component_ids:
            raise PlanError(
                f"get_component_id: no component {name!r}; {nearest(str(name), self.component_ids)}"
            )
        return self.component_ids[name]

    def component_name(self, component: int) -> str:
        """Give a component's name.

        Raises:
            PlanError: there is no component of this number.
        """
        for name, number in self.component_ids.items():
            if number == component:
                return name
        known = ", ".join(str(number) for number in sorted(self.component_ids.values()))
        raise PlanError(f"get_component_name: no component {component!r}; known are: {known}")
