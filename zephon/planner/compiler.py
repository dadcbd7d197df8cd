"""Compiling is four steps in one function: rewrites, lower, fusions, stages; rules are checked."""

from __future__ import annotations

from dataclasses import dataclass

from zephon.planner.fusions import FUSIONS, Fusion
from zephon.planner.logical import Node
from zephon.planner.lower import lower
from zephon.planner.physical import PhysicalNode
from zephon.planner.rewrites import REWRITES, Rule
from zephon.planner.stages import Stage, make_stages
from zephon.planner.verify import verify, verify_physical

BARRIER_ROWS = 8 * 16_384
"""Rows between barriers, where nobody says how many: eight chunks of the usual size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compiled pipeline, with each form that it went through and the rules that changed it."""

    logical: Node
    optimized: Node
    rewrites: tuple[str, ...]
    physical: PhysicalNode
    fusions: tuple[str, ...]
    stages: tuple[Stage, ...]


def compile_plan(
    logical: Node,
    *,
    barrier_rows: int = BARRIER_ROWS,
    rewrites: tuple[Rule, ...] = REWRITES,
    fusions: tuple[Fusion, ...] = FUSIONS,
) -> Plan:
    """Turn the chain that the calls built into one that runs.

    Args:
        logical: the chain.
        barrier_rows: rows after which an operator that remembers begins anew, where it cannot write
            down what it remembers.
        rewrites, fusions: the rules.

    Raises:
        OptimizerError: a rewrite or a fusion changed what the plan promises; names the rule.
    """
    optimized, fired = logical, []
    for rule in rewrites:
        new = rule(optimized)
        if new is not optimized:
            verify(rule.__name__, optimized, new)
            fired.append(rule.__name__)
            optimized = new
    physical, fused = lower(optimized, barrier_rows=barrier_rows), []
    for fusion in fusions:
        joined = fusion(physical)
        if joined is not physical:
            verify_physical(fusion.__name__, physical, joined)
            fused.append(fusion.__name__)
            physical = joined
    return Plan(
        logical=logical,
        optimized=optimized,
        rewrites=tuple(fired),
        physical=physical,
        fusions=tuple(fused),
        stages=make_stages(physical),
    )
