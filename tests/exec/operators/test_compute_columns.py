"""Column steps over a morsel: rows are filtered, columns computed, the rest goes along."""

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from zephon.errors import DataError
from zephon.exec.block import DROPPED, FILTERED
from zephon.exec.morsel import Morsel
from zephon.exec.operator import RowError
from zephon.exec.operators.compute_columns import ComputeColumnsOp
from zephon.expressions import drop_step, expression_step
from zephon.io.faults import RowFault
from zephon.io.fields import TOKENS
from zephon.io.formats.memory import ObjectRows
from zephon.io.payload import Payload
from zephon.planner import physical
from zephon.work.refs import Refs

K, TEXT = pl.col("k"), pl.col("text")
FIELDS = (("k", pa.int64()), ("text", pa.large_string()), ("input_ids", TOKENS))
MORE = (*FIELDS, ("n", pa.int64()))
TEXTS = ["a", "7", "8", "b"]


def step(call, *given, fields=FIELDS, **named):
    return expression_step(call, given, fields, True, str, named)


def morsel(**changes):
    rows = np.arange(4)
    narrow = np.zeros(4, np.int32)
    known = {
        "refs": Refs.of(narrow, rows * 0, rows, narrow, rows),
        "columns": pa.record_batch({"input_ids": pa.array([[1], [], [2, 3], [4]], TOKENS)}),
        "payload": Payload((ObjectRows([{"t": t} for t in TEXTS]),), narrow, rows),
        "measures": {"length": rows},
        "frame": pa.record_batch(
            {"k": [1, None, 3, 4], "text": pa.array(TEXTS, pa.large_string())}
        ),
    }
    return Morsel(**{**known, **changes})


def op(*steps, keep=(), shape=None, **changes):
    return ComputeColumnsOp(physical.ComputeColumns(steps=steps, keep=keep, shape=shape, **changes))


def whole(rows):
    return [rows.payload.row(index) for index in range(len(rows.payload))]


def test_everything_goes_along_with_the_rows_that_pass():
    made = op(step("filter", K > 1), step("with_columns", n=K * 2), keep=("n",)).run(morsel())
    assert made.frame.to_pydict() == {"n": [6, 8]}
    assert made.refs.row.tolist() == [2, 3]
    assert made.columns.to_pydict() == {"input_ids": [[2, 3], [4]]}
    assert made.measures["length"].tolist() == [2, 3]
    assert whole(made) == [{"t": "8"}, {"t": "b"}]
    assert made.lost.refs.row.tolist() == [0, 1]
    assert made.lost.reason.tolist() == [FILTERED, FILTERED]


def test_after_a_function_rows_are_dropped():
    made = op(step("filter", K > 1), movable=False).run(morsel())
    assert made.lost.reason.tolist() == [DROPPED, DROPPED]


def test_without_a_filter_no_row_goes():
    rows = morsel()
    made = op(step("with_columns", n=K * 2), keep=("n", "k")).run(rows)
    assert made.frame.to_pydict() == {"n": [2, None, 6, 8], "k": [1, None, 3, 4]}
    assert (made.refs, made.columns, made.payload) == (rows.refs, rows.columns, rows.payload)
    assert len(made.lost) == 0


def test_whole_rows_get_their_shape():
    shape = physical.Shape(below=True, renamed=(("t", "words"),), computed=("n",))
    steps = (step("with_columns", n=K * 2), step("filter", K > 3))
    made = op(*steps, shape=shape, keep=("n",)).run(morsel())
    assert whole(made) == [{"words": "b", "n": 8}]
    alone = op(*steps, shape=physical.Shape(below=False, computed=("n",)), keep=("n",))
    assert whole(alone.run(morsel(payload=None))) == [{"n": 8}]


def test_constants_need_no_frame():
    made = op(step("with_columns", x=pl.lit(1)), keep=("x",)).run(morsel(frame=None))
    assert made.frame.to_pydict() == {"x": [1] * 4}


def test_no_rows_stay_none():
    none = morsel().keep(np.empty(0, np.int64), FILTERED)
    made = op(step("filter", K > 1), keep=("k",)).run(replace(none, lost=none.lost.none()))
    assert (len(made.refs), made.frame.num_rows, len(made.lost)) == (0, 0, 0)


def test_tokens_are_columns_too():
    lengths = step("filter", pl.col("input_ids").list.len() > 0)
    made = op(lengths, tokens=("input_ids",)).run(morsel())
    assert made.columns.to_pydict() == {"input_ids": [[1], [2, 3], [4]]}
    fields = (*FIELDS, ("attention_mask", TOKENS))
    mask = step("with_columns", n=pl.col("attention_mask").list.sum(), fields=fields)
    rows = morsel(columns=morsel().columns.slice(1), frame=morsel().frame.slice(1))
    rows = replace(rows, refs=rows.refs.slice(1, 4), payload=None, measures={})
    made = op(mask, tokens=("attention_mask",), keep=("n",)).run(rows)
    assert made.frame.to_pydict() == {"n": [0, 2, 1]}


