"""A physical plan as floors: what runs below, between and above operators that see rows in order.

A plan without such operators has one floor.
"""

from __future__ import annotations

from dataclasses import dataclass

from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.tree import source_first


@dataclass(frozen=True, slots=True)
class Floor:
    """Segments and policies that follow each other.

    entry: the operator that gives the rows; None: the work source. layout: of the rows that leave.
    """

    entry: physical.CallInOrder | None
    segments: tuple[physical.Segment, ...]
    policies: tuple[physical.PhysicalNode, ...]
    layout: physical.RowLayout

    def steps(self) -> tuple[physical.Step, ...]:
        """List the stateless steps, in order."""
        return tuple(step for segment in self.segments for step in segment.steps)


def floors_of(plan: Plan) -> list[Floor]:
    """Cut a plan at operators that see rows in order; the one that reads comes first."""
    floors: list[Floor] = []
    entry: physical.CallInOrder | None = None
    segments: list[physical.Segment] = []
    policies: list[physical.PhysicalNode] = []
    for node in source_first(plan.physical):
        match node:
            case physical.Segment():
                segments.append(node)
            case physical.CallInOrder():
                floors.append(Floor(entry, tuple(segments), tuple(policies), node.layout))
                entry, segments, policies = node, [], []
            case physical.AssembleRows() | physical.AssembleBatch():
                floors.append(Floor(entry, tuple(segments), tuple(policies), node.layout))
            case physical.StackRows():
                pass
            case _:
                policies.append(node)
    return floors
