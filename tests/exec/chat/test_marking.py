"""What of a conversation is learned, by each way to find it: written out by hand."""

import warnings

import pytest
import tokenizers

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
from zephon.errors import DataError, DataTypeError, PlanError

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


def test_without_a_template_contents_may_be_blocks_of_text(tokenizer):
    blocks = [{"type": "text", "text": "2 + "}, {"type": "text", "text": "2"}]
    messages = [{"role": "user", "content": blocks}, *said("x", "4")[1:]]
    assert found(tokenizer, None, messages, apply_chat_template=False) == ["2 + 2[[4<|eos|>]]"]
    blocks[1] = {"type": "image"}
    with pytest.raises(DataTypeError, match=r"message 0 must have a text or blocks of .* row 0"):
        found(tokenizer, None, messages, apply_chat_template=False)


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


def test_the_last_span_is_all_that_was_said_without_a_break(tokenizer):
    messages = [*said("hi", "a", "more?", "b"), *said("assistant: c")]
    named = {"apply_chat_template": False, "loss_scope": "last_span"}
    assert found(tokenizer, None, messages, **named) == ["hia<|eos|>more?[[b<|eos|>c<|eos|>]]"]


def test_after_the_last_user_needs_tags_or_a_way_that_was_chosen(tokenizer):
    with pytest.raises(PlanError, match=r"after_last_user.*prefix_diff"):
        found(tokenizer, CHATML, TWO_TURNS, loss_scope="after_last_user")


def test_what_tags_mark_only_at_the_end_is_of_the_last_message(tokenizer):
    """As many are marked in each beginning as in the whole, but not the same."""
    template = TAGGED.replace("== 'assistant' %}<", "== 'assistant' and loop.last %}<")
    assert found(tokenizer, template, TWO_TURNS, loss_scope="after_last_user") == [
        "<|start|>system\nbe kind<|stop|>\n<|start|>user\nhi<|stop|>\n<|start|>assistant\n"
        "hello<|stop|>\n<|start|>user\nmore?<|stop|>\n<|start|>assistant\n[[no<|stop|>]]\n"
    ]
    weighted = [dict(message) for message in TWO_TURNS]
    weighted[2]["loss_weight"], weighted[4]["loss_weight"] = 0.25, 0.5
    rows = pipeline_of(
        [weighted], tokenizer_id=tokenizer, chat_template=template, loss_weights=True
    )
    (payload,) = delivered(rows)
    assert set(payload["loss_mask"].tolist()) == {0.0, 0.5}


def test_what_tags_mark_at_the_end_of_any_text_is_of_the_last_answer(tokenizer):
    """As trl's templates of Phi 3 mark EOS."""
    end = "{% if not add_generation_prompt %}{% generation %}<|eos|>{% endgeneration %}{% endif %}"
    (text,) = found(tokenizer, TAGGED + end, TWO_TURNS, loss_scope="after_last_user")
    assert text == LAST.replace("<|stop|>\n]]", "<|stop|>]]\n[[<|eos|>]]")


def test_an_end_that_is_marked_for_itself_is_of_the_answer_before(tokenizer):
    """Also where it is marked whether a prompt is asked for or not."""
    template = (
        "{% for m in messages %}<|start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}<|stop|>{% endgeneration %}{% else %}{{ m.content }}"
        "<|stop|>{% endif %}{% endfor %}{% generation %}<|eos|>{% endgeneration %}"
    )
    messages = said("hi", "a", "x", "b")
    assert found(tokenizer, template, messages, loss_scope="after_last_user") == [
        "<|start|>user\nhi<|stop|><|start|>assistant\na<|stop|><|start|>user\nx<|stop|>"
        "<|start|>assistant\n[[b<|stop|><|eos|>]]"
    ]
    with pytest.raises(DataError, match="nobody can say which message"):
        found(tokenizer, template, said("hi", "a", "x"), loss_weights=True)


