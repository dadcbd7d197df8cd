"""The only printer of plans: logical, optimized, physical, then the stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TypeVar

from zephon.column_steps import ColumnStep, Expression
from zephon.io.fields import LOOKED_AT, Column
from zephon.planner.compiler import Plan
from zephon.planner.logical import (
    Columns,
    Fetch,
    Node,
    PackFlat,
    ReadComponent,
    RowFunction,
    TokenizeChat,
)
from zephon.planner.logical.pack import Pack
from zephon.planner.physical import ComputeColumns, PhysicalNode, Segment
from zephon.planner.tree import top_first

N = TypeVar("N")
_HIDDEN = {
    "input",
    "components",
    "steps",
    "tokenizer",
    "passed_over",
    "told_by",
    "without",
    "stage",
    "aligned_kinds",
    "max_document_call",
    "templates",
    "special_texts",
    "template_digest",
}
_OFF = (None, False, (), "none")
_SHOWN_PASSED_OVER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What ``explain`` says of the run besides the plan.

    workers: threads for segments. queue: batches ready ahead of the caller. memory_budget:
    bytes. mixture: lines about order, weights and ends. lanes: lines about who reads what.
    notes: what a trainer should know (tokenizer back end, unused options, advice). reading: lines
    about row groups in memory and in the spill.
    """

    runner: str
    workers: int
    queue: int
    memory_budget: int
    lanes: tuple[str, ...]
    notes: tuple[str, ...]
    mixture: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()


def explain_text(plan: Plan, facts: RunFacts) -> str:
    """Print a plan for people."""
    lines = ["Logical plan", *_chain(top_first(plan.logical), _logical_line)]
    lines += ["", f"Optimized plan ({_rules(plan.rewrites)})"]
    lines += _chain(top_first(plan.optimized), _logical_line)
    lines += ["", f"Physical plan ({_rules(plan.fusions)})"]
    lines += _chain(top_first(plan.physical), _physical_lines)
    lines += ["", "Data", *_data_lines(plan)]
    if facts.mixture:
        lines += ["", "Mixture", *(f"  {line}" for line in facts.mixture)]
    lines += ["", "Lanes and ranks", *(f"  {line}" for line in facts.lanes)]
    if facts.notes:
        lines += ["", "Notes", *(f"  {note}" for note in facts.notes)]
    lines += ["", "Stages", *_stage_lines(plan, facts)]
    return "\n".join(lines)


def _rules(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "no rule applied"


def _chain(nodes: Iterable[N], show: Callable[[N], list[str]]) -> list[str]:
    lines = []
    for depth, node in enumerate(nodes):
        first, *more = show(node)
        lines.append("  " + "   " * depth + ("└─ " if depth else "") + first)
        lines += ["  " + "   " * (depth + 1) + "   " + line for line in more]
    return lines


def _logical_line(node: Node) -> list[str]:
    if isinstance(node, Fetch):
        shown = "all" if node.columns is None else _columns(node.columns, payload=node.payload)
        mix = ", ".join(
            c.name if c.share is None else f"{c.name} {c.share:.4g}" for c in node.components
        )
        if node.decided_by is not None:
            mix += f": decided by {node.decided_by}"
        more = f", frame={_columns(node.frame, payload=False)}" if node.frame else ""
        if node.predicates:
            more += f", predicates={_value(node.predicates)}"
        if node.limit is not None:
            more += f", limit={node.limit}"
        return [f"Fetch(columns={shown}{more}, mixture=[{mix}])"]
    return [_call(node)]


def _physical_lines(node: PhysicalNode) -> list[str]:
    if not isinstance(node, Segment):
        return [_call(node)]
    return ["Segment", *(f"{number}. {_call(s)}" for number, s in enumerate(node.steps, 1))]


def _call(node: object) -> str:
    """Show a node as a call, without the fields that are at their default, off, or empty."""
    if isinstance(node, Columns):
        return "; ".join(map(str, node.steps))
    shown = []
    for f in fields(node):  # type: ignore[arg-type]  # any dataclass: node, step or layout
        value = getattr(node, f.name)
        usual = (f.default,) if f.default is not MISSING else _OFF
        hidden = f.name in _HIDDEN and not isinstance(node, ComputeColumns)
        if hidden or (
            f.name != "columns" and any(value is each or value == each for each in usual)
        ):
            continue
        if f.name == "columns":
            shown.append(f"columns={_columns(value, payload=getattr(node, 'payload', False))}")
        elif f.name != "payload":
            shown.append(f"{f.name}={_value(value)}")
    return f"{type(node).__name__}({', '.join(shown)})"


def _value(value: object) -> str:
    """Show one argument."""
    if isinstance(value, RowFunction):
        kept = "" if value.drop_none else ", drop_none=False"
        return f"{_value(value.function)}{kept}"
    if isinstance(value, ColumnStep | Expression):
        return str(value)
    if isinstance(value, tuple) and value and isinstance(value[0], Column):
        return _columns(value, payload=False)
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        return "[" + ", ".join(map(_value, value)) + "]"
    if is_dataclass(value) and not isinstance(value, type):
        return _call(value)
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return repr(value) if _is_plain(value) else type(value).__name__


def _is_plain(value: object) -> bool:
    """Say whether showing a value tells nothing but what a call said."""
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float | bool)


