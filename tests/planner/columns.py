"""Column steps in small plans: what calls of ``filter``, ``select`` and the rest add."""

import polars as pl
import pyarrow as pa

from tests.planner.plans import fetch
from zephon.expressions import after, drop_step, expression_step, rename_step
from zephon.io.fields import Field
from zephon.planner.logical import Columns, ReadComponent

K, URL, TEXT = pl.col("k"), pl.col("url"), pl.col("text")


def typed_fetch(**changes):
    fields = (
        Field("text", "text", pa.large_string()),
        Field("url", "text", pa.large_string()),
        Field("k", "scalar", pa.int64()),
    )
    prose = ReadComponent(
        name="prose", dataset="prose", share=1.0, shards=2, rows=100, bytes=4000,
        fields=fields, fields_complete=True, all_named=True,
    )  # fmt: skip
    return fetch(**{"components": (prose,), **changes})


def add(below, *calls):
    """Add a node a call: (kind, given...); a dict is keyword arguments, or a rename's mapping."""
    for kind, *given in calls:
        known = tuple((field.name, field.type) for field in below.fields())
        complete = below.knows_all_fields()
        if kind == "rename":
            step = rename_step(given[0], known, complete)
        elif kind == "drop":
            step = drop_step(given, known, complete)
        else:
            named = given.pop() if given and isinstance(given[-1], dict) else {}
            step = expression_step(kind, given, known, complete, str, named)
        made, complete = after(step, known, complete)
        fields = tuple(Field(name, "other", dtype) for name, dtype in made)
        below = Columns(input=below, steps=(step,), made=fields, complete=complete)
    return below


def predicates(*given):
    """Make the expressions that filters over fields of the source have."""
    known = tuple((field.name, field.type) for field in typed_fetch().fields())
    return expression_step("filter", given, known, True, str).expressions
