"""All lanes of a mixture: what they share, and each one made when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon import seeds
from zephon.errors import ExecutionError, PlanError
from zephon.work.arguments import CALL
from zephon.work.counted import COUNTED_BY, unit_of
from zephon.work.course import Courses
from zephon.work.ends import Base, Bounds, stretches
from zephon.work.lane import MixtureLane
from zephon.work.lane_stream import LaneStream
from zephon.work.mixture_plan import MixturePlan, Reading
from zephon.work.phases import lane_phases
from zephon.work.schedule import MixtureSchedule, StepSize
from zephon.work.strand import Member, Strand
from zephon.work.token_lane import TokenLane


class Lanes:
    """The lanes of a mixture.

    Args:
        plan: the mixture.
        count: how many lanes there are.
        step: what a step of the run is, where the schedule counts steps.
        costs: estimated tokens of a mean row of each dataset, where weights count those.
        components: how many the source has; None: as many as the plan.

    Raises:
        ExecutionError: costs are not known yet, or nobody said what a step is.
        PlanError: a step is counted in another unit than the mixture.
    """

    __slots__ = ("_components", "_costs", "_courses", "_members", "_phases", "_plan", "count")

    def __init__(
        self,
        plan: MixturePlan,
        count: int,
        step: StepSize | None,
        costs: Mapping[str, float] | None,
        components: int | None = None,
    ) -> None:
        self.count = count
        self._components = len(plan.components) if components is None else components
        self._plan = plan
        self._costs = costs
        self._courses = _courses(plan, count, step, costs)
        self._phases = _phases(plan, count)
        self._members = tuple(
            Member(
                component=each.component.dataset_id,
                name=each.component.name,
                dealt=plan.settings.dealt(
                    each.component, each.rules, each.passes, each.former, count
                ),
            )
            for each in plan.reading
        )

    def stream(self, lane: int, base: Base | None = None) -> MixtureLane:
        """Make a lane whose time counts draws, or tokens by an estimate.

        Args:
            lane: which.
            base: where it goes on, its ``drawn`` of shape [components of the source]; None: at
                its beginning.
        """
        if base is not None:
            base = replace(base, drawn=base.drawn[[m.component for m in self._members]])
        return MixtureLane(
            lane=lane,
            members=self._members,
            stretches=stretches(self._courses, self._phases[lane], self._bounds(lane), base),
            components=self._components,
        )

    def token_lane(self, lane: int) -> TokenLane:
        """Make the parts of a lane whose time counts tokens."""
        plan = self._plan
        size = self._components
        strands: list[LaneStream] = [Strand(lane, None, 0)] * size
        must: list[int | None] = [None] * size
        at_end = ["finish"] * size
        budgets: list[float | None] = [None] * size
        bounds = self._bounds(lane)
        for each, member, bound in zip(plan.reading, self._members, bounds, strict=True):
            place, budget = each.component.dataset_id, each.rules.budget
            ends = [end for end in (bound.finish, bound.stop) if end is not None]
            strands[place] = Strand(lane, member, min(ends, default=None))
            must[place] = bound.must
            at_end[place] = "stop" if bound.finish is None else "finish"
            budgets[place] = None if budget is None else budget.count / self.count
        places = [each.component.dataset_id for each in plan.reading]
        return TokenLane(
            lane=lane,
            strands=tuple(strands),
            courses=self._courses.among(places, size),
            must_draw=tuple(must),
            at_end=tuple(at_end),
            budgets=tuple(budgets),
        )

    def passes_begun(self, name: str, drawn: Sequence[int]) -> int:
        """Count the passes of a component that some lane has begun.

        Args:
            name: of the component.
            drawn: rows of it that each lane has drawn.
        """
        dealt = next(member.dealt for member in self._members if member.name == name)
        begun = [dealt.pass_of(lane, rows - 1) for lane, rows in enumerate(drawn) if rows]
        return max(begun, default=-1) + 1

    def _bounds(self, lane: int) -> tuple[Bounds, ...]:
        return tuple(
            each.rules.bounds(member.dealt, lane, self._budget_rows(each))
            for member, each in zip(self._members, self._plan.reading, strict=True)
        )

    def _budget_rows(self, each: Reading) -> int | None:
        """Count the rows that a budget allows; None where tokens decide as they come."""
        if each.rules.budget is None or self._plan.counted == "tokens":
            return None
        cost = 1.0 if self._costs is None else self._costs[each.component.name]
        return math.ceil(each.rules.budget.count / cost)


def _phases(plan: MixturePlan, lanes: int) -> NDArray[np.float64]:
    weights = [each.component.weight for each in plan.reading]
    names = [each.component.name for each in plan.reading]
    keys = [seeds.key(plan.settings.seed, name, "phase") for name in names]
    return lane_phases(weights, keys, lanes)


def _courses(
    plan: MixturePlan, lanes: int, step: StepSize | None, costs: Mapping[str, float] | None
) -> Courses:
    """Give the courses of what is read, over one lane's time."""
    names: Sequence[str] = [each.component.name for each in plan.reading]
    each_cost = np.ones(len(names))
    if plan.counted == "estimated tokens":
        if costs is None:
            raise ExecutionError(
                f"{CALL}: the tokens of a mean row must be estimated before the first draw; "
                "call prime(), or run the source in a Pipeline"
            )
        each_cost = np.array([costs[name] for name in names])
    if plan.schedule is None:
        shares = [each.component.weight for each in plan.reading]
        return Courses.constant(shares, each_cost.tolist())
    return plan.schedule.courses(
        [each.name for each in plan.components],
        names,
        plan.mixture,
        scale=_schedule_unit(plan, plan.schedule, step) / lanes,
        costs=each_cost,
    )


def _schedule_unit(plan: MixturePlan, schedule: MixtureSchedule, step: StepSize | None) -> float:
    """Give the samples or tokens of the whole run in one unit of the schedule."""
    if schedule.unit != "steps":
        return 1.0
    unit = unit_of(plan.counted)
    if step is None:
        raise ExecutionError(
            f"{CALL}: schedule counts unit='steps', and no global_batch_size says how large a "
            "step is; set options(global_batch_size=...), or let the schedule count "
            f"{unit!r}. Where rows are packed, a step is so many tokens, which the mixture must "
            "count too: mixture_unit='tokens'"
        )
    if step.unit != unit:
        raise PlanError(
            f"{CALL}: schedule counts unit='steps', a step of this plan is {step.count:,} "
            f"{step.unit}, and the mixture counts {plan.counted} "
            f"({COUNTED_BY[plan.counted]}); let the schedule count {unit!r}, or the mixture "
            f"{step.unit}"
        )
    return float(step.count)
