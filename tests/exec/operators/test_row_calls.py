"""Calls on one row, one after the other."""

from functools import partial

import pytest

from zephon.exec.bad_row import BadRow
from zephon.exec.operators.row_calls import DROPPED, RowCalls
from zephon.planner.logical.functions import DecodeText, ExpandChat, MapTransform, RowFunction


def maps(*functions, drop_none=True):
    made = tuple(RowFunction(function=each, drop_none=drop_none) for each in functions)
    return MapTransform(functions=made)


def chat(*roles):
    return {"messages": [{"role": role} for role in roles]}


def test_a_row_goes_through_all_calls():
    calls = RowCalls((DecodeText(), maps(lambda row: row["text"], len)))
    assert not calls.expands
    assert calls.one({"text": b"a\r\nb"}) == 3
    assert calls.several({"text": b"a"}) == [((), 1)]


def test_none_drops_or_leaves_a_row():
    def forget(row):
        row.clear()

    assert RowCalls((maps(forget),)).one({"a": 1}) is DROPPED
    assert RowCalls((maps(forget),)).several({"a": 1}) == []
    assert RowCalls((maps(forget, drop_none=False),)).one({"a": 1}) == {"a": 1}


def test_lineages_go_down_from_call_to_call():
    again = maps(lambda row: chat("user", "assistant", "user", "assistant"))
    calls = RowCalls((ExpandChat(), again, ExpandChat(), maps(lambda row: len(row["messages"]))))
    assert calls.expands
    row = chat("user", "assistant", "user", "assistant")
    found = [((0, 0), 2), ((0, 1), 4), ((1, 0), 2), ((1, 1), 4)]
    assert calls.several(row) == found
    assert calls.several(chat("user", "assistant")) == [((0,), 2), ((1,), 4)]


class Length:
    def __call__(self, row):
        return len(row)


@pytest.mark.parametrize(
    ("function", "name"), [(partial(partial(len)), "len"), (Length(), "Length"), (int, "int")]
)
def test_errors_name_the_function(function, name):
    with pytest.raises(BadRow, match=f"the function '{name}' raised TypeError") as told:
        RowCalls((maps(function),)).one(None)
    assert told.value.step == "map_transform"
    assert isinstance(told.value.__cause__, TypeError)


def test_what_is_raised_without_a_text_is_named_alone():
    def stop(row):
        raise StopIteration

    with pytest.raises(BadRow) as told:
        RowCalls((maps(stop),)).one(None)
    assert told.value.problem.endswith(".stop' raised StopIteration")


def test_a_function_gets_a_row_of_its_own_each_time():
    shared = {"seen": []}
    given = []

    def share(row):
        given.append(row)
        return shared

    def change(row):
        row["seen"].append(1)

    row = {"a": 1}
    for more in (maps(change, drop_none=False), maps(lambda row: change(row) or row)):
        calls = RowCalls((maps(share), more))
        for _ in range(2):
            calls.one(row)
            calls.several(row)
        assert shared == {"seen": []}
    assert all(each is row for each in given)  # it was given away
    assert RowCalls((maps(share),)).one(row) is shared  # nobody comes after it


async def awaited():
    return {}


@pytest.mark.parametrize(
    ("made", "kind"), [(awaited, "coroutine"), (lambda: (x for x in ()), "generator")]
)
def test_something_that_must_still_be_run_is_no_row(made, kind):
    with pytest.raises(BadRow, match=f"must return a row, got a {kind}") as told:
        RowCalls((maps(lambda row: made()),)).one({})
    assert isinstance(told.value.__cause__, TypeError)
