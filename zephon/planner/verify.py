"""Distrusts every rule: a rewrite may change the cost of a plan and nothing that leaves it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace

from zephon.column_steps import ColumnStep, Expression, changed_by
from zephon.errors import OptimizerError
from zephon.planner.dataflow import flow_of
from zephon.planner.logical import Columns, Fetch, MakesTokens, MapTransform, Node
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
        "steps that see no whole rows": _without_rows(steps),
        "top node": next(  # a filter that is on top may move down
            (type(n).__name__ for n in reversed(steps) if not isinstance(n, Columns)), ""
        ),
        "fields": tuple((f.name, f.kind if f.type is None else str(f.type)) for f in plan.fields()),
        "steps": tuple(_meaning(n) for n in steps if not isinstance(n, Columns | MapTransform)),
        "column steps": tuple(step for step in _column_steps(steps) if step.kind != "filter"),
        "filters": _filters(steps),
        "functions": tuple(f for n in steps if isinstance(n, MapTransform) for f in n.functions),
    }


def _without_rows(steps: Sequence[Node]) -> int:
    """Count the steps that look at rows, and the top, where payload was dropped below.

    What an operator gives are whole rows again.
    """
    found, kept = 0, True
    for node in steps:
        found += node.sees_rows() and not kept
        kept = node.takes_rows or (kept and node.keeps_payload())
    return found + (not kept)


def _meaning(node: Node) -> tuple[object, ...]:
    """Give what decides the rows that leave a step; rules may change the rest."""
    names = {f.name for f in fields(node)} - node.how - {"input", "preserve_upstream_payload"}
    return (type(node).__name__, *((name, getattr(node, name)) for name in sorted(names)))


def _column_steps(steps: Sequence[Node]) -> list[ColumnStep]:
    return [step for node in steps if isinstance(node, Columns) for step in node.steps]


def _filters(steps: Sequence[Node]) -> Counter[tuple[Expression, tuple[int, ...]]]:
    """Count each predicate, with what made the fields that it looks at.

    That is the number of a step among those that change fields, or 0 for the source; so a predicate
    may move past a step, but not past one that changes what it looks at.
    """
    found: Counter[tuple[Expression, tuple[int, ...]]] = Counter()
    changed: dict[str, int] = {}
    number, others = 0, 0
    for node in steps:
        if isinstance(node, Fetch):
            found.update((each, (0,) * len(each.reads)) for each in node.predicates)
        if isinstance(node, Columns):
            for step in node.steps:
                if step.kind == "filter":
                    for each in step.expressions:
                        found[each, tuple(changed.get(n, others) for n in each.reads)] += 1
                    continue
                number += 1
                changed |= dict.fromkeys(changed_by(step), number)
        elif node.takes_rows:
            number += len(node.functions) if isinstance(node, MapTransform) else 1
            others, changed = number, {}
        elif isinstance(node, MakesTokens):
            number += 1
            changed |= dict.fromkeys(node.token_fields(), number)
    return found
