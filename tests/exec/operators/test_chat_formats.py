"""What messages a row of each format gives, and which rows are of none."""

import numpy as np
import pytest

from zephon.errors import DataError, DataTypeError
from zephon.exec.bad_row import BadRow
from zephon.exec.operators.chat_formats import conversation_of
from zephon.planner.logical.functions import ROLE_WORDS

BLOCKS = [{"type": "text", "text": "hi"}, {"type": "image", "image": "a.png"}]


def says(role, content, **more):
    return {"role": role, "content": content, **more}


def made(row, format, field=None, words=ROLE_WORDS):  # noqa: A002
    return conversation_of(row, format, field, words)[0]


def refused(row, format, field=None):  # noqa: A002
    with pytest.raises(BadRow) as told:
        conversation_of(row, format, field, ROLE_WORDS)
    assert told.value.step == "normalize_chat"
    return told.value


def test_words_of_sharegpt_become_roles():
    words = {
        "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant",
        "chatgpt": "assistant", "system": "system", "tool": "tool", "observation": "tool",
        "function_call": "assistant", "function": "function", "developer": "developer",
    }  # fmt: skip
    assert words == ROLE_WORDS
    row = {"conversations": [{"from": word, "value": word} for word in words]}
    assert made(row, "sharegpt") == [says(role, word) for word, role in words.items()]


def test_contents_and_further_keys_go_over_as_they_are():
    turn = {"weight": 0, "from": "gpt", "value": BLOCKS, "name": None, "tool_calls": [{"a": 1.0}]}
    (message,) = made({"conversations": [turn]}, "sharegpt")
    assert message == says("assistant", BLOCKS, weight=0, name=None, tool_calls=[{"a": 1.0}])
    assert message["content"] is BLOCKS
    for value in ("", None, 3, {"a": 1}):
        assert made({"conversations": [{"from": "gpt", "value": value}]}, "sharegpt") == [
            says("assistant", value)
        ]


def test_keys_of_the_other_form_that_are_null_are_not_there():
    turn = {"from": "gpt", "value": "a", "role": None, "content": None}
    assert made({"conversations": [turn]}, "sharegpt") == [says("assistant", "a")]


def test_a_system_of_the_row_comes_first():
    turns = [{"from": "human", "value": "a"}]
    messages, sources = conversation_of(
        {"conversations": turns, "system": "be brief"}, "sharegpt", None, ROLE_WORDS
    )
    assert messages == [says("system", "be brief"), says("user", "a")]
    assert sources == [("conversations",), ("system",)]
    for system in ("", None):
        assert made({"conversations": turns, "system": system}, "sharegpt") == [says("user", "a")]


@pytest.mark.parametrize(
    ("row", "messages"),
    [
        ({"input": "b"}, [says("user", "a\n\nb")]),
        ({"input": ""}, [says("user", "a")]),
        ({"input": None}, [says("user", "a")]),
        ({}, [says("user", "a")]),
        ({"input": " "}, [says("user", "a\n\n ")]),
        ({"instruction": "", "input": "b"}, [says("user", "b")]),
        ({"system": "s"}, [says("system", "s"), says("user", "a")]),
        ({"system": ""}, [says("user", "a")]),
        (
            {"history": [["q", "r"], ("t", "")], "system": "s"},
            [
                says("system", "s"),
                *(says("user", "q"), says("assistant", "r")),
                *(says("user", "t"), says("assistant", "")),
                says("user", "a"),
            ],
        ),
        ({"history": np.array([["q", "r"]], object)}, [
            says("user", "q"), says("assistant", "r"), says("user", "a"),
        ]),
        ({"history": None}, [says("user", "a")]),
        ({"history": []}, [says("user", "a")]),
    ],
)  # fmt: skip
def test_an_instruction_and_its_input_are_the_users(row, messages):
    row = {"instruction": "a", "output": "c", "id": 1, **row}
    found, sources = conversation_of(row, "alpaca", None, ROLE_WORDS)
    assert found == [*messages, says("assistant", "c")]
    assert {name for (name,) in sources} == row.keys() - {"id"}


def test_prompts_and_completions_are_texts_or_messages():
    assert made({"prompt": "a", "completion": "b"}, "prompt_completion") == [
        says("user", "a"),
        says("assistant", "b"),
    ]
    prompt = [says("system", "s"), says("user", BLOCKS, name="n")]
    row = {"prompt": prompt, "completion": [says("gpt", "b", loss_weight=0.5)]}
    assert made(row, "prompt_completion") == [*prompt, says("assistant", "b", loss_weight=0.5)]


def test_messages_are_checked_and_pass():
    messages = [
        says("system", "s"),
        says("user", BLOCKS),
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
        says("tool", None, name="f"),
        says("function", 3, **{"from": "x"}),
    ]
    found = made({"messages": messages}, "messages")
    assert found == messages
    assert all(one is other for one, other in zip(found, messages, strict=True))
    assert made({"a": {"b": (says("human", "x"),)}}, "messages", "a.b") == [says("user", "x")]


