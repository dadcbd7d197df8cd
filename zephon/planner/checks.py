"""Checks of a call against what is known of the data: fields that are there, and of which kind."""

from __future__ import annotations

from zephon.errors import PlanError, nearest
from zephon.io.fields import Column
from zephon.planner.logical import Columns, Fetch, Node, ReadComponent
from zephon.planner.names import Names
from zephon.planner.tree import top_first


def fields_unknown(below: Node) -> bool:
    """Say whether only rows can tell which fields there are, and what is in them."""
    return not below.token_fields() and any(
        node.takes_rows
        or (isinstance(node, Columns) and any(step.kind != "filter" for step in node.steps))
        for node in top_first(below)
    )


def check_reads(columns: tuple[Column, ...], below: Node, call: str) -> None:
    """Refuse columns that a component is known not to have, or to have with another type.

    Raises:
        PlanError: names the call, the dataset, and the fields that there are.
    """
    said_by = next(n for n in top_first(below) if n.takes_rows or isinstance(n, Columns | Fetch))
    names = Names(())
    for node in reversed(list(top_first(below))):
        names = names.after(node.steps) if isinstance(node, Columns) else names
    for column in columns:
        if isinstance(said_by, Columns):
            _check_made(column, said_by, call, gone=names.is_gone(column.path))
        elif isinstance(said_by, Fetch):
            for component in said_by.components:
                _check_column(column, component, call)


_KINDS = {"text": "text", "tokens": "lists of integers", "numbers": "lists of numbers"}


def _check_made(column: Column, step: Columns, call: str, *, gone: bool) -> None:
    """Check a column against the fields that leave column steps."""
    fields = {f.name: f for f in step.fields()}
    field = fields.get(column.path) or fields.get(column.path.split(".")[0])
    if field is None or gone:
        if (step.complete or gone) and column.missing == "error":
            closest = nearest(column.path, fields)
            raise PlanError(f"{call}: no field {column.path!r} after {step.call}; {closest}")
        return
    if field.name == column.path and field.type is not None:
        wanted = "tokens" if column.kind == "int32" else column.kind
        if field.kind not in (wanted, "unknown"):
            raise PlanError(
                f"{call}: field {column.path!r} must hold {_KINDS.get(wanted, wanted)}, after "
                f"{step.call} it holds {_KINDS.get(field.kind, field.kind)}"
            )


def _check_column(column: Column, component: ReadComponent, call: str) -> None:
    fields = {f.name: f for f in component.fields}
    field = fields.get(column.path) or fields.get(column.path.split(".")[0])
    if field is None:
        if component.fields_complete and column.missing == "error":
            raise PlanError(
                f"{call}: no field {column.path!r} in dataset {component.dataset!r}; "
                f"{nearest(column.path, fields)}"
            )
        return
    if not component.fields_complete or field.name != column.path:
        return
    fitting = ("text", "bytes") if column.kind == "text" else (column.kind,)
    if field.kind not in (*fitting, "unknown"):
        raise PlanError(
            f"{call}: field {column.path!r} of dataset {component.dataset!r} must hold "
            f"{_KINDS[column.kind]}, it holds {_KINDS.get(field.kind, field.kind)}"
        )
