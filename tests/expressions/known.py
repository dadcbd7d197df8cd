"""Fields, and calls on them, for tests of expressions."""

import pyarrow as pa

from zephon.expressions import RowFilter, expression_step, resolve, run

FIELDS = (
    ("k", pa.int64()),
    ("text", pa.large_string()),
    ("score", pa.float32()),
    ("good", pa.bool_()),
    ("ids", pa.large_list(pa.int32())),
    ("seen", pa.timestamp("s")),
    ("odd", None),
)
TYPED = FIELDS[:-1]


def why(name):
    return f"declare {name} with schema="


def resolved(call, *given, fields=FIELDS, complete=True, **named):
    return resolve(call, given, fields, complete, why, named)


def step(call, *given, fields=FIELDS, complete=True, **named):
    return expression_step(call, given, fields, complete, why, named)


def parts(steps, frame):
    """Run steps; give the frame, and which rows are in it."""
    found = run(steps, frame)
    return found.frame, found.kept


def row_filter(*predicates, fields=FIELDS):
    return RowFilter(resolved("filter", *predicates, fields=fields))
