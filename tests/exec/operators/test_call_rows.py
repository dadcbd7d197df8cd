"""Functions on whole rows: what they get, what becomes of what they return, what they raise."""

import threading
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.exec.operators.morsels import children, lineages, morsel, naming, refs
from tests.threads_inside import counting
from zephon.errors import DataError, DataTypeError
from zephon.exec.block import DROPPED
from zephon.exec.operator import Operator, RowError
from zephon.exec.operators import CallRowsOp
from zephon.exec.segment import Segment
from zephon.planner import physical
from zephon.planner.logical.functions import DecodeText, ExpandChat, MapTransform, RowFunction
from zephon.planner.physical import RowLayout
from zephon.types import SampleMeta


def maps(*functions, drop_none=True):
    return MapTransform(
        functions=tuple(RowFunction(function=f, drop_none=drop_none) for f in functions)
    )


def operator(*calls, at_once=1, **more):
    return CallRowsOp(physical.CallRows(calls=calls, **more), naming, at_once=at_once)


def called(rows, *calls, **more):
    return operator(*calls, **more).run(rows)


def turns(*roles):
    return {"messages": [{"role": role, "content": str(at)} for at, role in enumerate(roles)]}


def test_functions_run_one_after_the_other_on_rows_of_their_own():
    rows = [{"n": 1, "in": [0]}, {"n": 2, "in": [0]}]

    def change(row):
        row["in"].append(row["n"])
        return row

    made = called(morsel(rows), maps(change, lambda row: (row["n"], row["in"])))
    assert made.payload.rows() == [(1, [0, 1]), (2, [0, 2])]
    assert rows == [{"n": 1, "in": [0]}, {"n": 2, "in": [0]}]
    assert (made.columns.num_columns, made.columns.num_rows, made.frame) == (0, 2, None)
    assert not made.payload.has_metas


def test_who_looks_at_a_made_row_gets_a_copy():
    shared = {"x": [1]}
    made = called(morsel([{}, {}]), maps(lambda row: shared))
    made.payload.row(0)["x"].append(2)
    made.payload.rows()[1]["x"].append(2)
    assert made.payload.rows() == [{"x": [1]}, {"x": [1]}]


def test_none_drops_a_row_and_later_functions_do_not_see_it():
    seen = []
    rows = morsel([{"n": n} for n in range(5)], measures={"length": [5, 6, 7, 8, 9]})
    made = called(
        rows, maps(lambda row: row if row["n"] % 2 else None, lambda row: seen.append(row) or row)
    )
    assert made.payload.rows() == seen == [{"n": 1}, {"n": 3}]
    assert made.refs.row.tolist() == [1, 3]
    assert made.measures["length"].tolist() == [6, 8]
    assert made.lost.refs.row.tolist() == [0, 2, 4]
    assert made.lost.reason.tolist() == [DROPPED] * 3


def test_none_may_also_leave_a_row_as_it_was():
    def spoil(row):
        row["n"] = [9]
        row["in"].append(9)

    made = called(morsel([{"n": 1, "in": []}]), maps(spoil, drop_none=False))
    assert made.payload.rows() == [{"n": 1, "in": []}]
    assert len(made.lost) == 0


def test_a_function_gets_tokens_over_the_row():
    rows = morsel([{"text": "a"}, {"text": "b"}], input_ids=[[1, 2], [3]])
    made = called(
        rows, maps(lambda row: row), token_fields=("input_ids",), masks=("attention_mask",)
    )
    assert made.payload.rows() == [
        {"text": "a", "input_ids": [1, 2], "attention_mask": [1, 1]},
        {"text": "b", "input_ids": [3], "attention_mask": [1]},
    ]
    rows = called(morsel([{}], input_ids=[[1]]), maps(type), token_fields=("input_ids",))
    assert rows.payload.rows() == [dict]


def test_rows_that_say_who_they_are_go_on_saying_it():
    metas = [SampleMeta((0, 0, n), 3, n, tags={"kept": n}) for n in range(3)]
    made = called(morsel([1, 2, 3], metas), maps(lambda row: None if row == 2 else -row))
    assert made.payload.rows() == [-1, -3]
    assert [made.payload.meta(i) for i in range(2)] == [metas[0], metas[2]]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda row: row["x"], "test_what_a_function_raises_names_it.<lambda>"),
        (partial(int, base=5), "int"),
    ],
)
def test_what_a_function_raises_names_it(function, name):
    name = "<lambda>" if "lambda" in name else name
    rows = morsel([{"x": 1}, {"y": 1}])
    if isinstance(function, partial):
        rows = morsel(["1", "x"])
    with pytest.raises(RowError, match=f"the function '{name}' raised") as told:
        called(rows, maps(function))
    assert (told.value.row, told.value.step) == (1, "map_transform")
    assert told.value.__cause__ is not None


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_passes(stop):
    def end(row):
        raise stop

    with pytest.raises(stop):
        called(morsel([{}]), maps(end))