def _columns(columns: tuple, *, payload: bool) -> str:
    names = [f"{c.path}: {c.kind if c.values is None else c.values}" for c in columns]
    return "[" + ", ".join([*names, *(["whole rows"] if payload else [])]) + "]"


def _data_lines(plan: Plan) -> list[str]:
    fetch = next(n for n in top_first(plan.optimized) if isinstance(n, Fetch))
    lines = []
    for component in fetch.components:
        lines += [f"  {_component(component, fetch.decided_by)}"]
        lines += [f"    told of by {component.told_by}"] if component.told_by else []
        shown = component.passed_over[:_SHOWN_PASSED_OVER]
        lines += [f"    passed over {item}" for item in shown]
        if len(component.passed_over) > len(shown):
            lines.append(f"    passed over {len(component.passed_over) - len(shown)} more")
    for node in top_first(plan.logical):
        if isinstance(node, Pack) and node.reads() and not _all_fields_known(fetch):
            lines.append(
                f"  {node.call} finds fields in the first {LOOKED_AT} rows of a dataset; "
                "aligned_fields may name others, with their type"
            )
        if isinstance(node, Pack) and node.aligned:
            names = ", ".join(f"{column.path} ({column.kind})" for column in node.aligned)
            lines.append(f"  {node.call} packs with {node.tokens_field}: {names}")
        if isinstance(node, TokenizeChat):
            lines.append(f"  tokenize_chat {_chat(node)}")
        if isinstance(node, PackFlat):
            lines += [f"  pack_flat leaves out {name}: {why}" for name, why in node.left_out()]
    return lines


def _chat(node: TokenizeChat) -> str:
    """Say what a chat template is, without its text, and what it is shown."""
    names = " or ".join(repr(name) for name, _ in node.templates)
    if not names:
        return "joins contents as they are"
    nulls = "leaves out" if node.null_fields == "drop" else "keeps"
    return (
        f"renders by template {names} (SHA-256 {node.template_digest[:12]}), and {nulls} keys that "
        "are null in Parquet datasets"
    )


def _all_fields_known(fetch: Fetch) -> bool:
    return all(component.fields_complete for component in fetch.components)


def _component(c: ReadComponent, decided_by: str | None) -> str:
    share = f"decided by {decided_by}" if c.share is None else f"{c.share:.4g}"
    return (
        f"{c.name}: share {share}, {c.rows:,} rows in {c.shards:,} shards, {c.bytes / 1e6:,.1f} MB"
    )


def _stage_lines(plan: Plan, facts: RunFacts) -> list[str]:
    lines = []
    for stage in plan.stages:
        names = ", ".join(
            type(s).__name__
            for node in stage.nodes
            for s in (node.steps if isinstance(node, Segment) else (node,))
        )
        if stage.is_segment:
            lines.append(
                f"  stage {stage.index}: {names}  runner={facts.runner} "
                f"workers={min(stage.parallelism, facts.workers)} (parallelism {stage.parallelism})"
            )
        else:
            lines.append(f"  stage {stage.index}: {names}  queue={facts.queue}")
    lines.append(f"  memory budget {facts.memory_budget / (1 << 20):,.0f} MiB")
    lines += [f"  {line}" for line in facts.reading]
    return lines
