"""Plans with column steps, over a source whose fields have types."""

import polars as pl
import pyarrow as pa

from zephon import expressions
from zephon.io.fields import Field
from zephon.io.formats.arrow_columns import kind_of_type
from zephon.planner.logical import Columns, Fetch, MapTransform, ReadComponent, RowFunction

SCORE, URL, TEXT = pl.col("score"), pl.col("url"), pl.col("text")
TYPES = {
    "text": pa.large_string(),
    "url": pa.large_string(),
    "score": pa.int64(),
    "ids": pa.large_list(pa.int32()),
}


def typed_fetch(**types):
    """A source of one dataset whose fields are all known."""
    known = types or TYPES
    fields = tuple(Field(name, kind_of_type(dtype), dtype) for name, dtype in known.items())
    prose = ReadComponent(
        name="prose", dataset="prose", share=1.0, shards=2, rows=100, bytes=4000,
        fields=fields, fields_complete=True, all_named=True,
    )  # fmt: skip
    return Fetch(components=(prose,))


def columns(kind, *given, below=None, **named):
    """Add a step of expressions."""
    return _added(
        below,
        lambda known, complete: expressions.expression_step(
            kind, given, known, complete, lambda name: f"{name} has no type", named
        ),
    )


def renamed(mapping, below=None):
    """Add a step that renames."""
    return _added(below, lambda known, _: expressions.rename_step(mapping, known, True))


def dropped(*names, below=None):
    """Add a step that drops."""
    return _added(below, lambda known, _: expressions.drop_step(names, known, True))


def mapped(below=None, function=len, **changes):
    """Add a function."""
    below = typed_fetch() if below is None else below
    return MapTransform(input=below, functions=(RowFunction(function=function, **changes),))


def add(below, *calls):
    """Add a step a call: (kind, given...); a dict is keyword arguments, or a rename's mapping."""
    for kind, *given in calls:
        if kind == "rename":
            below = renamed(*given, below=below)
        elif kind == "drop":
            below = dropped(*given, below=below)
        else:
            named = given.pop() if given and isinstance(given[-1], dict) else {}
            below = columns(kind, *given, below=below, **named)
    return below


def predicates(*given):
    """Make the expressions that filters over fields of the source have."""
    return columns("filter", *given).steps[0].expressions


def _added(below, make):
    below = typed_fetch() if below is None else below
    known = tuple((field.name, field.type) for field in below.fields())
    complete = below.knows_all_fields()
    step = make(known, complete)
    fields, complete = expressions.after(step, known, complete)
    made = tuple(Field(name, kind_of_type(dtype), dtype) for name, dtype in fields)
    return Columns(input=below, steps=(step,), made=made, complete=complete)
