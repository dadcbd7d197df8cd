"""Chat templates of the common kinds, a tokenizer of a token a byte, and what is learned."""

import functools
import json

import tokenizers
from tokenizers import models, pre_tokenizers

from zephon import InMemoryShard, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.io import Dataset

START, STOP, BOS, EOS = "<|start|>", "<|stop|>", "<|bos|>", "<|eos|>"
SPECIALS = (BOS, EOS, START, STOP)

CHATML = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|stop|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
"""Every prefix of a conversation is rendered as a prefix of its text."""

TAGGED = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|start|>assistant\n"
    "{% generation %}{{ m.content }}<|stop|>{% endgeneration %}{{ '\\n' }}"
    "{% else %}<|start|>{{ m.role }}\n{{ m.content }}<|stop|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
"""Says itself what the assistant says."""

THINKING = (
    "{% set last = namespace(user=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}"
    "{% endfor %}"
    "{% for m in messages %}<|start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.index0 < last.user %}"
    "{{ m.content.split('</think>')[-1].strip() }}{% else %}{{ m.content }}{% endif %}<|stop|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
"""Leaves out what was thought before the last user message, so that no prefix is one."""

BARE = (
    "<|bos|>{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% elif m.role == 'assistant' %} {{ m.content }}<|eos|>{% else %}{{ m.content }}\n{% endif %}"
    "{% endfor %}"
)
"""Introduces answers by nothing, and so ignores add_generation_prompt."""

ALWAYS = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|stop|>{% endfor %}"
    "<|start|>assistant\n"
)
"""Waits for an answer whether it is asked to or not."""


def byte_tokenizer():
    """A token a byte, and the special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(list(SPECIALS))
    return made


def write_tokenizer(folder, template=CHATML, **config):
    """Write the tokenizer with a template into a folder; give its path as text."""
    folder.mkdir(parents=True, exist_ok=True)
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    config = {"bos_token": BOS, "eos_token": EOS, "chat_template": template, **config}
    config = {name: value for name, value in config.items() if value is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return str(folder)


def said(*turns):
    """Make messages: the user's and the assistant's in turn; "role: text" names another role."""
    messages = []
    for text in turns:
        role, mark, rest = text.partition(": ")
        if not mark:
            role, rest = (
                ("user", "assistant")[sum(m["role"] != "system" for m in messages) % 2],
                text,
            )
        messages.append({"role": role, "content": rest})
    return messages


def pipeline_of(rows, **named):
    """A pipeline over rows in memory that tokenizes conversations, in order."""
    shard = InMemoryShard([row if isinstance(row, dict) else {"messages": row} for row in rows])
    return on(Dataset.from_dict("chats", {0: shard}), **named)


def on(dataset, **named):
    """The same over a dataset."""
    source = StaticMixtureWorkSource([dataset], MixtureSpec({dataset.name: 1.0}), seed=1)
    return Pipeline(source).tokenize_chat(**named)


def delivered(pipeline):
    """All payloads, in order."""
    return [record.payload for batch in pipeline.batch(1) for record in batch.records]


def learned(payload, mask="loss_mask"):
    """The text of a row, what is learned of it in double brackets."""
    made, inside = [], False
    for token, count in zip(payload["input_ids"], payload[mask], strict=True):
        if bool(count) != inside:
            made.append(b"[[" if count else b"]]")
            inside = bool(count)
        made.append(_spelling()[int(token)])
    return b"".join([*made, b"]]" if inside else b""]).decode()


@functools.cache
def _spelling():
    """The bytes of each token, found by encoding characters that have every byte."""
    tokenizer = byte_tokenizer()
    found = {token: text.encode() for text, token in tokenizer.get_vocab().items() if len(text) > 1}
    for code in (
        *range(0x80),
        *range(0x80, 0x800),
        *range(0x800, 0xD800, 64),
        0x10000,
        0x40000,
        0x80000,
        0xC0000,
        0x100000,
    ):
        text = chr(code)
        for token, byte in zip(tokenizer.encode(text).ids, text.encode(), strict=True):
            found[token] = bytes([byte])
    return found
