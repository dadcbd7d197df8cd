"""Rows of tokens and masks: ends, cuts, weights, what is dropped and what is refused."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chats import (
    BARE,
    BOS,
    CHATML,
    EOS,
    TAGGED,
    delivered,
    learned,
    on,
    pipeline_of,
    said,
    write_tokenizer,
)
from zephon import InMemoryShard, Pipeline
from zephon.errors import DataError, DataTypeError, TokenizerError
from zephon.io import Dataset

BOS_ID, EOS_ID = 256, 257


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def found(tokenizer, rows, template=CHATML, **named):
    named = {"special_tokens": "none", "span_source": "prefix_diff", **named}
    if template is None or "{% generation" in template:
        named["span_source"] = "auto"
    return delivered(pipeline_of(rows, tokenizer_id=tokenizer, chat_template=template, **named))


def texts(*given, **named):
    return [learned(payload) for payload in found(*given, **named)]


def test_what_records_hold(tokenizer):
    (payload,) = found(tokenizer, [said("hi", "yes")])
    assert list(payload) == ["input_ids", "loss_mask"]
    assert payload["input_ids"].dtype == np.int64
    assert payload["loss_mask"].dtype == np.uint8
    assert payload["input_ids"].shape == payload["loss_mask"].shape
    assert set(payload["loss_mask"].tolist()) == {0, 1}


def test_the_mask_may_have_another_name_and_rows_may_stay(tokenizer):
    row = {"messages": said("hi", "yes"), "id": 7}
    named = {"mask_field_out": "learned", "preserve_upstream_payload": True}
    (payload,) = found(tokenizer, [row], **named)
    assert list(payload) == ["messages", "id", "input_ids", "learned"]
    assert payload["messages"] == row["messages"]
    assert learned(payload, "learned").endswith("[[yes<|stop|>\n]]")


@pytest.mark.parametrize("length", range(2, 60))
def test_cuts_keep_tokens_and_mask_together(tokenizer, length):
    whole = found(tokenizer, [said("hi", "yes", "more", "no")])[0]
    cut = found(tokenizer, [said("hi", "yes", "more", "no")], max_length=length)
    first = int(np.flatnonzero(whole["loss_mask"])[0])
    assert len(cut) == (length > first)  # nothing learned: dropped
    for payload in cut:
        np.testing.assert_array_equal(payload["input_ids"], whole["input_ids"][:length])
        np.testing.assert_array_equal(payload["loss_mask"], whole["loss_mask"][:length])


def test_an_end_is_put_where_the_template_writes_none_and_there_is_room(tokenizer):
    rows = [said("hi", "yes")]
    assert texts(tokenizer, rows, special_tokens="eos") == [
        "<|start|>user\nhi<|stop|>\n<|start|>assistant\n[[yes<|stop|>\n<|eos|>]]"
    ]
    (whole,) = found(tokenizer, rows)
    for length, ends in ((len(whole["input_ids"]), False), (len(whole["input_ids"]) + 1, True)):
        (payload,) = found(tokenizer, rows, special_tokens="eos", max_length=length)
        assert (payload["input_ids"][-1] == EOS_ID) == ends
    (tagged,) = texts(tokenizer, rows, TAGGED, special_tokens="eos")
    assert tagged.endswith("[[yes<|stop|>]]\n<|eos|>")  # it counts as what stands before it


def test_an_end_that_is_there_is_not_put_again(tokenizer):
    bare = texts(tokenizer, [said("hi", "yes")], BARE, special_tokens="eos",
                 span_source="substitution")  # fmt: skip
    assert bare == ["<|bos|>[INST] hi [/INST] [[yes<|eos|>]]"]
    (spaced,) = texts(tokenizer, [said("hi", "yes")], CHATML.replace("<|stop|>", EOS),
                      special_tokens="eos")  # fmt: skip
    assert spaced.endswith("[[yes<|eos|>\n]]")


@pytest.mark.parametrize("wanted", ["bos", "bos_eos"])
def test_there_is_one_bos(tokenizer, wanted):
    (chatml,) = found(tokenizer, [said("hi", "yes")], special_tokens=wanted)
    bare = {"special_tokens": wanted, "span_source": "substitution"}
    (given,) = found(tokenizer, [said("hi", "yes")], BARE, **bare)
    for payload in (chatml, given):
        assert payload["input_ids"][0] == BOS_ID
        assert (payload["input_ids"] == BOS_ID).sum() == 1
        assert payload["loss_mask"][0] == 0
        assert (payload["input_ids"][-1] == EOS_ID) == (wanted == "bos_eos" or payload is given)
    assert len(found(tokenizer, [said("hi", "yes")], max_length=42, special_tokens=wanted)[0][
        "input_ids"]) <= 42  # fmt: skip


def test_ids_may_be_other_than_the_tokenizers(tokenizer):
    named = {"special_tokens": "bos_eos", "bos_token_id": 65, "eos_token_id": 66}
    (payload,) = found(tokenizer, [said("hi", "yes")], **named)
    assert payload["input_ids"][[0, -1]].tolist() == [65, 66]
    (swapped,) = texts(tokenizer, [said("hi", "yes")], None, eos_token="<|stop|>",
                       apply_chat_template=False)  # fmt: skip
    assert swapped == "hi[[yes<|stop|>]]"
    template = "{{ messages[0].content }}{% generation %}{{ messages[1].content }}"
    template += "{{ eos_token }}{% endgeneration %}"
    assert texts(tokenizer, [said("hi", "yes")], template, eos_token="<|stop|>") == [swapped]
    with pytest.raises(TokenizerError, match="eos_token='<nope>' is no special token"):
        found(tokenizer, [said("hi", "yes")], eos_token="<nope>")


def test_a_tokenizer_without_bos_is_refused_where_one_is_wanted(tmp_path):
    bare = write_tokenizer(tmp_path, bos_token=None)
    with pytest.raises(TokenizerError, match="needs a BOS id"):
        found(bare, [said("hi", "yes")], special_tokens="bos")


def test_a_tokenizer_without_eos_is_refused_where_it_ends_answers(tmp_path):
    bare = write_tokenizer(tmp_path, eos_token=None)
    with pytest.raises(TokenizerError, match="without a template EOS ends an answer"):
        found(bare, [said("hi", "yes")], None, apply_chat_template=False)


def test_two_bos_of_the_data_are_warned_of(tokenizer):
    with pytest.warns(UserWarning, match="two BOS"):
        found(tokenizer, [said(f"system: {BOS}", "hi", "a")], BARE, span_source="substitution")


def test_a_special_token_in_a_message_is_warned_of_once(tokenizer):
    rows = [said("is <|stop|> a token?", "yes"), said("<|stop|>", "no")]
    with pytest.warns(UserWarning) as told:
        found(tokenizer, rows)
    assert len(told) == 1
    assert "'<|stop|>', as in 'is <|stop|> a token?'" in str(told[0].message)


def test_weights_of_messages(tokenizer):
    messages = said("hi", "a", "x", "b", "y", "c")
    messages[1]["loss_weight"], messages[3]["loss_weight"] = 0.5, 0
    for template in (CHATML, TAGGED):
        (payload,) = found(tokenizer, [messages], template, loss_weights=True)
        mask = payload["loss_mask"]
        assert mask.dtype == np.float32
        assert sorted(set(mask.tolist())) == [0.0, 0.5, 1.0]
        halves = bytes(int(t) for t in payload["input_ids"][mask == 0.5] if t < 256)
        assert len(halves) == (2 if template == CHATML else 1)
    (whole,) = found(tokenizer, [messages])
    assert set(whole["loss_mask"].tolist()) == {0, 1}
    messages[1]["loss_weight"] = -1
    with pytest.raises(DataError, match=r"message 1 must have a finite loss_weight.*row 0"):
        found(tokenizer, [messages], loss_weights=True)


def test_rows_of_which_nothing_is_learned_are_dropped_and_counted(tokenizer):
    rows = [said("only"), said("hi", "yes"), said("system: alone"), []]
    with pytest.warns(UserWarning, match=r"no token is learned.*said once"):
        pipeline = pipeline_of(
            rows, tokenizer_id=tokenizer, chat_template=CHATML, span_source="prefix_diff"
        )
        payloads = delivered(pipeline)
    assert len(payloads) == 1


def test_a_row_that_begins_with_what_is_learned_is_refused(tokenizer):
    with pytest.raises(DataError, match=r"first token.*row 1"):
        texts(tokenizer, [said("hi", "yes"), said("assistant: first")], None,
              apply_chat_template=False)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "kind", "said_of_it"),
    [
        ({"text": "x"}, DataError, "no field 'messages'; the row has text"),
        ({"messages": "hi"}, DataTypeError, "must be a list of messages, got a str"),
        ({"messages": ["hi"]}, DataTypeError, "message 0 .* must be a dict with a role, got a str"),
        ({"messages": [{"content": "x"}]}, DataTypeError, "and it has content"),
        ({"messages": [{"role": 1, "content": "x"}]}, DataTypeError, "with a role, got role 1"),
        ({"messages": said("a", "b"), "tools": "[]"}, DataTypeError, "list of tools, got a str"),
        ({"messages": said("a", "b"), "tools": {}}, DataTypeError, "list of tools, got a dict"),
        ({"messages": said("a", "\ud800")}, DataError, "half a character"),
        ("text", DataTypeError, "a row must be a dict"),
    ],
)
def test_bad_rows_are_named(tokenizer, row, kind, said_of_it):
    named = {"tokenizer_id": tokenizer, "chat_template": CHATML, "span_source": "prefix_diff"}
    data = Dataset.from_dict("chats", {0: InMemoryShard([row])})
    with pytest.raises(kind, match=f"{said_of_it}.*row 0"):
        delivered(on(data, **named))


def test_a_template_that_raises_is_named_with_its_line(tokenizer):
    template = "{% for m in messages %}\n{{ raise_exception('no ' + m.role) }}{% endfor %}"
    with pytest.raises(DataError, match=r"line 2: .*no user.*row 0"):
        texts(tokenizer, [said("hi", "yes")], template)


def test_tools_and_thinking_reach_the_template(tokenizer):
    template = (
        "{{ tools|tojson if tools else 'none' }}|{{ enable_thinking|default('unset') }}|"
        "{{ extra|default('') }}|" + CHATML
    )
    rows = [
        {"messages": said("hi", "yes"), "tools": [{"name": "größe"}], "enable_thinking": False},
        {"messages": said("hi", "yes"), "tools": None, "enable_thinking": None},
        {"messages": said("hi", "yes"), "meta": {"tools": [1]}},
    ]
    made = texts(tokenizer, rows, template, chat_template_kwargs={"extra": [1, "x"]})
    heads = [text.partition("<|start|>")[0] for text in made]
    assert heads == [
        '[{"name": "größe"}]|False|[1, \'x\']|',
        "none|unset|[1, 'x']|",
        "none|unset|[1, 'x']|",
    ]
    dotted = texts(tokenizer, rows[2:], template, tools_field="meta.tools")
    assert dotted[0].startswith("[1]|unset")
    never = texts(tokenizer, rows[:1], template, tools_field=None, enable_thinking_field=None)
    assert never[0].startswith("none|unset")


TOOLS = [
    [{"name": "f", "parameters": {"a": {"type": "int"}}}],
    [{"name": "g", "parameters": {"b": {"type": "str"}}}],
]


def test_parquet_gives_the_text_of_json_lines(tokenizer, tmp_path):
    rows = [{"messages": said("hi", "yes"), "tools": tools} for tools in TOOLS]
    template = "{{ tools|tojson }}" + CHATML
    wanted = texts(tokenizer, rows, template)
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines/a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "columns").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "columns/a.parquet")
    named = {
        "tokenizer_id": tokenizer,
        "chat_template": template,
        "special_tokens": "none",
        "span_source": "prefix_diff",
    }
    lines = on(Dataset.from_path("lines", tmp_path / "lines"), **named)
    assert [learned(payload) for payload in delivered(lines)] == wanted
    columns = Dataset.from_path("columns", tmp_path / "columns")
    with pytest.warns(UserWarning, match="null in a Parquet dataset"):
        assert [learned(payload) for payload in delivered(on(columns, **named))] == wanted
    kept = delivered(on(columns, null_fields="keep", **named))
    assert '{"a": {"type": "int"}, "b": null}' in learned(kept[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(on(columns, null_fields="keep", **named), Pipeline)


def test_a_null_that_was_written_stays(tokenizer):
    rows = [{"messages": said("hi", "yes"), "tools": [{"a": None}]}]
    (text,) = texts(tokenizer, rows, "{{ tools|tojson }}" + CHATML)
    assert text.startswith('[{"a": null}]')
