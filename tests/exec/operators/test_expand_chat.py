"""Which rows a conversation becomes, and what is no conversation."""

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import DataError, DataTypeError
from zephon.exec.bad_row import BadRow
from zephon.exec.operators.expand_chat import answered_turns
from zephon.io.formats.arrow_rows import TableRows


def messages(roles):
    names = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
    return [{"role": names[role], "content": ""} for role in roles]


@pytest.mark.parametrize(
    ("roles", "found"),
    [
        ("ua", [(0, "ua")]),
        ("suauaa", [(0, "sua"), (1, "suauaa")]),
        ("uatatuas", [(0, "uatat"), (1, "uatatuas")]),
        ("uua", [(1, "uua")]),
        ("uau", [(0, "ua")]),
        ("uauua", [(0, "ua"), (2, "uauua")]),
        ("ut", []),
        ("au", []),
        ("sa", []),
        ("", []),
    ],
)
def test_each_answered_turn_is_the_conversation_up_to_the_next_user(roles, found):
    made = answered_turns({"messages": messages(roles)}, "messages")
    assert made == [(turn, {"messages": messages(prefix)}) for turn, prefix in found]


def test_the_rest_of_the_row_stays_and_siblings_share_nothing():
    row = {"messages": messages("uaua"), "about": {"x": [1]}}
    (_, first), (_, second) = answered_turns(row, "messages")
    first["about"]["x"].append(2)
    first["messages"][0]["content"] = "changed"
    assert second == {"messages": messages("uaua"), "about": {"x": [1]}}


def test_a_dotted_path_leads_into_objects_unless_a_field_has_that_name():
    row = {"chat": {"turns": messages("uaua"), "id": 3}, "x": 1}
    made = answered_turns(row, "chat.turns")
    assert made[0] == (0, {"chat": {"turns": messages("ua"), "id": 3}, "x": 1})
    row = {"chat": {"turns": 5}, "chat.turns": messages("ua")}
    assert answered_turns(row, "chat.turns") == [(0, row)]


def test_lists_of_any_make_are_read():
    row = {"messages": tuple(messages("ua"))}
    assert answered_turns(row, "messages")[0][1] == {"messages": messages("ua")}
    row = {"messages": np.array(messages("ua"), object)}
    assert answered_turns(row, "messages")[0][1] == {"messages": messages("ua")}
    table = pa.table({"messages": [messages("uaua")]})
    made = answered_turns(TableRows(table).row(0), "messages")
    assert [row["messages"] for _, row in made] == [messages("ua"), messages("uaua")]


@pytest.mark.parametrize(
    ("row", "kind", "problem"),
    [
        ([], DataTypeError, "a row must be a dict with a field 'm', got a list"),
        ({"n": 1}, DataError, "no field 'm'; the row has n"),
        ({}, DataError, "no field 'm'; the row has no fields"),
        ({"m": "ua"}, DataTypeError, "field 'm' must be a list of messages, got a str"),
        ({"m": None}, DataTypeError, "field 'm' must be a list of messages, got a NoneType"),
        ({"m": {}}, DataTypeError, "field 'm' must be a list of messages, got a dict"),
        ({"m": ["hi"]}, DataTypeError, "message 0 of field 'm' must be a dict with a role"),
        ({"m": [{}]}, DataError, "message 0 of field 'm' must have a known role, and it has none"),
        ({"m": [{"role": "usr"}]}, DataError, "message 0 of field 'm' must have a known role, got"),
        ({"m": [{"role": 3}]}, DataError, "message 0 of field 'm' must have a known role, got 3"),
    ],
)
def test_what_is_no_conversation_is_a_bad_row(row, kind, problem):
    with pytest.raises(BadRow) as told:
        answered_turns(row, "m")
    assert told.value.problem.startswith(problem)
    assert told.value.kind is kind


def test_a_role_that_is_nearly_right_is_named():
    with pytest.raises(BadRow) as told:
        answered_turns({"m": [{"role": "assistent"}]}, "m")
    assert told.value.way_out == "did you mean 'assistant'?"
