"""Distrusts every rule: a rewrite may change the cost of a plan and nothing that leaves it."""

from __future__ import annotations

from zephon.errors import OptimizerError
from zephon.planner.logical import Node
from zephon.planner.tree import source_first


def verify(rule: str, before: Node, after: Node) -> None:
    """Compare what two plans promise.

    Raises:
        OptimizerError: they differ; names the rule, the promise, and both values.
    """
    was, now = _promises(before), _promises(after)
    for promise, value in was.items():
        if now[promise] != value:
            raise OptimizerError(
                f"{rule}: the plan had {promise} {value!r} and now has {now[promise]!r}"
            )


def _promises(plan: Node) -> dict[str, object]:
    steps = source_first(plan)
    return {
        "top node": type(plan).__name__,
        "fields": plan.outputs(),
        "reordering steps": tuple(type(n).__name__ for n in steps if n.reorders),
        "steps that change row counts": tuple(
            type(n).__name__ for n in steps if not n.keeps_rows()
        ),
    }
