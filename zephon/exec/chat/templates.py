"""Which chat templates and special tokens a tokenizer brings, and which template a row is given.

What is read where several say it follows transformers: the ``.jinja`` files of a folder replace
what its ``tokenizer_config.json`` says, and ``chat_template.json``, which belongs to processors,
is read where neither has a template.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from zephon.errors import PlanError, TokenizerError, nearest
from zephon.exec.tokenizers.sources import CONFIG_FILES, TOKENIZER_FILE

DEFAULT = "default"
TOOL_USE = "tool_use"
TEMPLATE_FILE = "chat_template.jinja"
TEMPLATE_FOLDER = "additional_chat_templates"
LEGACY_FILE = "chat_template.json"
CONFIG_FILE = "tokenizer_config.json"

_ROLES = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
    "additional_special_tokens",
)


@dataclass(frozen=True, slots=True)
class ChatTemplates:
    """What a tokenizer brings.

    by_name: the text of each template; one that has no name is "default".
    special_tokens: variables of every rendering, such as ``bos_token``; each is a text, or a
        list of texts.
    source: what was looked at, for messages.
    """

    by_name: Mapping[str, str]
    special_tokens: Mapping[str, str | list[str]]
    source: str = "the tokenizer"


def find_templates(
    tokenizer_id: str | os.PathLike[str] | None, tokenizer: object | None
) -> ChatTemplates:
    """Read the templates of a tokenizer, which is named as ``tokenize_chat`` names it.

    Args:
        tokenizer_id: a tokenizer.json or the folder of one; other files beside it are read.
        tokenizer: else an object; one of ``transformers`` has templates, and one of
            ``tokenizers`` has none.

    Raises:
        TokenizerError: a file is there and cannot be read as what it should be.
    """
    if tokenizer is not None:
        return _of_object(tokenizer)
    if tokenizer_id is None:
        return ChatTemplates({}, {}, "no tokenizer")
    path = Path(os.fspath(tokenizer_id)).expanduser()
    if path.is_dir():
        return _of_folder(path)
    if path.name == TOKENIZER_FILE:
        return _of_folder(path.parent)
    return ChatTemplates({}, {}, f"{path}, which is no folder and no {TOKENIZER_FILE}")


def chosen_template(
    templates: ChatTemplates, chat_template: str | os.PathLike[str] | None, *, tools: bool
) -> tuple[str, str]:
    """Choose the template of rows with or without tools.

    Args:
        templates: what the tokenizer brings.
        chat_template: a template's text, the path of a file that holds one, or one of the
            tokenizer's names; None: "tool_use" where there are tools, else "default", else the
            only one.
        tools: whether the rows have tools.

    Returns:
        What to call it in messages, and its text.

    Raises:
        PlanError: ``chat_template`` is none of these.
        TokenizerError: none was asked for, and the tokenizer has none, or several and no default.
    """
    names = ", ".join(map(repr, sorted(templates.by_name)))
    if chat_template is None:
        for name in (TOOL_USE, DEFAULT) if tools else (DEFAULT,):
            if name in templates.by_name:
                return name, templates.by_name[name]
        if len(templates.by_name) == 1:
            return next(iter(templates.by_name.items()))
        if templates.by_name:
            raise TokenizerError(
                f"tokenize_chat: the tokenizer has the chat templates {names} and none of them "
                f"is {DEFAULT!r}; name one with chat_template="
            )
        raise TokenizerError(
            f"tokenize_chat: expected a chat template, and found none in {templates.source}; "
            "pass chat_template= (a template's text or the path of a file), or "
            "apply_chat_template=False to join the messages without one"
        )
    text = os.fspath(chat_template)
    if isinstance(chat_template, str) and ("{{" in text or "{%" in text):
        return "chat_template", text
    file = _file(text)
    if file is not None:
        return text, _text_of(file)
    if text in templates.by_name:
        return text, templates.by_name[text]
    has = f"the tokenizer's are {names}" if names else "the tokenizer has none"
    hint = f"; {nearest(text, templates.by_name)}" if names else ""
    raise PlanError(
        f"tokenize_chat: chat_template={text[:200]!r} is no template's text (it has no "
        f"'{{{{' and no '{{%'), no file that exists, and no name of a template: {has}{hint}"
    )


def _file(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # nothing can be called that
        return None


def _of_object(tokenizer: object) -> ChatTemplates:
    kind = f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__}"
    tokens = getattr(tokenizer, "special_tokens_map", None)
    return ChatTemplates(
        _named(getattr(tokenizer, "chat_template", None), f"tokenizer={kind}: chat_template"),
        _tokens(tokens) if isinstance(tokens, Mapping) else {},
        f"the chat_template of tokenizer={kind}",
    )


def _of_folder(folder: Path) -> ChatTemplates:
    files = {DEFAULT: folder / TEMPLATE_FILE} if (folder / TEMPLATE_FILE).is_file() else {}
    files |= {file.stem: file for file in sorted((folder / TEMPLATE_FOLDER).glob("*.jinja"))}
    by_name = {name: _text_of(file) for name, file in files.items()}
    configs = {name: _object_in(folder / name) for name in CONFIG_FILES}
    for name, config in ((CONFIG_FILE, configs[CONFIG_FILE]), (LEGACY_FILE, None)):
        if not by_name:
            said = _object_in(folder / name) if config is None else config
            by_name = _named(said.get("chat_template"), f"{folder / name}: chat_template")
    tokens: dict[str, Any] = {}
    for config in configs.values():
        extra = config.get("extra_special_tokens")
        tokens |= {role: config[role] for role in _ROLES if role in config}
        tokens |= extra if isinstance(extra, dict) else {}
    looked = f"{TEMPLATE_FILE}, {TEMPLATE_FOLDER}/, {CONFIG_FILE} and {LEGACY_FILE} of {folder}"
    return ChatTemplates(by_name, _tokens(tokens), looked)


def _named(said: object, where: str) -> dict[str, str]:
    """Read a template, or several by name, in any form that configurations have."""
    match said:
        case None:
            return {}
        case str():
            return {DEFAULT: said}
        case list() if all(isinstance(each, dict) for each in said):
            said = {each.get("name"): each.get("template") for each in said}
    if isinstance(said, Mapping):
        named = dict(said)
        if all(isinstance(part, str) for item in named.items() for part in item):
            return named
    raise TokenizerError(
        f"{where}: expected a text, or a name and a text for each template, got "
        f"{type(said).__name__}"
    )


def _tokens(said: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Read the text of each special token; what is null is left out."""
    tokens: dict[str, str | list[str]] = {}
    for role, value in said.items():
        if isinstance(value, list | tuple):
            texts = [text for each in value if (text := _token(each)) is not None]
            if texts:
                tokens[role] = texts
        elif text := _token(value):
            tokens[role] = text
    return tokens


def _token(value: object) -> str | None:
    if isinstance(value, Mapping):
        value = value.get("content")
    value = getattr(value, "content", value)
    return value if isinstance(value, str) else None


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise TokenizerError(f"chat template {file}: cannot read it as UTF-8: {exc}") from exc


def _object_in(file: Path) -> dict[str, Any]:
    """Read a file that holds a JSON object; empty if there is no such file."""
    if not file.is_file():
        return {}
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as exc:
        raise TokenizerError(f"tokenizer: cannot read {file} as a JSON object: {exc}") from exc
