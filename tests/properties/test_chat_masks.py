"""Masks of made-up conversations, by tokenizers whose tokens cross every border."""

import numpy as np
import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers, trainers

from tests.chats import CHATML
from zephon.exec.chat.conversation import Conversation
from zephon.exec.chat.generation_tags import by_generation_tags
from zephon.exec.chat.masks import token_weights
from zephon.exec.chat.prefixes import by_prefixes
from zephon.exec.chat.renderer import Renderer
from zephon.exec.chat.spans import in_scope
from zephon.exec.chat.substitution import by_substitution
from zephon.exec.tokenizers import load_tokenizer
from zephon.exec.tokenizers.encoder import TEXT

MARKED = CHATML.replace(
    "{{ m.content }}<|stop|>\n",
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|stop|>{{ '\\n' }}"
    "{% endgeneration %}{% else %}{{ m.content }}<|stop|>{{ '\\n' }}{% endif %}",
)
CONTENTS = st.text("ab \n<|stop>é🎉\u0301{%}", max_size=12) | st.sampled_from(
    ["", "<|start|>assistant\n", "{{ m }}", "<|stop|>", " ", "\ue000", "assistant"]
)
ROLES = st.sampled_from(["system", "user", "assistant", "assistant", "tool"])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": ROLES, "content": CONTENTS}), min_size=1, max_size=6
)


def merging(normalizer=None):
    """Few merges, none of which heeds a border: what is between turns is in tokens of both."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if normalizer is not None:
        made.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(["<|start|>assistant\nab<|stop|>\n<|start|>user\nb a"] * 40, trainer)
    return made


TOKENIZERS = {"plain": merging(), "composing": merging(normalizers.NFC())}


def by_hand(messages):
    """Write the text down, and where each answer is in it, in characters."""
    text, spans = "", []
    for message in messages:
        text += f"<|start|>{message['role']}\n"
        start = len(text)
        text += f"{message['content']}<|stop|>\n"
        if message["role"] == "assistant":
            spans.append((start, len(text)))
    return text, spans


def whole(spans):
    return [(span.start, span.stop) for span in spans]


@settings(max_examples=150, deadline=None)
@given(messages=MESSAGES)
def test_every_way_finds_the_same_answers(messages):
    conversation = Conversation(messages)
    text, spans = by_hand(messages)
    plain, marked = Renderer([("t", CHATML)], {}), Renderer([("t", MARKED)], {})
    found = [
        by_prefixes(plain, conversation, header=False),
        by_substitution(plain, conversation, ["<|stop|>"], header=False),
        by_generation_tags(marked, conversation, owned=False),
        by_generation_tags(marked, conversation, owned=True),
    ]
    for each in found:
        assert not isinstance(each, str), each
        assert each.text == text
        assert whole(each.spans) == spans
    answers = conversation.answers
    for each in (found[0], found[1], found[3]):
        assert [span.message for span in each.spans] == answers
        after = in_scope(each.spans, "after_last_user", conversation)
        users = [n for n, m in enumerate(messages) if m["role"] == "user"]
        assert [s.message for s in after] == [n for n in answers if n > max(users, default=-1)]


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=80, deadline=None)
@given(chats=st.lists(MESSAGES, max_size=4), data=st.data())
def test_a_token_that_touches_an_answer_is_learned(kind, chats, data):
    tokenizer = load_tokenizer(tokenizer=TOKENIZERS[kind])
    made = [by_hand(messages) for messages in chats]
    renderer = Renderer([("t", CHATML)], {})
    spans = [by_prefixes(renderer, Conversation(m), header=False).spans for m in chats]
    weights = [[data.draw(st.sampled_from([0.25, 0.5, 1.0])) for _ in some] for some in spans]
    texts = [text for text, _ in made]
    column = pa.array(texts, TEXT)
    encoded = tokenizer.encode(column, np.arange(len(texts)))
    counts = token_weights(texts, column, encoded, spans, weights, tokenizer.places())
    assert counts.dtype == np.float32
    for number, (text, places) in enumerate(made):
        some = counts[encoded.offsets[number] : encoded.offsets[number + 1]]
        offsets = TOKENIZERS[kind].encode(text).offsets
        for count, (start, stop) in zip(some, offsets, strict=True):
            touched = {
                weight
                for (first, last), weight in zip(places, weights[number], strict=True)
                if start < last and stop > first
            }
            assert count in (touched or {0.0})