def test_a_conversation_becomes_children_of_its_row():
    rows = [
        turns("user", "assistant", "user", "assistant"),
        turns("user", "assistant"),
        turns("user"),
        turns("user", "user", "assistant", "user", "assistant"),
    ]
    with pytest.warns(UserWarning, match="expand_chat: a conversation") as told:
        made = called(morsel(rows, measures={"length": [1, 2, 3, 4]}), ExpandChat())
    assert len(told) == 1
    assert [len(row["messages"]) for row in made.payload.rows()] == [2, 4, 2, 3, 5]
    assert lineages(made) == [(0,), (1,), (), (1,), (2,)]
    assert children(made) == [
        (0, 0, False),
        (0, 1, True),
        (1, 0, True),
        (3, 0, False),
        (3, 1, True),
    ]
    assert made.measures["length"].tolist() == [1, 1, 2, 4, 4]
    assert made.lost.refs.row.tolist() == [2]
    metas = [made.payload.meta(i) for i in range(5)]
    assert [meta.sample_id[2] for meta in metas] == [100, 100, 101, 103, 103]
    assert [meta.component_sample_counts[0] for meta in metas] == [0, 1, 1, 0, 1]


def test_that_conversations_give_nothing_is_said_once():
    expand = operator(ExpandChat())
    with pytest.warns(UserWarning, match="said once"):
        expand.run(morsel([turns("user")]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(expand.run(morsel([turns("system")])).refs) == 0


def test_functions_after_a_conversation_see_each_turn():
    rows = [turns("user", "assistant", "user", "assistant", "user", "assistant")] * 2
    made = called(
        morsel(rows),
        ExpandChat(),
        maps(lambda row: None if len(row["messages"]) == 6 else len(row["messages"])),
    )
    assert made.payload.rows() == [2, 4, 2, 4]
    assert lineages(made) == [(0,), (1,), (0,), (1,)]
    assert children(made) == [(0, 0, False), (0, 1, True), (1, 0, False), (1, 1, True)]
    counts = [made.payload.meta(i).component_sample_counts for i in range(4)]
    assert counts == [{0: 0}, {0: 1}] * 2


def test_a_conversation_of_a_row_that_has_a_lineage_goes_below_it():
    meta = SampleMeta((0, 0, 0), 0, 0, lineage=(4,))
    made = called(morsel([turns("user", "assistant", "user", "assistant")], [meta]), ExpandChat())
    assert lineages(made) == [(4, 0), (4, 1)]


@pytest.mark.parametrize(
    ("calls", "row", "kind", "problem"),
    [
        ((DecodeText(),), 3, DataTypeError, "a row must be a dict, got a int"),
        ((ExpandChat(),), 3, DataTypeError, "a row must be a dict with a field 'messages'"),
        ((ExpandChat(),), {"a": 1}, DataError, "no field 'messages'; the row has a"),
    ],
)
def test_rows_that_a_call_cannot_take(calls, row, kind, problem):
    with pytest.raises(RowError) as told:
        called(morsel([{**turns("user", "assistant"), "text": ""}, row]), *calls)
    assert told.value.row == 1
    assert told.value.problem.startswith(problem)
    assert (told.value.step, told.value.kind) == (calls[0].call, kind)
    assert told.value.__cause__ is None


def test_no_rows_give_no_rows():
    for calls in ((maps(len),), (ExpandChat(),)):
        made = called(morsel([]), *calls)
        assert (len(made.refs), len(made.payload), made.columns.num_rows) == (0, 0, 0)


def test_so_many_threads_are_inside_at_once():
    count, most = counting(seconds=0.005)
    shared = operator(maps(count), at_once=2)
    threads = [threading.Thread(target=shared.run, args=(morsel([{}, {}]),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most() == 2


def test_many_rows_are_decoded_in_turns_and_stay_in_order():
    rows = [{"n": n} for n in range(1000)]
    made = called(
        morsel(rows, input_ids=[[n] for n in range(1000)]),
        maps(lambda row: (row["n"], row["input_ids"])),
        token_fields=("input_ids",),
    )
    assert made.payload.rows() == [(n, [n]) for n in range(1000)]
    assert np.array_equal(made.refs.row, np.arange(1000))


def test_a_bad_row_becomes_a_located_error_that_is_a_type_error():
    class Read(Operator):
        label = "read"

        def run(self, rows):
            payload = morsel([{"text": b"a"}, 5]).payload.take(rows.refs.row)
            return replace(rows, payload=payload)

    segment = Segment(
        [(Read(), operator(DecodeText()))],
        RowLayout(tokens_field=None, payload=True),
        lambda found: f"row {found.row.tolist()}",
    )
    (block,) = segment.run([refs(2)])
    assert block.payload.rows() == [{"text": "a"}]
    assert isinstance(block.failure, TypeError)
    assert isinstance(block.failure, ValueError)
    assert str(block.failure) == (
        "decode_text: a row must be a dict, got a int on row [1]; make dicts of the rows first, "
        "with map_transform"
    )
