"""Expressions with selectors choose in a plan what they chose among all fields."""

import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pytest

from tests.expressions.known import TYPED, parts, resolved, step
from zephon.errors import PlanError

FRAME = pa.record_batch(
    {"k": pa.array([1, None]), "text": ["a", "b"], "score": pa.array([0.5, 2], pa.float32())}
)


@pytest.mark.parametrize(
    ("given", "reads", "made"),
    [
        (pl.col("k", "score") * 2, ("k", "score"), {"k": [2, None], "score": [1.0, 4.0]}),
        (cs.numeric().is_null(), ("k", "score"), {"k": [False, True], "score": [False, False]}),
        (pl.sum_horizontal(cs.float()).alias("sum"), ("score",), {"sum": [0.5, 2.0]}),
        (cs.string().name.suffix("_"), ("text",), {"text_": ["a", "b"]}),
    ],
)
def test_they_see_what_they_choose_among_and_nothing_else(given, reads, made):
    found = resolved("select", given, fields=TYPED)
    assert {each.reads for each in found} == {reads}
    rows, kept = parts([step("select", given, fields=TYPED)], FRAME)
    assert (rows.to_pydict(), kept) == (made, None)


def test_a_choice_by_place_sees_all_fields():
    fields = (("a", pa.int8()), ("b", pa.int8()), ("c", pa.int8()))
    (found,) = resolved("select", pl.nth(1) + 1, fields=fields)
    assert found.reads == ("a", "b", "c")
    frame = pa.record_batch({name: pa.array([n], pa.int8()) for n, (name, _) in enumerate(fields)})
    made, _ = parts([step("select", pl.nth(1) + 1, fields=fields)], frame)
    assert made.to_pydict() == {"b": [2]}


def test_each_of_several_predicates_must_be_true():
    frame = pa.record_batch({"a": [1, 5, 1], "b": [1, 1, 5]})
    fields = (("a", pa.int64()), ("b", pa.int64()))
    _, kept = parts([step("filter", pl.all() < 3, fields=fields)], frame)
    assert kept.tolist() == [0]


def test_fields_that_nobody_knows_are_not_chosen_among():
    with pytest.raises(PlanError, match="chooses among all fields, and rows may have others than"):
        resolved("select", pl.exclude("k"), fields=TYPED, complete=False)
    found = resolved("select", pl.col("k", "text"), fields=TYPED, complete=False)
    assert [each.name for each in found] == ["k", "text"]
    assert len(resolved("select", pl.col("k", "score") * 2, fields=TYPED, complete=False)) == 2
