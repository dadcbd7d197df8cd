"""Stages: what runs beside what. The last room that hears of ``parallelism``."""

from __future__ import annotations

from dataclasses import dataclass

from zephon.planner.physical import CallInOrder, PhysicalNode, Segment
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
    """Give each segment that begins with reading a stage of its own, and one to all the rest.

    What follows an operator that sees rows in order runs where that runs, on one thread.
    """
    chain = source_first(physical)
    first = next((n for n, node in enumerate(chain) if isinstance(node, CallInOrder)), len(chain))
    segments = [node for node in chain[:first] if isinstance(node, Segment)]
    rest = tuple(node for node in chain if node not in segments)
    stages = [
        Stage(index=i, nodes=(node,), parallelism=node.parallelism)
        for i, node in enumerate(segments)
    ]
    return (*stages, Stage(index=len(stages), nodes=rest, parallelism=1))
