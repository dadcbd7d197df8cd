"""Checks of a call against what is known of the data: fields that are there, and of which kind."""

from __future__ import annotations

from zephon.errors import PlanError, nearest
from zephon.io.fields import Column
from zephon.planner.logical import Fetch, Node, ReadComponent
from zephon.planner.tree import top_first


def check_reads(columns: tuple[Column, ...], below: Node, call: str) -> None:
    """Refuse columns that a component is known not to have, or to have with another type.

    Raises:
        PlanError: names the call, the dataset, and the fields that there are.
    """
    fetch = next(node for node in top_first(below) if isinstance(node, Fetch))
    for column in columns:
        for component in fetch.components:
            _check_column(column, component, call)


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
    kinds = {"text": "text", "tokens": "lists of integers", "numbers": "lists of numbers"}
    if field.kind not in (column.kind, "unknown"):
        raise PlanError(
            f"{call}: field {column.path!r} of dataset {component.dataset!r} must hold "
            f"{kinds[column.kind]}, it holds {kinds.get(field.kind, field.kind)}"
        )
