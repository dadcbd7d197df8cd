"""What is told of other steps, and which of them count as functions."""

import polars as pl
import pytest

from tests.exec.changed_recipes import above, packed, told
from zephon.exec.step_changes import FUNCTIONS
from zephon.ops import BaseOp, OpTraits
from zephon.planner import logical
from zephon.planner.logical.functions import InPython


def shout(row):
    return {**row, "text": row["text"].upper()}


def whisper(row):
    return {**row, "text": row["text"].lower()}


class Pass(BaseOp):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def process_many(self, records):
        return records


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (lambda p: p, lambda p: p.filter(pl.col("n") > 3), [
            ("filter", None, 'filter(col("n") > 3)'),
        ]),
        (lambda p: p.filter(pl.col("n") > 3), lambda p: p.filter(pl.col("n") > 4), [
            ("filter, steps[0]", 'filter(col("n") > 3)', 'filter(col("n") > 4)'),
        ]),
        (lambda p: p.select("n", "text"), lambda p: p, [
            ("select", 'select(col("n"), col("text"))', None),
        ]),
        (lambda p: p.map_transform(above(3)), lambda p: p.map_transform(above(4)), [
            ("map_transform, functions[0].function.closure.limit", "3", "4"),
        ]),
        (lambda p: p.map_transform(above(3), fingerprint="v1"),
         lambda p: p.map_transform(above(3), fingerprint="v2"), [
            ("map_transform, functions[0].function.fingerprint", "'v1'", "'v2'"),
        ]),
        (lambda p: p.add_op(Pass(1)), lambda p: p.add_op(Pass(2)), [
            ("add_op, instance.kept.by", "1", "2"),
        ]),
    ],
)  # fmt: skip
def test_functions_are_named(before, after, found):
    assert told({"steps": before}, {"steps": after}) == [(*each, "functions") for each in found]


def test_a_step_between_others_is_found_alone():
    def with_steps(*functions):
        def steps(p):
            for function in functions:
                p = p.map_transform(function)
            return p.shuffle(8)

        return {"steps": steps}

    [(part, was, now, word)] = told(with_steps(shout, shout), with_steps(shout, whisper, shout))
    assert (part, was, word) == ("map_transform 2", None, "functions")
    assert "whisper" in now
    found = told(with_steps(shout), with_steps(whisper))
    assert [part for part, *_ in found] == [
        "map_transform, functions[0].function.name",
        "map_transform, functions[0].function.source",
    ]


@pytest.mark.parametrize(
    ("after", "part"),
    [
        (packed(65), "pack_sequences, max_length"),
        (packed(algorithm="best_fit"), "pack_sequences, algorithm"),
        (lambda p: packed()(p.shuffle(9)), "shuffle"),
        (lambda p: packed()(p.ensure_mixture()), "ensure_mixture"),
    ],
)
def test_what_places_rows_is_never_let_through(after, part):
    [(found, _, _, word)] = told({"steps": packed()}, {"steps": after})
    assert (found, word) == (part, None)


def test_steps_that_name_datasets_go_with_them():
    def steps(mixture):
        return lambda p: packed(homogeneity="full")(p.ensure_mixture(mixture=mixture))

    before = {"steps": steps({"a": 1, "b": 1})}
    three = {"a": 2, "b": 2, "c": 1}
    assert told(before, {"weights": three, "steps": steps(three)}) == [
        ("dataset 'c'", None, "of weight 0.2", "datasets")
    ]
    found = told(before, {"weights": three, "steps": steps({"a": 1, "b": 2, "c": 1})})
    assert [(part, word) for part, _, _, word in found] == [
        ("dataset 'c'", "datasets"), ("ensure_mixture, mixture", None),
    ]  # fmt: skip


def test_every_call_that_looks_at_rows_counts_as_a_function():
    calls = {kind.call for kind in InPython.__subclasses__()}
    assert calls <= FUNCTIONS
    assert {*calls, "filter", "select", "with_columns", "rename", "drop"} == FUNCTIONS
    others = {logical.Tokenize, logical.PackFlat, logical.Shuffle, logical.EnsureMixture}
    assert not FUNCTIONS & {kind.call for kind in others}