def test_tags_that_turn_messages_around_still_tell_whose_a_text_is(tokenizer):
    template = TAGGED.replace("in messages", "in messages | reverse")
    (text,) = found(tokenizer, template, said("hi", "a", "x", "b"), loss_scope="after_last_user")
    assert text.split("[[")[1].split("]]")[0] == "b<|stop|>"


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %};{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
        ":{% generation %}{% for m in messages if m.role == 'assistant' %}{{ m.content }}"
        "{% endfor %}{% endgeneration %}",
    ],
    ids=["also the user's", "all in one"],
)
def test_tags_around_what_several_say_are_refused_where_one_must_be_told(tokenizer, template):
    messages = said("hi", "a", "x", "b")
    assert len(found(tokenizer, template, messages)) == 1
    for named in ({"loss_scope": "after_last_user"}, {"loss_weights": True}):
        with pytest.raises(DataError, match=r"nobody can say which message.* row 0"):
            found(tokenizer, template, messages, **named)


def test_tags_around_nothing_mark_nothing(tokenizer, tmp_path):
    """Not even the token in the midst of which they stand."""
    merging = tokenizers.Tokenizer.from_file(f"{tokenizer}/tokenizer.json")
    merging.add_tokens(["::"])
    write_tokenizer(tmp_path, TAGGED)
    merging.save(str(tmp_path / "tokenizer.json"))
    template = (
        "{% for m in messages %}<|start|>:{% generation %}{{ m.content }}{% endgeneration %}:"
        "{% endfor %}"
    )
    rows = pipeline_of([said("hi", "")], tokenizer_id=str(tmp_path), chat_template=template)
    (payload,) = delivered(rows)
    told = merging.encode("::", add_special_tokens=False).ids
    assert len(told) == 1
    assert payload["loss_mask"][payload["input_ids"].tolist().index(told[0])] == 0


def test_the_last_turn_may_end_otherwise_than_the_others(tokenizer):
    template = (
        "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}"
        "{{ '<|eos|>' if loop.last else '<|stop|>' }}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    assert found(tokenizer, template, said("hi", "hello", "more?", "no")) == [
        "<|start|>user\nhi<|stop|><|start|>assistant\n[[hello<|stop|>]]<|start|>user\nmore?<|stop|>"
        "<|start|>assistant\n[[no<|eos|>]]"
    ]
    nothing_behind = template.replace("'<|stop|>'", "''")
    assert found(tokenizer, nothing_behind, said("hi", "hello", "more?", "no")) == [
        "<|start|>user\nhi<|start|>assistant\n[[hello]]<|start|>user\nmore?"
        "<|start|>assistant\n[[no<|eos|>]]"
    ]


def test_an_end_is_found_where_a_template_refuses_the_beginning_alone(tokenizer):
    template = "{{ '' if messages | length > 1 else raise_exception('too short') }}" + CHATML
    assert found(tokenizer, template, said("system: x", "hi", "yes")[:0:-1] + said("more?")) == [
        "<|start|>assistant\n[[yes<|stop|>]]\n<|start|>user\nhi<|stop|>\n<|start|>user\nmore?"
        "<|stop|>\n"
    ]


