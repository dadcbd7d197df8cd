"""Distrusts every rule: a rewrite may change the cost of a plan and nothing that leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zephon.errors import OptimizerError
from zephon.expressions import Expression
from zephon.planner.dataflow import flow_of
from zephon.planner.logical import Columns, Fetch, MapTransform, Node
from zephon.planner.physical import PhysicalNode, Segment
from zephon.planner.sections import sections_of
from zephon.planner.tree import source_first


def verify(rule: str, before: Node, after: Node) -> None:
    """Compare what two plans promise.

    Raises:
        OptimizerError: they differ; names the rule, the promise, and both values.
    """
    _compare(rule, _promises(before), _promises(after))


def verify_physical(fusion: str, before: PhysicalNode, after: PhysicalNode) -> None:
    """Compare what two physical plans run, whatever runs together.

    Raises:
        OptimizerError: they differ; names the fusion, the promise, and both values.
    """
    _compare(fusion, _work(before), _work(after))


def _compare(rule: str, was: dict[str, object], now: dict[str, object]) -> None:
    for promise, value in was.items():
        if now[promise] != value:
            raise OptimizerError(
                f"{rule}: the plan had {promise} {value!r} and now has {now[promise]!r}"
            )


def _work(plan: PhysicalNode) -> dict[str, object]:
    nodes = source_first(plan)
    kept = [n for n in nodes if not isinstance(n, Segment)]
    fields = ("layout", "microbatch_size", "drop_last")
    policies = [n for n in kept if not any(hasattr(n, name) for name in fields)]
    return {
        "steps": [step for n in nodes if isinstance(n, Segment) for step in n.steps],
        "policies": [replace(node, input=None) for node in policies],
        **{name: [getattr(n, name) for n in kept if hasattr(n, name)] for name in fields},
    }


def _promises(plan: Node) -> dict[str, object]:
    steps = source_first(plan)
    fetch = next(node for node in steps if isinstance(node, Fetch))
    flow = flow_of(sections_of(steps)[0].steps)
    reads, frame = set(flow.columns), set(flow.frame)
    return {
        "columns that steps read": fetch.columns is None or reads <= set(fetch.columns),
        "columns for expressions": fetch.columns is None or frame <= set(fetch.frame),
        "whole rows that steps need": fetch.payload or not flow.rows,
        "top node": next(  # a filter that is on top may move down
            (type(n).__name__ for n in reversed(steps) if not isinstance(n, Columns)), ""
        ),
        "fields": plan.outputs(),
        "reordering steps": tuple(type(n).__name__ for n in steps if n.reorders),
        "steps that change row counts": tuple(
            type(n).__name__
            for n in steps
            if not n.keeps_rows() and not isinstance(n, Fetch | Columns | MapTransform)
        ),
        "filters": frozenset((*fetch.predicates, *_filters(steps))),
        "functions": tuple(f for n in steps if isinstance(n, MapTransform) for f in n.functions),
    }


def _filters(steps: Sequence[Node]) -> list[Expression]:
    column_steps = [step for n in steps if isinstance(n, Columns) for step in n.steps]
    return [e for step in column_steps if step.kind == "filter" for e in step.expressions]
