"""Stages: what runs beside what. The last room that hears of ``parallelism``."""

from __future__ import annotations

from dataclasses import dataclass

from zephon.planner.physical import PhysicalNode, Segment
from zephon.planner.tree import source_first


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Physical nodes that one pool or one thread runs.

    parallelism: tasks that may run at once, 1 for the stage that decides and assembles.
    """

    index: int
    nodes: tuple[PhysicalNode, ...]
    parallelism: int

    @property
    def is_segment(self) -> bool:
        """Whether workers run this stage."""
        return isinstance(self.nodes[0], Segment)


def make_stages(physical: PhysicalNode) -> tuple[Stage, ...]:
    """Give each segment a stage of its own, and the policy with all that follows the last one."""
    chain = source_first(physical)
    segments = [node for node in chain if isinstance(node, Segment)]
    rest = tuple(node for node in chain if not isinstance(node, Segment))
    stages = [
        Stage(index=i, nodes=(node,), parallelism=node.parallelism)
        for i, node in enumerate(segments)
    ]
    return (*stages, Stage(index=len(stages), nodes=rest, parallelism=1))
