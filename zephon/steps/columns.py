"""Calls that compute, choose, rename and drop fields, and filter rows, by Polars expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa

from zephon.errors import PlanError
from zephon.forks import polars_needed
from zephon.io.fields import Field
from zephon.io.formats.arrow_columns import kind_of_type
from zephon.planner import logical
from zephon.planner.logical.pack import Pack
from zephon.planner.tree import top_first
from zephon.steps.description import Description

if TYPE_CHECKING:
    import polars as pl

Given: TypeAlias = "pl.Expr | str | Sequence[pl.Expr | str]"


class ColumnSteps(Description):
    """Steps that the optimizer knows: they may run while files are read, or join each other."""

    def filter(self, *predicates: pl.Expr | Sequence[pl.Expr]) -> Self:
        """Keep the rows for which all predicates are true; a null is not true.

        Dropped rows keep their place in the order, and ``accounting`` counts them. Where the
        predicate reads fields of the files, row groups are skipped by their statistics, and other
        columns are read of the rows that are left. A predicate that might raise skips none: give
        comparisons by themselves.

        A row that a filter drops is never an error, whatever else is wrong with it: a value that
        is bad in its file, or one for which another expression raises. A row is an error where the
        predicates that look at good values alone are true, or there are none. (Texts of Parquet
        that are not UTF-8 go unnoticed in row groups that are skipped.)

        Args:
            predicates: boolean expressions over fields, such as ``pl.col("score") > 0.5``; joined
                by and. Each sees the rows for which those before it are true.

        Raises:
            PlanError: it is no such expression; it does not look at each row by itself; there is no
                such field, or nobody knows its type: see ``Dataset.from_path(schema=)``.
        """
        return self._add_columns("filter", predicates)

    def select(self, *expressions: Given, **named: pl.Expr) -> Self:
        """Make rows of these fields alone.

        Args:
            expressions: names of fields, or expressions, each of which gives one.
            named: further expressions, by the name of what they give.

        Raises:
            PlanError: as ``filter``; or two have one name.
        """
        return self._add_columns("select", expressions, named)

    def with_columns(self, *expressions: Given, **named: pl.Expr) -> Self:
        """Add fields, or replace those of the same name; the others stay.

        Args:
            expressions: each gives one field, and sees the rows as they were before the call.
            named: further expressions, by the name of what they give.

        Raises:
            PlanError: as ``filter``; or two have one name.
        """
        return self._add_columns("with_columns", expressions, named)

    def rename(self, mapping: Mapping[str, str]) -> Self:
        """Give fields other names.

        Args:
            mapping: new names by old ones.

        Raises:
            PlanError: there is no such field, or two would have one name.
        """
        return self._add_columns("rename", mapping)

    def drop(self, *names: str | Sequence[str]) -> Self:
        """Leave fields out.

        Args:
            names: of fields, each of which must be there.

        Raises:
            PlanError: there is no such field.
        """
        return self._add_columns("drop", names)

    def _add_columns(self, call: str, given: Any, named: Mapping[str, Any] | None = None) -> Self:
        """Make a step of what the call was given, by what is known of the fields; add its node."""
        from zephon import expressions  # late: it loads Polars, which few pipelines need

        self._refuse_after(call, Pack, logical.Batch)
        self._refuse_unknown(call)
        below = self._node
        known = tuple((f.name, f.type) for f in below.fields())
        complete = below.knows_all_fields()
        match call:
            case "rename":
                step = expressions.rename_step(given, known, complete)
            case "drop":
                step = expressions.drop_step(given, known, complete)
            case _:
                polars_needed()
                step = expressions.expression_step(
                    call, given, known, complete, self._why_unknown, named
                )
        if any(isinstance(node, logical.MakesTokens) for node in top_first(below)):
            _only_filters(call)
        made, complete = expressions.after(step, known, complete)
        fields = tuple(Field(name, _kind(name, dtype, below), dtype) for name, dtype in made)
        return self._add(
            logical.Columns(input=below, steps=(step,), made=fields, complete=complete)
        )

    def _refuse_unknown(self, call: str) -> None:
        for node in top_first(self._node):
            if node.takes_rows:
                raise PlanError(
                    f"{call}: it cannot come after {node.call}, since nobody knows the types of "
                    f"what functions give; call {call} before {node.call}, or do it in a function"
                )

    def _why_unknown(self, name: str) -> str:
        """Say why nobody knows the type of a field, and what to do."""
        types: dict[pa.DataType, str] = {}
        for component in self._source.components:
            dataset = component.dataset
            there = {field.name: field for field in dataset.fields()}
            if not component.read or name not in there:
                continue
            if why := dataset.type_conflict(name):
                return f"dataset {dataset.name!r}: {why}"
            types.setdefault(there[name].type, dataset.name)
        told = " and ".join(f"dataset {at!r} has {dtype}" for dtype, at in types.items())
        return f"{told}; write all of them in one type" if told else "no dataset is seen to have it"


def _kind(name: str, dtype: pa.DataType | None, below: logical.Node) -> str:
    if dtype is not None:
        return kind_of_type(dtype)
    return next((field.kind for field in below.fields() if field.name == name), "unknown")


def _only_filters(call: str) -> None:
    if call != "filter":
        raise PlanError(
            f"{call}: it cannot come after tokenize, whose fields only functions change; call "
            f"{call} before tokenize, or use map_transform"
        )
