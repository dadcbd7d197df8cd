"""From a node of the plan to the operator that runs."""

from __future__ import annotations

from zephon.exec.custom_steps.groups import GroupsStep
from zephon.exec.custom_steps.row_by_row import RowByRowStep
from zephon.exec.custom_steps.stateful import StatefulStep
from zephon.exec.custom_steps.step import CustomStep
from zephon.ops.context import OpServices, StageInfo
from zephon.planner.logical.custom import CustomOp, Stateful
from zephon.planner.logical.functions import RowStep


def custom_step(
    op: CustomOp | Stateful | RowStep,
    services: OpServices,
    stage_info: StageInfo | None = None,
) -> CustomStep:
    """Build what runs an operator in the order of each lane.

    Args:
        op: the node of ``physical.CallInOrder``.
        services: what operators may ask for.
        stage_info: where the operator stands; None: it is not told.
    """
    step: CustomStep
    match op:
        case CustomOp():
            step = GroupsStep(op, services, stage_info)
        case Stateful():
            step = StatefulStep(op)
        case _:
            step = RowByRowStep(op)
    step.datasets = services.datasets_by_id
    return step
