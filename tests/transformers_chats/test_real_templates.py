"""Templates of real models: the texts, tokens and masks that transformers makes of the same chats.

Transformers runs in an environment of its own and answers once for each set of questions.
"""

import re

import pytest

from tests.transformers_chats.asked import ask, templates
from tests.transformers_chats.compared import (
    MOST_MESSAGES,
    TODAY,
    compare,
    few,
    mask,
    some_dialogues,
    wanted_of_prefixes,
)
from tests.transformers_chats.conversations import SPECIALS, hostile, write_tokenizer
from zephon.exec.chat.sandbox import TemplateFault, compile_template

# by the names that trl and axolotl give them
UNTAGGED = ("llama3", "qwen2_5", "qwen3", "gemma3", "phi3", "cohere2", "gemma4_v5")
TAGGED = tuple(
    f"{name}_training"
    for name in ("llama3", "qwen2_5", "qwen3", "deepseekv3", "gemma3", "gptoss", "glm4moe")
)
# untagged templates of which trl has a tagged variant that says what we find, alone or with headers
FOUND = ("llama3", "gemma", "gemma3", "cohere", "cohere2", "lfm2", "qwen3", "qwen3_vl", "smolvlm")
FOUND_WITH_HEADERS = ("deepseekv3", "muse_glimmer")


@pytest.fixture(scope="module")
def real():
    """Text of each template by name; where both packages have one, that of trl."""
    found = {**templates("axolotl"), **templates("trl")}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def spoken():
    return some_dialogues()


def job(folder, template, rows, *, ids):
    path = str(folder / "tokenizer.json")
    return {"tokenizer": path, "specials": SPECIALS, "template": template, "rows": rows, "ids": ids}


def test_texts_of_all_templates(real, folder):
    """Whatever a conversation is, both make the same text of it, or both refuse it."""
    rows = few(hostile())
    found = ask([job(folder, text, rows, ids=False) for text in real.values()])
    differ, refused = [], 0
    for (name, text), answers in zip(real.items(), found, strict=True):
        template = compile_template(text, name=name)
        for row, answer in zip(rows, answers, strict=True):
            if not row["messages"]:
                continue  # transformers renders no empty list, whatever the template says
            try:
                made = template.render(variables(row))
            except TemplateFault:
                made, refused = None, refused + 1
            if made != answer.get("text"):
                differ.append((name, row["name"], made, answer))
    assert differ == []
    assert len(real) > 90
    assert 0 < refused < 0.2 * len(real) * len(rows)


def variables(row):
    """What a template is told of a row."""
    return {
        **SPECIALS,
        "strftime_now_date": TODAY,
        "tools": None,
        "documents": None,
        "add_generation_prompt": False,
        **row["variables"],
        "messages": prepared(row["messages"]),
    }


REASONING = ("reasoning_content", "thinking", "reasoning")


def prepared(messages):
    """Do to messages what transformers does before it renders them."""
    made = []
    for message in messages:
        told = {key: value for key, value in message.items() if value is not None}
        found = [told[key] for key in REASONING if key in told]
        if found:
            told = {"thinking": found[0], **told, "reasoning_content": found[0]}
        made.append(told)
    return made


def test_tokens_and_marked_masks(real, folder, spoken, tmp_path):
    """The template says what is learned, and nothing else is."""
    rows = few([*hostile(), *spoken])
    found = ask([job(folder, real[name], rows, ids=True) for name in TAGGED])
    for name, answers in zip(TAGGED, found, strict=True):
        wanted = {
            row["name"]: None if "error" in answer else (answer["ids"], answer["mask"])
            for row, answer in zip(rows, answers, strict=True)
        }
        compare(tmp_path / name, folder, real[name], rows, wanted, "generation_tags")


def test_tokens_and_masks_of_prefixes(real, folder, spoken, tmp_path):
    """Where a template marks nothing, the renderings of ever more messages tell.

    Transformers itself renders no empty beginning, as is before an assistant that speaks first.
    """
    rows = few([*hostile(), *spoken])
    rows = [row for row in rows if row["messages"][0]["role"] != "assistant"]
    found = ask([job(folder, real[name], rows, ids=True) for name in UNTAGGED])
    for name, answers in zip(UNTAGGED, found, strict=True):
        wanted = wanted_of_prefixes(rows, answers)
        compare(tmp_path / name, folder, real[name], rows, wanted, "prefix_diff")


def test_many_turns(real, folder, spoken, tmp_path):
    """Hundreds of messages in one conversation."""
    rows = [row for row in [*hostile(), *spoken] if len(row["messages"]) > MOST_MESSAGES]
    ((*answers,),) = ask([job(folder, real["qwen2_5"], rows, ids=True)])
    wanted = wanted_of_prefixes(rows, answers)
    assert max(len(row["messages"]) for row in rows) > 500
    compare(tmp_path / "many", folder, real["qwen2_5"], rows, wanted, "prefix_diff")


def test_what_others_tagged_is_found_without_tags(real, folder, spoken, tmp_path):
    """Qwen 3 drops earlier thoughts, DeepSeek's prompt says more than a turn: no prefixes help."""
    rows = few([*hostile(), *spoken])
    names = (*FOUND, *FOUND_WITH_HEADERS)
    jobs = [job(folder, real[name], rows, ids=True) for name in names]
    jobs += [job(folder, real[f"{name}_training"], rows, ids=True) for name in names]
    found = ask(jobs)
    for name, plain, tagged in zip(names, found, found[len(names) :], strict=False):
        same = [
            (row, other)
            for row, one, other in zip(rows, plain, tagged, strict=True)
            if "text" in one and one["text"] == other["text"]
        ]
        wanted = {row["name"]: (other["ids"], other["mask"]) for row, other in same}
        header = name in FOUND_WITH_HEADERS
        some = [row for row, _ in same]
        compare(tmp_path / name, folder, real[name], some, wanted, "auto", supervise_header=header)


def test_what_mistral_says_is_found(real, folder, spoken, tmp_path):
    """Nothing introduces its answers and calls: they stand between others' ends and EOS."""
    marks = ("[INST]", "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", SPECIALS["eos_token"])
    rows = [
        row
        for row in few([*hostile(), *spoken])
        if not any(mark in str(row["messages"]) for mark in marks)
    ]
    name = "mistral_v3_tekken"
    ((*answers,),) = ask([job(folder, real[name], rows, ids=True)])
    said = re.compile(
        rf"\[/(?:INST|TOOL_RESULTS)\](.*?{re.escape(SPECIALS['eos_token'])})", re.DOTALL
    )
    wanted = {
        row["name"]: (
            answer["ids"],
            mask(answer, [m.span(1) for m in said.finditer(answer["text"])]),
        )
        for row, answer in zip(rows, answers, strict=True)
        if "text" in answer
    }
    rows = [row for row in rows if row["name"] in wanted]
    assert {"call", "call, tools", "two", "user last"} <= wanted.keys()
    compare(tmp_path / name, folder, real[name], rows, wanted, "auto")
