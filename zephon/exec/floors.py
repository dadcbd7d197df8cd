"""A physical plan as floors: what runs below, between and above operators that see rows in order.

A plan without such operators has one floor.
"""

from __future__ import annotations

from dataclasses import dataclass

from zephon.ops import StageInfo
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.logical import CustomOp
from zephon.planner.tree import source_first


@dataclass(frozen=True, slots=True)
class Floor:
    """Segments and policies that follow each other.

    entry: the operator that gives the rows; None: the work source. layout: of the rows that leave.
    stage: of the plan, that runs it; the segments of the first floor are a stage each, from that
    one on. ops_below: operators of ``add_op`` on the floors below.
    """

    entry: physical.CallInOrder | None
    segments: tuple[physical.Segment, ...]
    policies: tuple[physical.PhysicalNode, ...]
    layout: physical.RowLayout
    stage: int = 0
    ops_below: int = 0

    def op_place(self, step: physical.CallInOrder | physical.CallGroups) -> StageInfo:
        """Say where an operator of ``add_op`` stands, as explain numbers the stages."""
        calls: list[physical.PhysicalNode | physical.Step] = (
            [] if self.entry is None else [self.entry]
        )
        stages = [self.stage] * len(calls)
        for number, segment in enumerate(self.segments):
            calls += segment.steps
            stages += [self.stage + (number if self.entry is None else 0)] * len(segment.steps)
        at = next(n for n, each in enumerate(calls) if each is step)
        return StageInfo(
            stage_index=stages[at],
            stage_name=f"stage {stages[at]}",
            op_index=self.ops_below + sum(map(_adds_op, calls[:at])),
        )

    def steps(self) -> tuple[physical.Step, ...]:
        """List the stateless steps, in order."""
        return tuple(step for segment in self.segments for step in segment.steps)


def floors_of(plan: Plan) -> list[Floor]:
    """Cut a plan at operators that see rows in order; the one that reads comes first."""
    floors: list[Floor] = []
    entry: physical.CallInOrder | None = None
    segments: list[physical.Segment] = []
    policies: list[physical.PhysicalNode] = []
    stage = ops = 0

    def end(layout: physical.RowLayout) -> None:
        nonlocal stage, ops
        floors.append(Floor(entry, tuple(segments), tuple(policies), layout, stage, ops))
        stage = stage or len(segments)
        ops += sum(map(_adds_op, [entry, *floors[-1].steps()]))

    for node in source_first(plan.physical):
        match node:
            case physical.Segment():
                segments.append(node)
            case physical.CallInOrder():
                end(node.layout)
                entry, segments, policies = node, [], []
            case physical.AssembleRows() | physical.AssembleBatch():
                end(node.layout)
            case physical.StackRows():
                pass
            case _:
                policies.append(node)
    return floors


def _adds_op(step: object) -> bool:
    return isinstance(step, physical.CallInOrder | physical.CallGroups) and isinstance(
        step.op, CustomOp
    )
