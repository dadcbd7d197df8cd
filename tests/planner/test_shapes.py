"""How whole rows look after column steps: the same as if each step were done by hand."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.typed_plans import columns, dropped, renamed, typed_fetch
from zephon.planner.physical import Shape
from zephon.planner.shapes import shape_of

ROW = {"text": "t", "url": "u", "score": 1, "ids": [1], "extra": "e"}


def steps_of(plan):
    found = []
    while plan.input is not None:
        found = [*plan.steps, *found]
        plan = plan.input
    return found


def shaped(shape, row, computed):
    """Do to a row what a shape says."""
    if not shape.below:
        return {name: computed[name] for name in shape.computed}
    names = dict(shape.renamed)
    left = {names.get(k, k): v for k, v in row.items() if k not in shape.gone}
    return left | {name: computed[name] for name in shape.computed}


def by_hand(steps, row):
    """Do each step to a row; a computed value is a tuple that names its expression."""
    for step in steps:
        match step.kind:
            case "select":
                row = {each.name: _value(each, row) for each in step.expressions}
            case "with_columns":
                row = row | {each.name: _value(each, row) for each in step.expressions}
            case "rename":
                names = dict(step.names)
                row = {names.get(k, k): v for k, v in row.items()}
            case "drop":
                row = {k: v for k, v in row.items() if k not in step.names}
    return row


def _value(expression, row):
    return ("made of", *(row[name] for name in expression.reads))


def compare(plan):
    steps = steps_of(plan)
    wanted = by_hand(steps, ROW)
    computed = {k: v for k, v in wanted.items() if isinstance(v, tuple)}
    found = shaped(shape_of(steps), ROW, computed)
    assert found == wanted
    assert list(found) == list(wanted)


def test_a_filter_leaves_rows_as_they_are():
    assert shape_of(steps_of(columns("filter", pl.col("score") > 1))) == Shape(below=True)


@pytest.mark.parametrize(
    "plan",
    [
        columns("with_columns", url=pl.col("score") + 1),
        columns("select", pl.col("url"), n=pl.col("score")),
        renamed({"text": "url", "url": "text"}),
        dropped("url", "ids"),
        columns("with_columns", url=pl.col("text"), below=renamed({"url": "link"})),
        dropped("url", below=columns("with_columns", url=pl.col("text"))),
        dropped(
            "url", below=columns("with_columns", url=pl.col("text"), below=renamed({"url": "a"}))
        ),
        renamed(
            {"n": "text"}, below=dropped("text", below=columns("with_columns", n=pl.col("text")))
        ),
    ],
)
def test_rows_look_as_if_each_step_were_done(plan):
    compare(plan)


ONTO = renamed({"score": "extra"})


@pytest.mark.parametrize(
    ("plan", "wanted"),
    [
        (dropped("extra", below=ONTO), {"text": "t", "url": "u", "ids": [1]}),
        (renamed({"extra": "a"}, below=ONTO), {"text": "t", "url": "u", "a": 1, "ids": [1]}),
        (
            dropped("a", below=renamed({"extra": "a"}, below=ONTO)),
            {"text": "t", "url": "u", "ids": [1]},
        ),
        (
            dropped("extra", below=columns("with_columns", extra=pl.col("score"))),
            {"text": "t", "url": "u", "score": 1, "ids": [1]},
        ),
        (
            renamed({"text": "extra"}, below=dropped("extra", below=ONTO)),
            {"extra": "t", "url": "u", "ids": [1]},
        ),
    ],
)
def test_what_was_renamed_onto_does_not_come_back(plan, wanted):
    assert shaped(shape_of(steps_of(plan)), ROW, {}) == wanted


@given(st.data())
def test_any_steps_in_any_order(data):
    plan = typed_fetch()
    for _ in range(data.draw(st.integers(1, 5))):
        names = [field.name for field in plan.fields()]
        name, other = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
        new = data.draw(st.sampled_from(["a", "b", name]))
        match data.draw(st.sampled_from(["with_columns", "rename", "drop", "select"])):
            case "with_columns":
                plan = columns("with_columns", pl.col(other).alias(new), below=plan)
            case "rename" if new not in names:
                plan = renamed({name: new}, below=plan)
            case "rename" if name != other:
                plan = renamed({name: other, other: name}, below=plan)
            case "drop" if len(names) > 1:
                plan = dropped(name, below=plan)
            case "select":
                plan = columns("select", *dict.fromkeys([name, other]), below=plan)
    compare(plan)