def test_what_a_tool_says_within_an_answer_is_never_learned(tokenizer):
    """A template that moves results into the turn that asked for them."""
    template = (
        "{% for m in messages if m.role != 'tool' %}<|start|>{{ m.role }}\n"
        "{% if m.calls %}({{ messages[-2].content }}){% endif %}{{ m.content }}<|stop|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    messages = said("hi", "let me see", "tool: 11", "assistant: it is 11")
    assert found(tokenizer, template, messages) == [
        "<|start|>user\nhi<|stop|><|start|>assistant\n[[let me see<|stop|>]]<|start|>assistant\n"
        "[[it is 11<|stop|>]]"
    ]
    messages[1]["calls"] = True
    with pytest.raises(DataError, match=r"answers up to message 1 apart .* row 0"):
        found(tokenizer, template, messages)


def test_behind_a_tool_a_template_may_not_wait_for_an_answer(tokenizer):
    """Then the header would be learned if nobody looked there."""
    template = (
        "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|stop|>{% endfor %}"
        "{% if add_generation_prompt and messages[-1].role != 'tool' %}<|start|>assistant\n"
        "{% endif %}"
    )
    messages = said("hi", "let me see", "tool: 11", "assistant: it is 11")
    with pytest.raises(DataError, match="ignores add_generation_prompt"):
        found(tokenizer, template, messages, span_source="prefix_diff")
    assert found(tokenizer, template, messages) == [
        "<|start|>user\nhi<|stop|><|start|>assistant\n[[let me see<|stop|>]]<|start|>tool\n"
        "11<|stop|><|start|>assistant\n[[it is 11<|stop|>]]"
    ]


def test_a_tool_that_is_named_with_its_result_is_learned_where_it_is_called(tokenizer):
    template = (
        "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'tool' %} "
        "{{ messages[loop.index0 - 1].tool_calls[0].function.name }}{% endif %}{{ '\\n' }}"
        "{% if m.tool_calls %}{{ m.tool_calls[0].function | tojson }}"
        "{% else %}{{ m.content }}{% endif %}{{ '<|eos|>' if loop.last else '<|stop|>' }}"
        "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    messages = said("hi", "", "tool: 11", "assistant: it is 11")
    messages[1]["tool_calls"] = [{"function": {"name": "f", "arguments": {"x": 1}}}]
    assert found(tokenizer, template, messages, span_source="substitution") == [
        "<|start|>user\nhi<|stop|><|start|>assistant\n"
        '[[{"name": "f", "arguments": {"x": 1}}<|stop|>]]'
        "<|start|>tool f\n11<|stop|><|start|>assistant\n[[it is 11<|eos|>]]"
    ]


def test_thoughts_with_a_header_of_their_own_are_part_of_the_answer(tokenizer):
    template = (
        "{% for m in messages %}{% if m.thinking %}<|start|>assistant\n{{ m.thinking }}<|stop|>"
        "{% endif %}<|start|>{{ m.role }}\n{{ m.content }}"
        "{{ '<|eos|>' if loop.last and m.role != 'user' else '<|stop|>' }}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    messages = said("hi", "yes", "more?")
    messages[1]["thinking"] = "hm"
    assert found(tokenizer, template, messages, span_source="substitution") == [
        "<|start|>user\nhi<|stop|><|start|>assistant\n[[hm<|stop|>"
        "<|start|>assistant\nyes<|stop|>]]<|start|>user\nmore?<|stop|>"
    ]


def test_thoughts_are_learned_where_a_prompt_says_that_there_are_none(tokenizer):
    template = (
        "{% for m in messages %}<|start|>{{ m.role }}\n{% if m.role == 'assistant' %}<think>"
        "{% if loop.last %}{{ m.reasoning_content }}{% endif %}</think>{% endif %}{{ m.content }}"
        "<|stop|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n<think></think>"
        "{% endif %}"
    )
    messages = said("hi", "yes", "more?", "no")
    messages[1]["reasoning_content"] = messages[3]["reasoning"] = "hm"
    for source in ("auto", "substitution"):
        assert found(tokenizer, template, messages, span_source=source) == [
            "<|start|>user\nhi<|stop|><|start|>assistant\n<think></think>[[yes<|stop|>]]"
            "<|start|>user\nmore?<|stop|><|start|>assistant\n<think>[[hm</think>no<|stop|>]]"
        ]


def called(name, **more):
    call = {"function": {"name": name, "arguments": {"x": name}}}
    return {"role": "assistant", "content": "", "tool_calls": [call], **more}


def test_a_call_is_learned_where_a_content_would_stand_behind_its_result(tokenizer):
    """As in Gemma 4."""
    template = (
        "{% for m in messages if m.role != 'tool' %}"
        "{% if loop.first or not loop.previtem.tool_calls %}<|start|>{{ m.role }}\n{% endif %}"
        "{% for c in m.tool_calls %}call {{ c.function | tojson }};{% endfor %}"
        "{% if m.tool_calls and messages | length > 2 %}"
        "<{{ messages[2].content }}>{% endif %}{{ m.content }}"
        "{% if not m.tool_calls %}<|stop|>\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt and messages[-1].role == 'user' %}<|start|>assistant\n"
        "{% endif %}"
    )
    messages = [*said("hi"), called("f"), *said("tool: 11", "assistant: it is 11")]
    calls = '[[call {"name": "f", "arguments": {"x": "f"}};]]'
    assert found(tokenizer, template, messages) == [
        f"<|start|>user\nhi<|stop|>\n<|start|>assistant\n{calls}<11>[[it is 11<|stop|>]]\n"
    ]
    messages[1]["content"] = "let me see"  # the result stands between the call and this
    with pytest.raises(DataError, match="up to message 1 apart from the rest"):
        found(tokenizer, template, messages)


def test_a_call_is_learned_behind_thoughts_that_are_left_out(tokenizer):
    """As in Nemotron: of a beginning they are shown, of the whole they are not."""
    template = (
        "{% for m in messages %}<|start|>{{ m.role }}\n{% set shown = loop.last and m.thinking %}"
        "{% if m.role == 'assistant' %}<think>{{ m.thinking if shown }}</think>{% endif %}"
        "{{ '\\n' if shown }}{{ m.content }}{% for c in m.tool_calls %}"
        "{{ '\\n' if m.content or not shown }}<call>{{ c.function | tojson }}</call>{% endfor %}"
        "<|stop|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant\n<think>\n{% endif %}"
    )
    messages = [
        *said("hi"),
        called("f", reasoning_content="hm"),
        *said("tool: 11", "assistant: 12"),
    ]
    call = '<call>{"name": "f", "arguments": {"x": "f"}}</call>'
    assert found(tokenizer, template, messages) == [
        f"<|start|>user\nhi<|stop|><|start|>assistant\n<think></think>[[\n{call}<|stop|>]]"
        "<|start|>tool\n11<|stop|><|start|>assistant\n<think></think>[[12<|stop|>]]"
    ]


def test_a_call_is_learned_from_its_first_token(tokenizer):
    """Also where nothing introduces answers, and results follow only on calls."""
    template = (
        "<|bos|>{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]"
        "{% elif m.tool_calls %}[CALLS][{{ m.tool_calls[0].function | tojson }}]<|eos|>"
        "{% elif m.role == 'tool' and not messages[loop.index0 - 1].tool_calls %}"
        "{{ raise_exception('what for?') }}"
        "{% elif m.role == 'tool' %}[RESULT]{{ m.content }}[/RESULT]"
        "{% else %}{{ m.content }}<|eos|>{% endif %}{% endfor %}"
    )
    messages = said("hi", "", "tool: 11", "assistant: it is 11")
    messages[1]["tool_calls"] = [{"function": {"name": "f", "arguments": {"x": 1}}}]
    assert found(tokenizer, template, messages) == [
        '<|bos|>[INST]hi[/INST][[[CALLS][{"name": "f", "arguments": {"x": 1}}]<|eos|>]]'
        "[RESULT]11[/RESULT][[it is 11<|eos|>]]"
    ]


def test_a_header_is_learned_of_which_a_prompt_says_more(tokenizer):
    template = CHATML.replace("assistant\n{% endif", "assistant\n<think>{% endif")
    assert found(tokenizer, template, said("hi", "yes"), supervise_header=True) == [
        "<|start|>user\nhi<|stop|>\n[[<|start|>assistant\nyes<|stop|>\n]]"
    ]


def test_answers_that_stand_in_two_places_are_refused(tokenizer):
    for twice in (
        "{% for m in messages %}{{ m.content }}|{{ m.content }};{% endfor %}",
        "{% for m in messages %}{% if loop.previtem %}(to: {{ loop.previtem.content }}){% endif %}"
        "{{ m.content }};{% endfor %}",
    ):
        with pytest.raises(DataError, match="apart from the rest"):
            found(tokenizer, twice, said("hi", "hello", "x", "y"))
    shuffled = "{% for m in messages|reverse %}{{ m.content }}\n{% endfor %}"
    with pytest.raises(DataError, match="apart from the rest"):
        found(tokenizer, shuffled, said("hi", "hello", "x", "y"))


def test_an_answer_that_is_not_shown_is_refused(tokenizer):
    template = "{% for m in messages %}{{ m.role }}{% endfor %}"
    with pytest.raises(DataError, match=r"shows neither the content nor a tool call of message 1"):
        found(tokenizer, template, said("hi", "hello"), span_source="substitution")


def test_no_private_letters_left_is_an_error_that_says_so(tokenizer):
    everything = "".join(map(chr, range(0xE000, 0xF8FF)))
    with pytest.raises(DataError, match="private characters"):
        found(tokenizer, BARE, said(everything, "hello"))


def test_multi_byte_characters_are_masked_whole(tokenizer):
    (text,) = found(tokenizer, CHATML, said("größe 🎉", "é🎉ü"))
    assert text.endswith("[[é🎉ü<|stop|>\n]]")
