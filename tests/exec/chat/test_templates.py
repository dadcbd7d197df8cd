"""Which templates and special tokens a tokenizer brings, and which one is chosen."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from zephon.errors import PlanError, TokenizerError
from zephon.exec.chat.templates import ChatTemplates, chosen_template, find_templates


def folder(path: Path, **files: str | dict[str, object]) -> Path:
    """Write files, whose names have ``__`` for a dot and ``___`` for a slash."""
    for name, said in files.items():
        file = path / name.replace("___", "/").replace("__", ".")
        file.parent.mkdir(exist_ok=True)
        file.write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    return path


def test_a_template_of_the_configuration_is_the_default(tmp_path: Path) -> None:
    folder(tmp_path, tokenizer_config__json={"chat_template": "{{ 1 }}"}, tokenizer__json="{}")
    assert find_templates(tmp_path, None).by_name == {"default": "{{ 1 }}"}
    assert find_templates(str(tmp_path / "tokenizer.json"), None).by_name == {"default": "{{ 1 }}"}
    assert find_templates(tmp_path / "other.json", None).by_name == {}


def test_several_templates_of_the_configuration_have_names(tmp_path: Path) -> None:
    several = [
        {"name": "default", "template": "{{ 1 }}"},
        {"name": "tool_use", "template": "{{ 2 }}"},
    ]
    folder(tmp_path, tokenizer_config__json={"chat_template": several})
    found = find_templates(tmp_path, None)
    assert chosen_template(found, None, tools=False) == ("default", "{{ 1 }}")
    assert chosen_template(found, None, tools=True) == ("tool_use", "{{ 2 }}")
    assert chosen_template(found, "tool_use", tools=False) == ("tool_use", "{{ 2 }}")


def test_files_replace_what_the_configuration_says(tmp_path: Path) -> None:
    folder(
        tmp_path,
        tokenizer_config__json={"chat_template": [{"name": "rag", "template": "{{ 0 }}"}]},
        chat_template__json={"chat_template": "{{ 9 }}"},
        additional_chat_templates___tool_use__jinja="{{ 2 }}",
    )
    assert find_templates(tmp_path, None).by_name == {"tool_use": "{{ 2 }}"}
    folder(tmp_path, chat_template__jinja="{{ 1 }}\r\n")
    found = find_templates(tmp_path, None)
    assert found.by_name == {"default": "{{ 1 }}\n", "tool_use": "{{ 2 }}"}


def test_the_file_of_processors_is_read_last(tmp_path: Path) -> None:
    folder(tmp_path, chat_template__json={"chat_template": "{{ 9 }}"}, tokenizer_config__json={})
    assert find_templates(tmp_path, None).by_name == {"default": "{{ 9 }}"}
    folder(tmp_path, tokenizer_config__json={"chat_template": "{{ 1 }}"})
    assert find_templates(tmp_path, None).by_name == {"default": "{{ 1 }}"}


def test_special_tokens_are_texts_in_every_form(tmp_path: Path) -> None:
    folder(
        tmp_path,
        special_tokens_map__json={"bos_token": "<old>", "unk_token": {"content": "<unk>"}},
        tokenizer_config__json={
            "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": False},
            "eos_token": "</s>",
            "pad_token": None,
            "additional_special_tokens": ["<a>", {"content": "<b>"}],
            "extra_special_tokens": {"image_token": "<image>"},
            "model_max_length": 8,
        },
    )
    assert find_templates(tmp_path, None).special_tokens == {
        "bos_token": "<s>",
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "additional_special_tokens": ["<a>", "<b>"],
        "image_token": "<image>",
    }


class AddedToken:
    """As transformers has them."""

    content = "<s>"


class Fast:
    """What is read of a tokenizer of transformers."""

    chat_template: object = {"default": "{{ 1 }}", "rag": "{{ 2 }}"}
    special_tokens_map = {"bos_token": AddedToken(), "eos_token": "</s>"}  # noqa: RUF012


def test_an_object_of_transformers_brings_what_it_says() -> None:
    found = find_templates("ignored", Fast())
    assert found.by_name == {"default": "{{ 1 }}", "rag": "{{ 2 }}"}
    assert found.special_tokens == {"bos_token": "<s>", "eos_token": "</s>"}


def test_an_object_of_tokenizers_brings_none() -> None:
    found = find_templates(None, Tokenizer(WordLevel({"a": 0}, unk_token="a")))
    assert (found.by_name, found.special_tokens) == ({}, {})
    with pytest.raises(TokenizerError, match=r"found none in the chat_template of tokenizer="):
        chosen_template(found, None, tools=False)


@pytest.mark.parametrize("wrong", [7, ["text"], [{"name": "a"}], {"a": None}])
def test_templates_that_are_no_texts_are_refused(tmp_path: Path, wrong: object) -> None:
    folder(tmp_path, tokenizer_config__json={"chat_template": wrong})
    with pytest.raises(TokenizerError, match=r"tokenizer_config\.json: chat_template: expected"):
        find_templates(tmp_path, None)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(TokenizerError, match=r"chat_template\.jinja: cannot read it as UTF-8"):
        find_templates(tmp_path, None)
    (tmp_path / "chat_template.jinja").unlink()
    folder(tmp_path, tokenizer_config__json="[1]")
    with pytest.raises(TokenizerError, match=r"tokenizer_config\.json as a JSON object"):
        find_templates(tmp_path, None)


NAMED = ChatTemplates({"rag": "{{ 1 }}", "tool_use": "{{ 2 }}"}, {"bos_token": "<s>"})


def test_the_only_template_needs_no_name() -> None:
    only = ChatTemplates({"rag": "{{ 1 }}"}, {})
    assert chosen_template(only, None, tools=True) == ("rag", "{{ 1 }}")
    with pytest.raises(TokenizerError, match="'rag', 'tool_use' and none of them is 'default'"):
        chosen_template(NAMED, None, tools=False)


def test_a_template_is_given_as_its_text_or_as_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("{{ messages }}", "{% if a %}b{% endif %}"):
        assert chosen_template(NAMED, text, tools=True) == ("chat_template", text)
    file = tmp_path / "mine.jinja"
    file.write_text("{{ 3 }}", encoding="utf-8")
    assert chosen_template(NAMED, file, tools=True) == (os.fspath(file), "{{ 3 }}")
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    assert chosen_template(NAMED, "~/mine.jinja", tools=False) == ("~/mine.jinja", "{{ 3 }}")


@pytest.mark.parametrize("wrong", ["rog", "no/such.jinja", "", "x\0y", "a" * 9_000, "~nobody/x"])
def test_what_is_neither_lists_the_names(wrong: str) -> None:
    with pytest.raises(PlanError, match=r"no file that exists.*the tokenizer's are 'rag', 'tool_"):
        chosen_template(NAMED, wrong, tools=False)


def test_nothing_found_says_what_was_looked_for(tmp_path: Path) -> None:
    found = find_templates(tmp_path, None)
    with pytest.raises(ValueError, match=r"chat_template\.jinja.*apply_chat_template=False"):
        chosen_template(found, None, tools=False)
    with pytest.raises(PlanError, match=r"the tokenizer has none$"):
        chosen_template(found, "default", tools=False)
