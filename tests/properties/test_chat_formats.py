"""A conversation written in any format is the same conversation when it is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.written import dataset, in_order
from zephon import Pipeline
from zephon.exec.chat.struct_nulls import without_null_keys
from zephon.exec.operators.normalize_chat import Normalizer
from zephon.planner.logical.functions import ROLE_WORDS, NormalizeChat

TEXT = st.text(st.characters(), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
)
MORE = st.dictionaries(st.sampled_from(["name", "loss_weight", "tool_calls", "id"]), JSON)
ROLES = ("system", "user", "assistant", "tool")


@st.composite
def messages(draw, roles=ROLES, content=JSON):
    count = draw(st.integers(0, 6))
    return [
        {"role": draw(st.sampled_from(roles)), "content": draw(content), **draw(MORE)}
        for _ in range(count)
    ]


def read(row, form, **settings):
    return Normalizer(NormalizeChat(format=form, **settings))(row)


def turn_of(message, word):
    """Say a message as ShareGPT does."""
    further = {name: each for name, each in message.items() if name not in ("role", "content")}
    return {"from": word, "value": message["content"], **further}


def word_for(draw, role):
    words = [word for word, means in ROLE_WORDS.items() if means == role]
    return draw(st.sampled_from(words))


@given(st.data(), messages(), st.booleans())
def test_sharegpt(data, said, auto):
    turns = [turn_of(each, word_for(data.draw, each["role"])) for each in said]
    row = {"conversations": turns, "id": 1}
    assert read(row, "auto" if auto else "sharegpt") == {"id": 1, "messages": said}


@given(st.data(), messages(), TEXT.filter(bool))
def test_sharegpt_with_a_system_of_the_row(data, said, system):
    said = [each for each in said if each["role"] != "system"]
    turns = [turn_of(each, word_for(data.draw, each["role"])) for each in said]
    made = read({"conversations": turns, "system": system}, "sharegpt")
    assert made == {"messages": [{"role": "system", "content": system}, *said]}


@given(messages(), st.booleans())
def test_messages(said, auto):
    row = {"messages": said, "output": "x"}
    made = read(row, "auto" if auto else "messages")
    assert repr(made) == repr(row)


@given(st.data(), messages())
def test_prompts_and_completions_of_messages(data, said):
    cut = data.draw(st.integers(0, len(said)))
    row = {"prompt": said[:cut], "completion": said[cut:]}
    assert read(row, "prompt_completion") == {"messages": said}
    assert read(row, "auto") == {"messages": said}


@given(TEXT, TEXT)
def test_prompts_and_completions_of_text(prompt, completion):
    row = {"prompt": prompt, "completion": completion}
    said = [("user", prompt), ("assistant", completion)]
    wanted = [{"role": role, "content": content} for role, content in said]
    assert read(row, "prompt_completion") == read(row, "auto") == {"messages": wanted}


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4), TEXT, st.booleans(), st.booleans())
def test_alpaca(pairs, system, lists, auto):
    (asked, answered), history = pairs[-1], pairs[:-1]
    row = {"instruction": asked, "output": answered, "history": history, "system": system}
    if lists:
        row["history"] = list(map(list, history))
    turns = [part for pair in pairs for part in zip(("user", "assistant"), pair, strict=True)]
    turns = [("system", system)] * bool(system) + turns
    wanted = [{"role": role, "content": content} for role, content in turns]
    assert read(row, "auto" if auto else "alpaca") == {"messages": wanted}


SAID = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b", "loss_weight": 0.5},
    {"role": "tool", "content": "c", "name": "f"},
    {"role": "assistant", "content": "d"},
]
PLAIN = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
WORDS = {"user": "human", "assistant": "gpt", "tool": "observation"}
WRITTEN = {
    "messages": ({"messages": SAID}, SAID),
    "sharegpt": (
        {"conversations": [turn_of(each, WORDS[each["role"]]) for each in SAID]},
        SAID,
    ),
    "alpaca": ({"instruction": "a", "input": "", "output": "b", "history": []}, PLAIN),
    "prompt_completion": ({"prompt": SAID[:1], "completion": SAID[1:]}, SAID),
}


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "jsonl.gz", "in_memory"])
@pytest.mark.parametrize("form", WRITTEN)
def test_of_every_kind_of_file(tmp_path, form, kind):
    row, wanted = WRITTEN[form]
    rows = [{**row, "id": i} for i in range(5)]
    source = in_order(dataset(kind, tmp_path, rows))
    for asked in (form, "auto"):
        made = [r.payload for r in Pipeline(source).normalize_chat(format=asked)]
        assert [without_null_keys(each["messages"]) for each in made] == [wanted] * 5
        assert [int(each["id"]) for each in made] == list(range(5))
        assert {name for each in made for name in each} == {"id", "messages"}
