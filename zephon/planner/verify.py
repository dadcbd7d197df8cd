"""Distrusts every rule: a rewrite may change the cost of a plan and nothing that leaves it."""

from __future__ import annotations

from dataclasses import replace

from zephon.errors import OptimizerError
from zephon.planner.logical import Fetch, Node
from zephon.planner.physical import PhysicalNode, Segment
from zephon.planner.tree import columns_read, source_first


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
    reads = set(columns_read(steps))
    return {
        "columns that steps read": fetch.columns is None or reads <= set(fetch.columns),
        "whole rows that reach the top": fetch.payload
        or not all(node.keeps_payload() for node in steps[1:]),
        "top node": type(plan).__name__,
        "fields": plan.outputs(),
        "reordering steps": tuple(type(n).__name__ for n in steps if n.reorders),
        "steps that change row counts": tuple(
            type(n).__name__ for n in steps if not n.keeps_rows()
        ),
    }
