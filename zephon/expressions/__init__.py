"""Polars expressions: made plan values of, and run on Arrow columns.

``column_steps`` holds the values; ``given`` makes them of what a call was given, with ``choosing``
(selectors), ``row_by_row`` and ``categories`` (what is refused, tried on rows of ``made_up``) and
``refusing`` (how that is said) below it; ``fields`` says what a step leaves; ``running`` computes;
``row_filter`` says which rows pass, and proves with ``taking_apart``, ``bounds`` and ``told`` that
none of some can.
"""

from zephon.column_steps import ColumnStep, Expression, Statistics, no_columns
from zephon.expressions.fields import after, drop_step, rename_step
from zephon.expressions.given import expression_step, resolve
from zephon.expressions.row_filter import RowFilter
from zephon.expressions.running import Computed, run
from zephon.expressions.taking_apart import cannot_raise

__all__ = [
    "ColumnStep",
    "Computed",
    "Expression",
    "RowFilter",
    "Statistics",
    "after",
    "cannot_raise",
    "drop_step",
    "expression_step",
    "no_columns",
    "rename_step",
    "resolve",
    "run",
]