def test_a_bad_row_is_an_error_only_if_it_passes():
    faults = {row: RowFault(f"row {row} is bad") for row in (0, 2, 3)}
    for bound, row in ((1, 2), (3, 3)):
        with pytest.raises(DataError, match=f"^row {row} is bad$"):
            op(step("filter", bound < K)).run(morsel(faults=faults))
    made = op(step("filter", TEXT == "7")).run(morsel(faults=faults))
    assert made.refs.row.tolist() == [1]


def known(**unknown):
    """Faults of rows, each with what is unknown of it."""
    return {int(row[1:]): RowFault(row, unknown=frozenset(n)) for row, n in unknown.items()}


def test_a_predicate_over_an_unknown_value_drops_nothing():
    faults = known(r1=["k"], r3=["text"])
    with pytest.raises(DataError, match=r"^r1$"):
        op(step("filter", K > 9)).run(morsel(faults=faults))
    computed = (step("with_columns", n=K * 2), step("filter", pl.col("n") > 9, fields=MORE))
    with pytest.raises(DataError, match=r"^r1$"):
        op(*computed).run(morsel(faults=faults))
    for predicates in ((K < 9, TEXT == "a"), (TEXT == "a", K < 9)):
        made = op(step("filter", *predicates), keep=("text",)).run(morsel(faults=known(r1=["k"])))
        assert made.frame.to_pydict() == {"text": ["a"]}
        assert made.refs.row.tolist() == [0]


def test_faults_go_on_to_filters_that_come_later():
    steps = (
        step("filter", TEXT != "a"),
        step("with_columns", n=K * 2),
        step("select", "n", "k", fields=MORE),
    )
    late = op(*steps, keep=("n",), late_faults=True)
    made = late.run(morsel(faults=known(r0=["k"], r2=["k"], r3=[])))
    assert made.frame.to_pydict() == {"n": [None, None, 8]}
    assert {row: (f.why, sorted(f.unknown)) for row, f in made.faults.items()} == {
        1: ("r2", ["k", "n"]),
        2: ("r3", []),
    }
    with pytest.raises(DataError, match=r"^r2$"):
        op(step("filter", pl.col("n") > 100, fields=MORE)).run(made)
    assert len(op(step("filter", pl.lit(False), fields=MORE)).run(made).refs) == 0


def test_a_row_that_polars_refuses_is_an_error_only_if_it_passes():
    number = step("with_columns", n=TEXT.cast(pl.Int64))
    for filters in ((TEXT == "7",), (pl.col("n") < 8, TEXT != "a", TEXT != "b")):
        made = op(number, step("filter", *filters, fields=MORE), keep=("n",)).run(morsel())
        assert (made.frame.to_pydict(), made.refs.row.tolist()) == ({"n": [7]}, [1])
    made = op(number, keep=("n", "k"), late_faults=True).run(morsel())
    assert made.frame.to_pydict() == {"n": [None, 7, 8, None], "k": [1, None, 3, 4]}
    assert sorted(made.faults) == [0, 3]
    with pytest.raises(RowError) as told:
        op(step("filter", K > 3)).run(made)
    assert (told.value.row, told.value.step) == (0, "with_columns")  # of the rows that passed


def test_what_was_read_badly_is_named_before_what_polars_refuses_and_that_before_fields():
    number = TEXT.cast(pl.Int64)
    steps = (step("with_columns", n=(TEXT + "x").cast(pl.Int64)), step("filter", number > 1))
    late = op(*steps, late_faults=True).run(morsel(faults={3: RowFault("row 3 is bad")}))
    assert [(row, fault.step) for row, fault in late.faults.items()] == [
        (0, "filter"),
        (1, "with_columns"),
        (2, "with_columns"),
        (3, None),
    ]


def test_the_first_row_that_polars_refuses_is_named():
    for rows, bad in ((morsel(), 0), (morsel().keep(np.array([1, 2, 3]), FILTERED), 2)):
        with pytest.raises(RowError) as told:
            op(step("with_columns", n=TEXT.cast(pl.Int64)), keep=("n",)).run(rows)
        assert told.value.row == bad
        assert told.value.problem.startswith(
            'col("text").strict_cast(Int64).alias("n") raised conv'
        )
        assert told.value.way_out == "mend or remove the row, or filter it out before"
        assert told.value.__cause__ is None  # the row is bad, not a function of the user


def test_a_row_without_fields_is_bad_where_no_column_was_read():
    shape = physical.Shape(below=True, gone=("t",))
    rows = [{"t": 1, "u": 2}, {}, "text", 5]
    source = Payload((ObjectRows(rows),), np.zeros(4, np.int32), np.arange(4))
    steps = (drop_step(("t",), (("t", None),), True),)
    with pytest.raises(RowError, match=r"an object with fields .* drop some, got text") as told:
        op(*steps, shape=shape).run(morsel(frame=None, payload=source))
    assert told.value.row == 2
    made = op(*steps, shape=shape).run(morsel(frame=None).part(0, 2))
    assert whole(made) == [{}, {}]


def test_messages_call_it_by_what_was_called():
    assert op(step("filter", K > 1), step("select", "k"), step("filter", K < 9)).label == (
        "filter and select"
    )
