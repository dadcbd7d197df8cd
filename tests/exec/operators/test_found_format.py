"""By what a row is known to be of a format, and when that is not sure."""

import pytest

from zephon.errors import DataTypeError
from zephon.exec.bad_row import BadRow
from zephon.exec.operators.found_format import found_format

ROLE = {"role": "user", "content": "a"}
FROM = {"from": "human", "value": "a"}
NULLS = {"messages": None, "conversations": None, "instruction": None, "prompt": None}


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"messages": [ROLE]}, ("messages", "messages")),
        ({"messages": [FROM]}, ("sharegpt", "messages")),
        ({"messages": []}, ("messages", "messages")),
        ({"conversations": [FROM, {**FROM, "role": None}]}, ("sharegpt", "conversations")),
        ({"conversations": [ROLE]}, ("messages", "conversations")),
        ({"conversations": []}, ("sharegpt", "conversations")),
        ({"conversations": [FROM], "system": "s"}, ("sharegpt", "conversations")),
        ({"messages": [ROLE], "system": ""}, ("messages", "messages")),
        ({"messages": [ROLE], "output": "a", "input": "b"}, ("messages", "messages")),
        ({"instruction": "a", "output": "b", "system": "s"}, ("alpaca", None)),
        ({"prompt": "a", "completion": "b"}, ("prompt_completion", None)),
        ({"prompt": [ROLE], "completion": [ROLE]}, ("prompt_completion", None)),
    ],
)
def test_fields_and_keys_tell(row, found):
    assert found_format(row, None) == found
    assert found_format({**NULLS, **row}, None) == found


def test_a_field_that_is_named_is_looked_at_alone():
    row = {"turns": {"all": [FROM]}, "messages": [ROLE], "prompt": "a"}
    assert found_format(row, "turns.all") == ("sharegpt", "turns.all")
    assert found_format(row, "messages") == ("messages", "messages")


@pytest.mark.parametrize(
    ("row", "problem", "way_out"),
    [
        (
            {"messages": [ROLE], "prompt": "a"},
            "format='auto' must find the fields of one format, got messages (messages), prompt "
            "(prompt_completion)",
            "pass the right one: format='messages' or format='prompt_completion'",
        ),
        (
            {"conversations": [FROM], "instruction": "a"},
            "format='auto' must find the fields of one format, got conversations (sharegpt), "
            "instruction (alpaca)",
            "pass the right one: format='sharegpt' or format='alpaca'",
        ),
        (
            {"messages": [ROLE], "conversations": [ROLE]},
            "format='auto' must find the fields of one format, got messages (messages), "
            "conversations (sharegpt)",
            "pass the right one",
        ),
        (
            {"messages": [ROLE], "system": "s"},
            "format='auto' must find the fields of one format, got messages (messages), system "
            "(sharegpt)",
            "pass the right one: format='messages' or format='sharegpt'",
        ),
        (
            {"text": "a", "output": "b", "messages": None},
            "format='auto' must find one of messages, conversations, instruction, prompt, "
            "completion; the row has text, output",
            "pass format= and field=, or make such fields with map_transform",
        ),
        (
            {"messages": [ROLE, {**ROLE, **FROM}]},
            "message 1 of field 'messages' must have either role and content or from and value, "
            "got role, content, from, value",
            "mend the row",
        ),
        (
            {"messages": [{"text": "a"}]},
            "message 0 of field 'messages' must have either role and content or from and value, "
            "got text",
            "mend the row",
        ),
        (
            {"conversations": [FROM, FROM, ROLE]},
            "all messages of field 'conversations' must have the same keys, got from and value in "
            "message 0, and role and content in message 2",
            "mend the row",
        ),
        ({"messages": "a"}, "field 'messages' must be a list of messages, got a str", "name"),
    ],
)
def test_what_is_not_sure_is_refused(row, problem, way_out):
    with pytest.raises(BadRow) as told:
        found_format(row, None)
    assert told.value.problem == problem
    assert told.value.way_out.startswith(way_out)


def test_a_message_must_be_a_dict():
    with pytest.raises(BadRow, match="message 0 of field 'a' must be a dict with role") as told:
        found_format({"a": ["x"]}, "a")
    assert told.value.kind is DataTypeError
