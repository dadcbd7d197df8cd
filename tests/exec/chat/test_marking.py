"""What of a conversation is learned, by each way to find it: written out by hand."""

import warnings

import pytest

from tests.chats import (
    ALWAYS,
    BARE,
    CHATML,
    TAGGED,
    THINKING,
    delivered,
    learned,
    pipeline_of,
    said,
    write_tokenizer,
)
from zephon.errors import DataError, PlanError

TWO_TURNS = said("system: be kind", "hi", "hello", "more?", "no")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def found(tokenizer, template, messages, **named):
    named = {"special_tokens": "none", **named}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rows = pipeline_of([messages], tokenizer_id=tokenizer, chat_template=template, **named)
        return [learned(payload) for payload in delivered(rows)]


CHATML_TEXT = (
    "<|start|>system\nbe kind<|stop|>\n<|start|>user\nhi<|stop|>\n<|start|>assistant\n"
    "[[hello<|stop|>\n]]<|start|>user\nmore?<|stop|>\n<|start|>assistant\n[[no<|stop|>\n]]"
)


@pytest.mark.parametrize("source", ["auto", "prefix_diff", "substitution"])
def test_an_answer_is_learned_with_what_ends_its_turn_and_without_its_header(tokenizer, source):
    assert found(tokenizer, CHATML, TWO_TURNS, span_source=source) == [CHATML_TEXT]


@pytest.mark.parametrize("source", ["auto", "generation_tags"])
def test_tags_say_what_is_learned(tokenizer, source):
    assert found(tokenizer, TAGGED, TWO_TURNS, span_source=source) == [
        "<|start|>system\nbe kind<|stop|>\n<|start|>user\nhi<|stop|>\n<|start|>assistant\n"
        "[[hello<|stop|>]]\n<|start|>user\nmore?<|stop|>\n<|start|>assistant\n[[no<|stop|>]]\n"
    ]


def test_a_template_that_drops_earlier_thoughts_is_masked_by_substitution(tokenizer):
    messages = said("hi", "<think>a</think>hello", "more?", "<think>b</think>no")
    text = (
        "<|start|>user\nhi<|stop|>\n<|start|>assistant\n[[hello<|stop|>\n]]<|start|>user\nmore?"
        "<|stop|>\n<|start|>assistant\n[[<think>b</think>no<|stop|>\n]]"
    )
    for source in ("auto", "substitution"):
        assert found(tokenizer, THINKING, messages, span_source=source) == [text]
    with pytest.raises(DataError, match=r"cannot be masked by prefixes.*row 0.*substitution"):
        found(tokenizer, THINKING, messages, span_source="prefix_diff")


def test_a_template_without_headers_is_masked(tokenizer):
    messages = said("hi", "hello", "more?", "no")
    assert found(tokenizer, BARE, messages) == [
        "<|bos|>[INST] hi [/INST] [[hello<|eos|>]][INST] more? [/INST] [[no<|eos|>]]"
    ]
    with pytest.raises(DataError, match="ignores add_generation_prompt"):
        found(tokenizer, BARE, messages, span_source="prefix_diff")


def test_a_prompt_that_always_stands_at_the_end_is_not_learned(tokenizer):
    assert found(tokenizer, ALWAYS, said("hi", "hello", "more?", "no")) == [
        "<|start|>user\nhi<|stop|><|start|>assistant\n[[hello<|stop|>]]<|start|>user\nmore?<|stop|>"
        "<|start|>assistant\n[[no<|stop|>]]<|start|>assistant"
    ]


def test_without_a_template_contents_are_joined(tokenizer):
    named = {"apply_chat_template": False}
    assert found(tokenizer, None, TWO_TURNS, **named) == [
        "be kindhi[[hello<|eos|>]]more?[[no<|eos|>]]"
    ]
    assert found(tokenizer, None, TWO_TURNS, loss_scope="last_span", **named) == [
        "be kindhihello<|eos|>more?[[no<|eos|>]]"
    ]


@pytest.mark.parametrize("source", ["prefix_diff", "substitution"])
def test_a_header_is_learned_where_it_is_asked_for(tokenizer, source):
    text = CHATML_TEXT.replace("<|start|>assistant\n[[", "[[<|start|>assistant\n")
    assert found(tokenizer, CHATML, TWO_TURNS, span_source=source, supervise_header=True) == [text]


LAST = CHATML_TEXT.replace("[[hello<|stop|>\n]]", "hello<|stop|>\n")
CALLED = said("hi", "hello", "more?", "calling", "tool: sun", "assistant: sunny")


def test_scopes(tokenizer):
    assert found(tokenizer, CHATML, TWO_TURNS, loss_scope="last_span") == [LAST]
    after = {"loss_scope": "after_last_user", "span_source": "prefix_diff"}
    assert found(tokenizer, CHATML, TWO_TURNS, **after) == [LAST]
    for template, source in ((CHATML, "prefix_diff"), (CHATML, "substitution"), (TAGGED, "auto")):
        after["span_source"] = source
        (text,) = found(tokenizer, template, CALLED, **after)
        assert [part.partition("<")[0] for part in text.split("[[")[1:]] == ["calling", "sunny"]


def test_after_the_last_user_needs_tags_or_a_way_that_was_chosen(tokenizer):
    with pytest.raises(PlanError, match=r"after_last_user.*prefix_diff"):
        found(tokenizer, CHATML, TWO_TURNS, loss_scope="after_last_user")


def test_answers_that_stand_in_two_places_are_refused(tokenizer):
    twice = "{% for m in messages %}{{ m.content }}|{{ m.content }};{% endfor %}"
    (text,) = found(tokenizer, twice, said("hi", "hello"))
    assert text == "hi|hi;[[hello|hello]];"  # one answer: what differs is one piece
    shuffled = "{% for m in messages|reverse %}{{ m.content }}\n{% endfor %}"
    with pytest.raises(DataError, match="apart from the rest"):
        found(tokenizer, shuffled, said("hi", "hello", "x", "y"))


def test_no_private_letters_left_is_an_error_that_says_so(tokenizer):
    everything = "".join(map(chr, range(0xE000, 0xF8FF)))
    with pytest.raises(DataError, match="private characters"):
        found(tokenizer, BARE, said(everything, "hello"))


def test_multi_byte_characters_are_masked_whole(tokenizer):
    (text,) = found(tokenizer, CHATML, said("größe 🎉", "é🎉ü"))
    assert text.endswith("[[é🎉ü<|stop|>\n]]")
