"""Compares what a pipeline makes of conversations with what transformers made of them."""

import pytest

from tests.transformers_chats.asked import dialogues
from tests.transformers_chats.conversations import conversation
from tests.written import lines, pipeline
from zephon import Dataset
from zephon.errors import DataError

TODAY = "2026-03-04"
MOST_MESSAGES = 60  # of conversations that all templates get; some get all


def some_dialogues():
    """Dialogues, some in each of many languages, and the longest of all."""
    said = dialogues()
    some = [*said[::150], *sorted(said, key=len)[-9:]]
    return [conversation(f"dialogue {n}", each) for n, each in enumerate(some)]


def few(rows):
    """Leave out conversations of very many messages, and of none."""
    return [row for row in rows if 0 < len(row["messages"]) <= MOST_MESSAGES]


def wanted_of_prefixes(rows, answers):
    """Make masks of where the assistant's parts of the texts are."""
    wanted = {}
    for row, answer in zip(rows, answers, strict=True):
        parts = answer.get("prefixes")
        wanted[row["name"]] = None if parts is None else (answer["ids"], mask(answer, parts))
    return wanted


def mask(answer, parts):
    """Say for each token whether it has a character of some part."""
    text = bytearray(len(answer["text"]))
    for begin, end in parts:
        text[begin:end] = b"\1" * (end - begin)
    return [int(any(text[start:stop])) for start, stop in answer["offsets"]]


def compare(scratch, folder, template, rows, wanted, span_source, **named):
    """Run a pipeline over the rows that are wanted, and over each that is refused alone.

    Args:
        scratch: a folder of its own.
        folder: of the tokenizer.
        template: its text; None: the tokenizer's own.
        rows: conversations; those of which nothing is learned must be dropped.
        wanted: tokens and mask by name; None: it must be refused.
        span_source: and what else tokenize_chat is told.
    """
    scratch.mkdir()
    if template is not None:
        named["chat_template"] = str(scratch / "template.jinja")
        (scratch / "template.jinja").write_text(template, encoding="utf-8")

    def run(some):
        written = [{"name": r["name"], "messages": r["messages"], **r["variables"]} for r in some]
        where = scratch / str(len(list(scratch.glob("*"))))
        lines(where, "a.jsonl", written)
        pipe = pipeline(Dataset.from_path("chats", where)).tokenize_chat(
            tokenizer_id=str(folder),
            span_source=span_source,
            special_tokens="none",
            chat_template_kwargs={"strftime_now_date": TODAY},
            preserve_upstream_payload=True,
            **named,
        )
        payloads = [record.payload for record in pipe]
        return {p["name"]: (p["input_ids"].tolist(), p["loss_mask"].tolist()) for p in payloads}

    usual = [row for row in rows if wanted[row["name"]] and usable(*wanted[row["name"]])]
    dropped = [row for row in rows if wanted[row["name"]] and not any(wanted[row["name"]][1])]
    assert usual
    assert run([*usual, *dropped]) == {row["name"]: wanted[row["name"]] for row in usual}
    for row in rows:
        if row not in usual and row not in dropped:
            with pytest.raises(DataError, match="row 0"):
                run([row])


def usable(ids, learned):
    return len(ids) > 1 and any(learned) and not learned[0]
