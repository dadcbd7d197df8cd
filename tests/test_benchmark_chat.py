"""The benchmark of conversations: what it builds, what it checks, and that it weighs nothing."""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks import chat
from benchmarks.timing import start
from tests.transformers_chats.conversations import write_tokenizer

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some conversations of two documents, and a small tokenizer."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / chat.FOLDER).mkdir()
    (folder / chat.TOKENIZER).mkdir()
    write_tokenizer(folder / chat.TOKENIZER)
    path = folder / chat.TOKENIZER / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": CHATML}))
    texts = [f"tree {n} and wood, " * 20_000 for n in range(2)]
    said = islice(chat._parts(iter(texts), np.random.default_rng(0)), 200)
    lines = [json.dumps({"messages": messages}) for messages in said]
    (folder / chat.FOLDER / "a.jsonl").write_text("\n".join(lines))
    return folder


def test_conversations_have_their_exchanges_and_length(corpus: Path) -> None:
    lines = (corpus / chat.FOLDER / "a.jsonl").read_text().splitlines()
    found = [json.loads(line)["messages"] for line in lines]
    assert {len(messages) for messages in found} == {1 + 2 * chat.EXCHANGES}
    sizes = [[len(message["content"]) for message in messages[1:]] for messages in found]
    questions, answers = np.array(sizes)[:, ::2].mean(), np.array(sizes)[:, 1::2].mean()
    assert (questions, answers) == pytest.approx(chat.CHARACTERS, rel=0.1)


def test_answers_that_are_learned_are_checked(corpus: Path) -> None:
    described = {**chat.job(corpus), "packing": {**chat.PACKING, "pad_token_id": 2}}
    chat._check(described)
    sizes = list(chat._sizes(chat.described(described)))
    assert 0 < min(sizes) <= max(sizes) <= chat.ROWS * (chat.PACKING["max_length"] - 1)
    (corpus / "other").mkdir()
    text = (corpus / chat.FOLDER / "a.jsonl").read_text()
    (corpus / "other" / "a.jsonl").write_text(text.replace('"user"', '"assistant"', 1))
    with pytest.raises(AssertionError, match="tree"):
        chat._check({**described, "mixture": {"other": 1.0}})


def test_the_parent_imports_no_library_and_all_have_one_job(tmp_path: Path) -> None:
    program = (
        "import sys, benchmarks.chat; "
        "print(*(m for m in sys.modules if m in {'numpy', 'polars', 'zephon'}))"
    )
    assert start((sys.executable, "-c", program))[0].split() == []
    assert [each.name for each in chat.contenders(tmp_path)] == ["zephon"]
    (tmp_path / "peer-venv" / "bin").mkdir(parents=True)
    (tmp_path / "peer-venv" / "bin" / "python").touch()
    found = {each.name: json.loads(each.command[-1]) for each in chat.contenders(tmp_path)}
    assert found.keys() == {"zephon", "public", "tuned"}
    for job in found.values():
        assert job.items() >= chat.job(tmp_path).items()
