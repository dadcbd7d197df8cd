"""What leaves a step is known before it runs; renames and drops are checked at the call."""

import polars as pl
import pyarrow as pa
import pytest

from tests.expressions.known import FIELDS, step
from zephon.errors import PlanError
from zephon.expressions import after, drop_step, rename_step

K = pl.col("k")
SOME = FIELDS[:2]


def test_each_kind_of_step_says_what_leaves():
    assert after(step("filter", K > 1), FIELDS, False) == (FIELDS, False)
    assert after(step("select", "text", K / 2), FIELDS, False) == (
        (("text", pa.large_string()), ("k", pa.float64())),
        True,
    )
    made, complete = after(step("with_columns", K / 2, x="text"), SOME, False)
    assert made == (
        ("k", pa.float64()), ("text", pa.large_string()), ("x", pa.large_string())
    )  # fmt: skip
    assert not complete
    assert after(rename_step({"k": "text", "text": "k"}, SOME, True), SOME, True) == (
        (("text", pa.int64()), ("k", pa.large_string())),
        True,
    )
    assert after(drop_step(["k"], SOME, True), SOME, True) == (SOME[1:], True)


def test_names_may_come_in_lists():
    assert drop_step(("k", ["text", "k"]), SOME, True).names == ("k", "text")


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (rename_step, {"kk": "x"}, "rename: no field 'kk'; did you mean 'k'?"),
        (rename_step, {"k": "text"}, "rename: two fields would be called 'text'; drop one"),
        (rename_step, {"k": "x", "text": "x"}, "rename: two fields would be called 'x'"),
        (rename_step, {}, "rename: expected at least one name, got {}"),
        (rename_step, {"k": 1}, "rename: expected a mapping of old names to new ones, got {'k': 1"),
        (rename_step, "k", "rename: expected a mapping of old names to new ones, got 'k'; pass"),
        (drop_step, ("txt",), "drop: no field 'txt'; did you mean 'text'?"),
        (drop_step, (K,), "drop: expected names of fields, got <Expr .*; pass texts"),
        (drop_step, (3,), "drop: expected names of fields, got 3; pass texts"),
        (drop_step, (), "drop: expected at least one name, got none; name a field"),
    ],
)
def test_anything_else_is_refused(make, given, message):
    with pytest.raises(PlanError, match=message):
        make(given, SOME, True)


def test_a_field_of_few_rows_must_be_declared():
    with pytest.raises(PlanError, match=r"'text'\?; a field that few rows have is declared"):
        drop_step(("txt",), SOME, False)
