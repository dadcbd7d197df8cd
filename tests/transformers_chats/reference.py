"""Chats as transformers has them: texts, tokens and masks; run by the Python of its environment.

Standard input is a list of jobs as JSON: ``tokenizer``, the path of a tokenizer.json; ``specials``,
the names of its special tokens; ``template``, text; ``rows``, each with ``messages`` and
``variables``, which may have ``tools`` and others; and ``ids``, whether tokens are wanted. Output
is, for each job, a list of what became of each row:

text: what the template makes of the conversation.
ids, mask: what `apply_chat_template` gives; the mask only where the template marks generations.
offsets: which characters of the text each token stands for.
prefixes: for each message of the assistant, where the text of all before it and the prompt for it
    ends, and where the text that ends with it does; None if one is no beginning of the text, or
    is refused, or there is no prompt.
error: what was said instead, where the conversation was refused.

With ``--dialogues`` it prints conversations in many languages instead.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils


class Today(datetime.datetime):
    """A clock that stands, since some templates print the date."""

    @classmethod
    def now(cls, tz: Any = None) -> Today:
        """Return the day that all renderings are on."""
        return cls(2026, 3, 4, tzinfo=tz)


def told(tokenizer: Any, job: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Render and encode one row."""
    messages, settings = row["messages"], {"chat_template": job["template"], **row["variables"]}

    def render(stop: int | None = None, **more: Any) -> str:
        return tokenizer.apply_chat_template(messages[:stop], tokenize=False, **settings, **more)

    try:
        text = render()
    except Exception as error:  # a template decides itself what to raise
        return {"error": f"{type(error).__name__}: {error}"}
    if not job["ids"]:
        return {"text": text}
    marked = "generation %}" in job["template"] or "generation -%}" in job["template"]
    encoded = tokenizer.apply_chat_template(
        messages, return_dict=True, return_assistant_tokens_mask=marked, **settings
    )
    plain = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    found = {"text": text, "ids": encoded["input_ids"], "offsets": plain["offset_mapping"]}
    if marked:
        return {**found, "mask": encoded["assistant_masks"]}
    return {**found, "prefixes": prefixes(render, messages, text)}


def prefixes(render: Any, messages: list[Any], text: str) -> list[tuple[int, int]] | None:
    """Find the assistant's parts of a text by rendering ever more of the messages."""
    parts = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            try:
                plain, before = render(number), render(number, add_generation_prompt=True)
                after = render(number + 1)
            except Exception:  # some templates want a certain first or last message
                return None
            if plain == before or not (text.startswith(after) and after.startswith(before)):
                return None
            parts.append((len(before), len(after)))
    return parts


def dialogues() -> list[list[dict[str, str]]]:
    """Read dialogues, the speakers as user and assistant in turn."""
    import yaml

    found = []
    (folder,) = importlib.util.find_spec("chatterbot_corpus").submodule_search_locations
    for path in sorted(Path(folder, "data").rglob("*.yml")):
        read = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for said in read.get("conversations") or []:
            turns = [str(turn) for turn in said if turn is not None]
            roles = ("user", "assistant")
            found.append([{"role": roles[n % 2], "content": text} for n, text in enumerate(turns)])
    return found


def main() -> None:
    """Do all jobs."""
    if "--dialogues" in sys.argv:
        json.dump(dialogues(), sys.stdout)
        return
    chat_template_utils.datetime = Today
    answers, tokenizers = [], {}
    for job in json.load(sys.stdin):
        named = {"tokenizer_file": job["tokenizer"], **job["specials"]}
        key = json.dumps(named)
        if key not in tokenizers:
            tokenizers[key] = PreTrainedTokenizerFast(**named)
        answers.append([told(tokenizers[key], job, row) for row in job["rows"]])
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
