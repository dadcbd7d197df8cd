"""Checks of a call against what is known of the data: fields that are there, and of which kind."""

from __future__ import annotations

import warnings

from zephon.batches.token_fields import TOKEN_FIELDS
from zephon.errors import NotYetError, PlanError, nearest
from zephon.io.fields import Column
from zephon.planner.logical import Fetch, Node, ReadComponent
from zephon.planner.tree import top_first

ALIGNED_FIELDS = ("attention_mask", "loss_mask", "labels", "token_type_ids", "segment_ids")


def find_token_field(below: Node, asked: str) -> str:
    """Say which field holds the tokens that ``below`` delivers.

    Args:
        below: the step under the one that packs.
        asked: a field's name, or "auto": the first of ``TOKEN_FIELDS`` that is there.

    Raises:
        PlanError: there is none, or it does not hold lists of integers.
    """
    known = below.outputs()
    made = below.token_fields()
    if asked == "auto":
        found = next((name for name in TOKEN_FIELDS if name in known), None)
        if found is None:
            raise PlanError(
                f"pack_flat: no token field ({', '.join(TOKEN_FIELDS)}); the fields are "
                f"{', '.join(known) or 'unknown'}; call tokenize first, or name tokens_field"
            )
        asked = found
    if made:
        if asked != made[0]:
            raise PlanError(
                f"pack_flat: tokens_field must be {made[0]!r}, which tokenize makes, got "
                f"{asked!r}; leave tokens_field out"
            )
        return asked
    check_reads((Column(path=asked, kind="tokens"),), below, "pack_flat")
    return asked


def find_aligned(below: Node, tokens_field: str) -> tuple[str, ...]:
    """Say which fields of the source hold one integer a token: those of ``ALIGNED_FIELDS``.

    Other lists beside the tokens may be anything (boxes, tags), so they are left out, with a
    warning.

    Raises:
        PlanError: a component lacks one, or there is a field named ``positions`` already.
        NotYetError: one holds floats or booleans.
    """
    if below.token_fields():
        return ()
    fetch = next(node for node in top_first(below) if isinstance(node, Fetch))
    kinds = {f.name: f.kind for component in fetch.components for f in component.fields}
    if "positions" in kinds:
        raise PlanError(
            "pack_flat: the data have a field 'positions', which packing makes anew; rename it"
        )
    aligned = tuple(name for name in ALIGNED_FIELDS if name in kinds and name != tokens_field)
    for name in aligned:
        if kinds[name] == "numbers":
            raise NotYetError(
                f"pack_flat: field {name!r} holds lists of floats or booleans; packing these is "
                "not there yet; store integers, or leave the field out"
            )
    check_reads(tuple(Column(path=name, kind="tokens") for name in aligned), below, "pack_flat")
    lists = [name for name, kind in kinds.items() if kind in ("tokens", "numbers")]
    others = [name for name in lists if name not in (tokens_field, *aligned)]
    if others:
        warnings.warn(
            f"pack_flat: lists of numbers in {', '.join(map(repr, others))} are left out of packed "
            f"rows; packed with the tokens are fields named {', '.join(ALIGNED_FIELDS)}",
            RuntimeWarning,
            stacklevel=3,
        )
    return aligned


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
