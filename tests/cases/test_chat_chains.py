"""Conversations of any format, from files of any kind, all the way to packed tokens and weights."""

import json
from itertools import islice

import numpy as np
import polars as pl
import pytest

from tests.chats import write_tokenizer
from tests.written import dataset, in_order
from zephon import Dataset, Pipeline

TEMPLATE = (
    "{{ tools|tojson }}{% for m in messages %}<|start|>{{ m.role }}\n"
    "{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}{{ m.content }}<|stop|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
WORDS = {"system": "system", "user": "human", "assistant": "gpt", "tool": "observation"}


def conversation(number):
    """Write messages whose objects have other keys in other rows."""
    call = {"name": "fg"[number % 2], "arguments": {"abc"[number % 3]: number}}
    said = [{"role": "system", "content": "größe 木"}] if number % 4 else []
    for turn in range(number % 5):
        said.append({"role": "user", "content": f"what is {turn}?"})
        if turn % 2:
            said.append({"role": "assistant", "content": "", "tool_calls": [call]})
            said.append({"role": "tool", "content": json.dumps(turn)})
        if (turn + number) % 7:
            said.append({"role": "assistant", "content": f"it is {turn}", "loss_weight": 0.5})
    return said


CHATS = [conversation(number) for number in range(40)]
TOOLS = [[{"name": "f", "parameters": {"abc"[n % 3]: {"type": "int"}}}] for n in range(40)]


def of_format(form):
    """Write the conversations in a format; all have the same messages."""
    for number, (said, tools) in enumerate(zip(CHATS, TOOLS, strict=True)):
        row = {"id": number, "tools": tools}
        if form == "sharegpt":
            turns = [dict(each) for each in said]
            row["conversations"] = [
                {"from": WORDS[each.pop("role")], "value": each.pop("content"), **each}
                for each in turns
            ]
        elif form == "prompt_completion":
            row |= {"prompt": said[:2], "completion": said[2:]}
        else:
            row["messages"] = said
        yield row


def written(folder, form, kind):
    dataset(kind, folder, list(of_format(form)), name="chats")
    return Dataset.from_path("chats", folder, schema={"id": "int64"})


def some(row):
    """Drop what is short, as a filter on messages does."""
    return None if len(row["messages"]) == 3 else row


def chain(data, form, tokenizer, **options):
    return (
        Pipeline(in_order(data, shuffle_within_shard=True))
        .filter(pl.col("id") > 3)
        .normalize_chat(format=form)
        .expand_chat()
        .map_transform(some)
        .tokenize_chat(tokenizer_id=tokenizer, loss_weights=True, span_source="prefix_diff")
        .shuffle(6)
        .pack_flat(257, algorithm="first_fit", num_bins=3, pad_token_id=0)
        .batch(1)
        .options(**{"runner": "inline", **options})
    )


def rows(pipeline, batches=None):
    found = []
    for batch in islice(iter(pipeline), batches):
        for record in batch.records:
            arrays = [np.asarray(record.payload[n]) for n in ("input_ids", "loss_mask")]
            found.append((record.meta.cursor.as_key(), *(a.tobytes() for a in arrays)))
    return found


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"), TEMPLATE)


@pytest.fixture(scope="module")
def wanted(tokenizer, tmp_path_factory):
    data = written(tmp_path_factory.mktemp("chats"), "messages", "jsonl")
    found = rows(chain(data, "messages", tokenizer))
    weights = {float(w) for _, _, mask in found for w in np.frombuffer(mask, np.float32)}
    assert weights == {0.0, 0.5, 1.0}
    assert len(found) > 10
    return found


pytestmark = [
    pytest.mark.filterwarnings("ignore:expand_chat"),
    pytest.mark.filterwarnings("ignore:tokenize_chat"),
    pytest.mark.filterwarnings("ignore:packing dropped"),
]


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet"])
@pytest.mark.parametrize("form", ["messages", "sharegpt", "prompt_completion", "auto"])
def test_every_format_and_file_gives_the_same_tokens(tmp_path, tokenizer, wanted, form, kind):
    data = written(tmp_path, "sharegpt" if form == "auto" else form, kind)
    assert rows(chain(data, form, tokenizer)) == wanted


@pytest.mark.parametrize("options", [{}, {"runner": "threads", "max_workers": 2}])
@pytest.mark.parametrize("at", [1, 4, 9])
def test_a_restored_run_gives_the_tail(tmp_path, tokenizer, wanted, at, options):
    data = written(tmp_path, "sharegpt", "parquet")
    first = chain(data, "auto", tokenizer)
    items = iter(first)
    for _ in range(at):
        next(items)
    state = first.checkpoint()
    items.close()
    assert rows(chain(data, "auto", tokenizer, **options).restore(state)) == wanted[at:]
