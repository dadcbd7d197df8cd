"""Where the messages of a row go, what stays of it, and what becomes of blocks."""

from functools import partial

import pytest

from zephon.exec.bad_row import BadRow
from zephon.exec.operators.normalize_chat import Normalizer
from zephon.planner.logical.functions import NormalizeChat, RowFunction

TURNS = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]
MESSAGES = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def normalized(row, format="sharegpt", on_block=None, **settings):  # noqa: A002
    function = None if on_block is None else RowFunction(function=on_block)
    return Normalizer(NormalizeChat(format=format, on_block=function, **settings))(row)


def test_what_messages_are_made_of_goes_and_the_rest_stays():
    row = {"id": 3, "conversations": TURNS, "system": None, "tools": [{"a": 1}]}
    made = normalized(row)
    assert made == {"id": 3, "tools": [{"a": 1}], "messages": MESSAGES}
    assert made["tools"] is row["tools"]
    assert row == {"id": 3, "conversations": TURNS, "system": None, "tools": [{"a": 1}]}
    row = {"instruction": "a", "input": "", "output": "b", "history": [], "system": "", "k": 1}
    assert normalized(row, "alpaca") == {"k": 1, "messages": MESSAGES}


def test_the_source_is_kept_where_that_is_asked_for():
    row = {"conversations": TURNS, "system": ""}
    assert normalized(row, keep_source=True) == {**row, "messages": MESSAGES}
    row = {"prompt": "a", "completion": "b"}
    made = normalized(row, "prompt_completion", keep_source=True, field_out="prompt")
    assert made == {"prompt": MESSAGES, "completion": "b"}


def test_messages_may_stand_where_their_source_was():
    row = {"a": 1, "conversations": TURNS, "b": 2}
    made = normalized(row, field_out="conversations")
    assert list(made.items()) == [("a", 1), ("conversations", MESSAGES), ("b", 2)]
    row = {"chat": {"turns": TURNS, "n": 2}}
    made = normalized(row, field="chat.turns", field_out="chat.turns")
    assert made == {"chat": {"turns": MESSAGES, "n": 2}}
    assert row == {"chat": {"turns": TURNS, "n": 2}}
    assert normalized(row, field="chat.turns") == {"chat": {"n": 2}, "messages": MESSAGES}
    row = {"messages": MESSAGES, "id": 1}
    assert normalized(row, "messages") == row
    row = {"prompt": "a", "completion": "b", "id": 1}
    assert normalized(row, "prompt_completion", field_out="prompt") == {"id": 1, "prompt": MESSAGES}


def test_another_field_is_not_written_over_unless_it_is_null():
    row = {"conversations": TURNS, "messages": None}
    assert normalized(row) == {"messages": MESSAGES}
    with pytest.raises(BadRow, match="the row must have no field 'messages' yet, and it has"):
        normalized({**row, "messages": []})


def test_words_of_the_user_win():
    row = {"conversations": [{"from": "gpt", "value": "a"}, {"from": "bot", "value": "b"}]}
    made = normalized(row, roles=(("bot", "assistant"), ("gpt", "user")))
    assert made == {"messages": MESSAGES}


IMAGE = {"type": "image", "image": "a.png"}
TEXT = {"type": "text", "text": "see"}


def with_blocks(*blocks):
    return {"messages": [{"role": "user", "content": list(blocks)}, MESSAGES[1]]}


def test_blocks_that_are_no_text_go_to_the_function():
    seen = []

    def told(block):
        seen.append(block)
        return f"<{block['image']}>" if block["image"] else {**block, "image": "none"}

    row = with_blocks(TEXT, IMAGE, "plain", {**IMAGE, "image": ""})
    made = normalized(row, "messages", told)
    assert made["messages"][0]["content"] == [
        TEXT,
        {"type": "text", "text": "<a.png>"},
        "plain",
        {"type": "image", "image": "none"},
    ]
    assert seen == [IMAGE, {**IMAGE, "image": ""}]
    assert made["messages"][1] == MESSAGES[1]
    assert row == with_blocks(TEXT, IMAGE, "plain", {**IMAGE, "image": ""})
    assert normalized(row, "messages") == row


def test_a_function_changes_its_own_copy():
    def spoil(block):
        block["image"] = "spoilt"
        return block

    row = with_blocks(IMAGE)
    assert normalized(row, "messages", spoil)["messages"][0]["content"][0]["image"] == "spoilt"
    assert IMAGE["image"] == "a.png"


def fails(block, why="no"):
    raise ValueError(why)


@pytest.mark.parametrize(
    ("function", "problem", "cause"),
    [
        (
            partial(fails, why="so"),
            "the function 'fails' raised ValueError: so, for block 1 of message 0",
            ValueError,
        ),
        (
            lambda block: None,
            "must return a block or text, got a NoneType, for block 1 of message 0",
            TypeError,
        ),
        (lambda block: [block], "must return a block or text, got a list, for block 1", TypeError),
    ],
)
def test_a_function_that_fails_is_blamed(function, problem, cause):
    with pytest.raises(BadRow) as told:
        normalized(with_blocks(TEXT, IMAGE), "messages", function)
    assert problem in told.value.problem
    assert isinstance(told.value.__cause__, cause)