def test_words_of_the_user_are_known_too():
    words = {**ROLE_WORDS, "bot": "assistant"}
    row = {"turns": [{"from": "bot", "value": "a"}]}
    assert made(row, "sharegpt", "turns", words) == [says("assistant", "a")]


@pytest.mark.parametrize(
    ("row", "format", "kind", "problem", "way_out"),
    [
        (3, "sharegpt", DataTypeError, "a row must be a dict with a field 'conversations'", "make"),
        ({"a": 1}, "messages", DataError, "no field 'messages'; the row has a", "name another"),
        (
            {"conversations": "a"}, "sharegpt", DataTypeError,
            "field 'conversations' must be a list of messages, got a str",
            "name another field, or read its JSON with map_transform before",
        ),
        (
            {"conversations": ["a"]}, "sharegpt", DataTypeError,
            "message 0 of field 'conversations' must be a dict with from and value, got a str", "",
        ),
        (
            {"conversations": [{"from": "humna", "value": ""}]}, "sharegpt", DataError,
            "message 0 of field 'conversations' must have a known word for its role, got 'humna'",
            "write one that is known (did you mean 'human'?), or add it, as in roles={'bot':",
        ),
        (
            {"conversations": [{"from": 3, "value": ""}]}, "sharegpt", DataError,
            "message 0 of field 'conversations' must have a known word for its role, got 3",
            "write one that is known (known are: system, developer, user, assistant, tool, functio",
        ),
        (
            {"conversations": [says("user", "a")]}, "sharegpt", DataError,
            "message 0 of field 'conversations' must have from and value, got role, content",
            "pass format='messages', field='conversations'",
        ),
        (
            {"messages": [{"from": "human", "value": "a", "role": None}]}, "messages", DataError,
            "message 0 of field 'messages' must have role and content, got from, value",
            "pass format='sharegpt', field='messages'",
        ),
        (
            {"conversations": [{"from": "gpt", "value": "", "role": "user"}]}, "sharegpt",
            DataError, "message 0 of field 'conversations' must have from and value, got from, va",
            "mend the row",
        ),
        (
            {"conversations": [{"from": "gpt", "text": ""}]}, "sharegpt", DataError,
            "message 0 of field 'conversations' must have from and value, got from, text",
            "mend the row",
        ),
        (
            {"messages": [{"role": "user"}]}, "messages", DataError,
            "message 0 of field 'messages' must have content or tool_calls, got role", "mend",
        ),
        (
            {"messages": [{}]}, "messages", DataError,
            "message 0 of field 'messages' must have role and content, got none", "mend the row",
        ),
        (
            {"conversations": [{"from": "system", "value": "a"}], "system": "b"}, "sharegpt",
            DataError, "one system message must begin a conversation, got field 'system' and mess",
            "leave one of them out",
        ),
        ({"instruction": "a"}, "alpaca", DataError, "no field 'output'; the row has instr", "name"),
        (
            {"instruction": "a", "output": None}, "alpaca", DataTypeError,
            "field 'output' must be text, got a NoneType", "",
        ),
        (
            {"instruction": ["a"], "output": ""}, "alpaca", DataTypeError,
            "field 'instruction' must be text, got a list", "",
        ),
        (
            {"instruction": "a", "output": "", "input": 3}, "alpaca", DataTypeError,
            "field 'input' must be text, got a int", "",
        ),
        (
            {"instruction": "a", "output": "", "history": "b"}, "alpaca", DataTypeError,
            "field 'history' must be a list of pairs of texts, got a str", "",
        ),
        (
            {"instruction": "a", "output": "", "history": [["b", "c", "d"]]}, "alpaca",
            DataTypeError, "item 0 of field 'history' must be a pair of texts, got a list", "",
        ),
        (
            {"instruction": "a", "output": "", "history": ["bc"]}, "alpaca",
            DataTypeError, "item 0 of field 'history' must be a pair of texts, got a str", "",
        ),
        (
            {"prompt": "a"}, "prompt_completion", DataError,
            "no field 'completion'; the row has prompt", "name another",
        ),
        (
            {"prompt": "a", "completion": []}, "prompt_completion", DataTypeError,
            "fields 'prompt' and 'completion' must both be text, or both lists of messages, got "
            "a str and a list", "",
        ),
        (
            {"prompt": [says("user", "a")], "completion": None}, "prompt_completion", DataTypeError,
            "field 'completion' must be a list of messages, got a NoneType",
            "name another field, or mend the row",
        ),
    ],
)  # fmt: skip
def test_what_is_not_of_the_format_is_a_bad_row(row, format, kind, problem, way_out):  # noqa: A002
    told = refused(row, format)
    assert told.problem.startswith(problem)
    assert told.way_out.startswith(way_out)
    assert told.kind is kind
