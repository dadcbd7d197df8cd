"""Which fields leave a step, and which columns steps look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from zephon.column_steps import ColumnStep, can_name_a_column, renamed
from zephon.errors import PlanError, nearest
from zephon.expressions.given import Known


def rename_step(mapping: Mapping[str, str], fields: Known, complete: bool) -> ColumnStep:
    """Make a step that renames fields.

    Raises:
        PlanError: ``mapping`` is no mapping of names, a field is not there, or two get one name.
    """
    if not isinstance(mapping, Mapping) or not all(
        isinstance(old, str) and isinstance(new, str) and new for old, new in mapping.items()
    ):
        raise PlanError(
            f"rename: expected a mapping of old names to new ones, got {mapping!r}; pass "
            "{'old': 'new'}"
        )
    odd = [name for pair in mapping.items() for name in pair if not can_name_a_column(name)]
    if odd:
        raise PlanError(f"rename: names must be UTF-8, got {odd[0]!r}; rename in map_transform")
    if not mapping:
        raise PlanError("rename: expected at least one name, got {}; pass {'old': 'new'}")
    step = ColumnStep("rename", names=tuple(mapping.items()))
    after(step, fields, complete)
    return step


def drop_step(names: Iterable[Any], fields: Known, complete: bool) -> ColumnStep:
    """Make a step that leaves fields out.

    Args:
        names: of fields, or iterables of names.
        fields: those that are known here.
        complete: rows have no other fields.

    Raises:
        PlanError: something is no name, or a field is not there.
    """
    flat: list[Any] = []
    for each in names:
        flat += [each] if isinstance(each, str) or not isinstance(each, Iterable) else list(each)
    for each in flat:
        if not isinstance(each, str):
            raise PlanError(f"drop: expected names of fields, got {each!r}; pass texts")
    if not flat:
        raise PlanError("drop: expected at least one name, got none; name a field")
    step = ColumnStep("drop", names=tuple(dict.fromkeys(flat)))
    after(step, fields, complete)
    return step


def after(
    step: ColumnStep, fields: Known, complete: bool
) -> tuple[tuple[tuple[str, pa.DataType | None], ...], bool]:
    """Say which fields leave a step, with their types, and whether rows have no others.

    Raises:
        PlanError: a field to rename or drop is not there, or two get one name.
    """
    types = dict(fields)
    if step.kind == "select":
        return tuple((each.name, each.type) for each in step.expressions), True
    if step.kind == "with_columns":
        types.update((each.name, each.type) for each in step.expressions)
    elif step.kind == "drop":
        for name in step.names:
            _check_there("drop", str(name), types, complete)
        types = {name: dtype for name, dtype in types.items() if name not in step.names}
    elif step.kind == "rename":
        new = renamed(step)
        for name in new:
            _check_there("rename", name, types, complete)
        left = [new.get(name, name) for name in types]
        twice = next((name for name in left if left.count(name) > 1), None)
        if twice is not None:
            raise PlanError(
                f"rename: two fields would be called {twice!r}; drop one of them before"
            )
        types = dict(zip(left, types.values(), strict=True))
    return tuple(types.items()), complete


def _check_there(call: str, name: str, types: Mapping[str, Any], complete: bool) -> None:
    if name in types:
        return
    declare = "" if complete else "; a field that few rows have is declared with schema="
    raise PlanError(f"{call}: no field {name!r}; {nearest(name, types)}{declare}")
