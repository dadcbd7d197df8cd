"""Steps compute columns of the types that were said, and hand on the rest untouched."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tests.expressions.known import TYPED, parts, step
from zephon.errors import ExecutionError
from zephon.expressions import drop_step, rename_step, run

K, TEXT, SCORE = pl.col("k"), pl.col("text"), pl.col("score")
FRAME = pa.record_batch(
    {
        "k": pa.array([1, None, 3, 4]),
        "text": pa.array(["a", "7", "c", "d"], pa.large_string()),
        "score": pa.array([0.5, 1.5, np.nan, None], pa.float32()),
    }
)


def ran(*steps, frame=FRAME):
    made, kept = parts(steps, frame)
    return made.to_pydict(), None if kept is None else kept.tolist()


def without_columns(rows):
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["-"]).select([])


def test_a_null_does_not_pass_a_filter():
    assert ran(step("filter", K > 1))[1] == [2, 3]
    assert ran(step("filter", K > 0, SCORE > 0))[1] == [0, 2]
    assert ran(step("filter", K.is_null() | (K > 0)))[1] is None
    assert ran(step("filter", K > 9)) == ({"k": [], "text": [], "score": []}, [])


def test_steps_work_on_what_those_before_them_made():
    steps = (
        step("with_columns", k=K * 2, x=TEXT),
        step("filter", K > 2),
        rename_step({"k": "n", "x": "k"}, (*TYPED, ("x", pa.large_string())), True),
        drop_step(("text",), TYPED, True),
        step("select", "k", n2=pl.col("n") + 1, fields=(("k", pa.string()), ("n", pa.int64()))),
    )
    assert ran(*steps) == ({"k": ["c", "d"], "n2": [7, 9]}, [2, 3])
    for cut in range(len(steps)):
        made, kept = parts(steps[:cut], FRAME)
        left, more = parts(steps[cut:], made)
        kept = np.arange(4) if kept is None else kept
        kept = kept if more is None else kept[more]
        assert (left.to_pydict(), kept.tolist()) == ran(*steps)


def test_expressions_of_one_call_see_the_rows_as_they_were():
    assert ran(step("with_columns", k="score", score="k"))[0]["score"] == [1, None, 3, 4]


def test_what_is_handed_on_shares_memory():
    made, _ = parts([step("select", "text", K, x=SCORE, y=K + 1)], FRAME)
    for name, old in (("text", "text"), ("k", "k"), ("x", "score")):
        assert made.column(name).buffers()[-1].address == FRAME.column(old).buffers()[-1].address
    seen = pa.record_batch({"seen": pa.array([1, None], pa.timestamp("s"))})
    made, _ = parts([step("select", "seen", later=pl.col("seen").dt.offset_by("1s"))], seen)
    assert made.schema.types == [pa.timestamp("s"), pa.timestamp("ms")]
    assert made.column("later").cast(pa.int64()).to_pylist() == [2000, None]


WORDS = TEXT.cast(pl.Enum(["a", "7", "c", "d"]))


def test_types_come_from_expressions_and_never_from_values():
    steps = [step("select", a=WORDS, b=pl.lit(None), c=pl.lit(1), d=K * 0.5)]
    wanted = [pa.large_string(), pa.null(), pa.int32(), pa.float64()]
    for rows in (0, 1, 4):
        made, _ = parts(steps, FRAME.slice(0, rows))
        assert made.schema.types == wanted
        assert made.num_rows == rows


def test_categories_are_text_for_the_next_step():
    words = pa.record_batch({"text": pa.array(["b", "a", "c"], pa.large_string())})
    order = pl.Enum(["c", "b", "a"])
    steps = (step("with_columns", TEXT.cast(order)), step("filter", TEXT < "b"))
    assert ran(*steps, frame=words) == ({"text": ["a"]}, [1])


@pytest.mark.parametrize("rows", [0, 3])
def test_constants_have_as_many_rows_as_the_frame(rows):
    assert ran(step("with_columns", x=pl.lit(1)), frame=without_columns(rows))[0] == {
        "x": [1] * rows
    }
    made, kept = parts([step("select", "k"), drop_step(("k",), TYPED, True)], FRAME.slice(0, rows))
    assert (made.num_columns, made.num_rows, kept) == (0, rows, None)


def test_an_expression_that_raises_is_named():
    steps = [step("with_columns", K + 1, n=TEXT.cast(pl.Int64))]
    with pytest.raises(
        ExecutionError, match=r'^col\("text"\).strict_cast\(Int64\).* raised conv'
    ) as told:
        parts(steps, FRAME)
    assert isinstance(told.value.__cause__, pl.exceptions.PolarsError)


def test_a_filter_spares_those_after_it():
    number = TEXT.cast(pl.Int64) > 5
    with pytest.raises(ExecutionError):
        parts([step("filter", number)], FRAME)
    alone = step("filter", TEXT == "7")
    assert ran(alone, step("filter", number))[1] == [1]
    assert ran(step("filter", TEXT == "7", number))[1] == [1]
    assert ran(alone, step("with_columns", n=TEXT.cast(pl.Int64)))[0]["n"] == [7]


MORE = (*TYPED, ("n", pa.int64()), ("m", pa.int64()))


def computed(*steps, rows=1, **how):
    found = run(steps, FRAME.slice(0, rows), **how)
    kept = list(range(rows)) if found.kept is None else found.kept.tolist()
    return found.frame.to_pydict(), kept, sorted(found.unknown)


def test_what_is_made_of_an_unknown_value_is_unknown():
    steps = (
        step("with_columns", n=K + 1, k=pl.lit(7)),
        step("filter", pl.col("n") > 9, fields=MORE),
        step("select", SCORE, "k", "n", m=pl.col("n").is_null(), fields=MORE),
        rename_step({"n": "text"}, (("score", None), ("k", None), ("m", None), ("n", None)), True),
    )
    made, kept, unknown = computed(*steps, rows=2, unknown=frozenset("k"))
    assert (kept, unknown) == ([0, 1], ["m", "text"])
    assert made == {"score": [0.5, 1.5], "k": [7, 7], "text": [None, None], "m": [None, None]}
    assert computed(step("filter", K > 9, TEXT == "7"), rows=2, unknown=frozenset("k"))[1] == [1]
    assert computed(drop_step(("k",), TYPED, True), unknown=frozenset("k"))[2] == []


def test_what_raises_is_unknown_where_that_is_wanted():
    number = TEXT.cast(pl.Int64)
    steps = (
        step("with_columns", n=number, m=K + 1),
        step("filter", pl.col("n") > 1, number > 0, fields=MORE),
    )
    found = run(steps, FRAME.slice(0, 1), lenient=True)
    assert (found.kept, found.unknown) == (None, {"n"})
    kind, problem = found.problem
    assert kind == "filter"  # goes before fields, which another plan might compute after it
    assert " > 0 raised conversion " in str(problem)
    assert computed(*steps, step("filter", pl.col("m") > 2, fields=MORE), lenient=True)[1] == []
    assert run(steps[:1], FRAME.slice(0, 1), lenient=True).problem[0] == "with_columns"
