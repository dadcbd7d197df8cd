"""Conversations as data hold them, one function a format: a row in, its messages out.

Values go over as they are: a list of blocks stays one, and keys of a message beside those that say
who speaks and what stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zephon.errors import DataTypeError, nearest
from zephon.exec.message_fields import checked_row, messages_at, no_field, path_of
from zephon.exec.operators.found_format import (
    CALL,
    MARKS,
    bad,
    check_keys,
    found_format,
    names_in,
    place,
    wrong,
)

Words = Mapping[str, str]
"""The role that each word means."""

Path = tuple[str, ...]
Messages = list[dict[str, Any]]

_ALPACA = ("instruction", "input", "output", "system", "history")
_CALLS = ("tool_calls", "function_call")
_WORDS_FOR_KEYS = ("from", "value", "role", "content")


def conversation_of(
    row: Any,
    form: str,
    field: str | None,
    words: Words,
) -> tuple[Messages, list[Path]]:
    """Read the conversation of a row.

    Args:
        row: shares its values with what is given.
        form: one of ``CHAT_FORMATS``.
        field: where a list of messages lies; None: where it does by custom.
        words: for those who speak.

    Returns:
        the messages, and the fields that they are made of; that of a list first.

    Raises:
        BadRow: the row is not of the format, or of one only.
    """
    row = checked_row(CALL, row, field or MARKS.get(form, ("messages",))[0])
    if form == "auto":
        form, field = found_format(row, field)
    match form:
        case "messages":
            return _messages(row, field or "messages", words)
        case "sharegpt":
            return _sharegpt(row, field or "conversations", words)
        case "alpaca":
            return _alpaca(row)
        case _:
            return _prompt_completion(row, words)


def _messages(row: Mapping[str, Any], field: str, words: Words) -> tuple[Messages, list[Path]]:
    path = path_of(CALL, row, field)
    turns = messages_at(CALL, row, field)
    return [_message(turn, at, field, words) for at, turn in enumerate(turns)], [path]


def _message(turn: Any, at: int, field: str, words: Words) -> dict[str, Any]:
    check_keys(turn, at, field, "messages")
    if "content" not in turn and all(turn.get(name) is None for name in _CALLS):
        raise bad(f"{place(at, field)} must have content or tool_calls, got {names_in(turn)}")
    role = _role(turn["role"], at, field, words)
    return turn if type(turn) is dict and role == turn["role"] else {**turn, "role": role}


def _sharegpt(row: Mapping[str, Any], field: str, words: Words) -> tuple[Messages, list[Path]]:
    path = path_of(CALL, row, field)
    turns = messages_at(CALL, row, field)
    messages = [_turn(turn, at, field, words) for at, turn in enumerate(turns)]
    system = _system(row)
    if system and messages and messages[0]["role"] == "system":
        raise bad(
            "one system message must begin a conversation, got field 'system' and "
            f"{place(0, field)}",
            "leave one of them out, with map_transform",
        )
    return system + messages, [path, *_those_in(row, ("system",))]


def _turn(turn: Any, at: int, field: str, words: Words) -> dict[str, Any]:
    check_keys(turn, at, field, "sharegpt")
    taken = turn.get("role") is not None or turn.get("content") is not None
    if taken or "value" not in turn:
        raise bad(f"{place(at, field)} must have from and value, got {names_in(turn)}")
    role = _role(turn["from"], at, field, words)
    made = {"role": role, "content": turn["value"]}
    if len(turn) > len(made):
        made |= {name: value for name, value in turn.items() if name not in _WORDS_FOR_KEYS}
    return made


def _alpaca(row: Mapping[str, Any]) -> tuple[Messages, list[Path]]:
    asked = [text for text in (_text(row, "instruction"), _optional(row, "input")) if text]
    messages = [
        *_system(row),
        *_history(row),
        {"role": "user", "content": "\n\n".join(asked)},
        {"role": "assistant", "content": _text(row, "output")},
    ]
    return messages, _those_in(row, _ALPACA)


def _history(row: Mapping[str, Any]) -> Messages:
    found = row.get("history")
    pairs: Any = found.tolist() if isinstance(found, np.ndarray) else found
    messages: Messages = []
    if pairs is not None and not isinstance(pairs, list | tuple):
        raise wrong("field 'history' must be a list of pairs of texts", pairs)
    for at, pair in enumerate(pairs or ()):
        texts: Any = pair.tolist() if isinstance(pair, np.ndarray) else pair
        of_texts = isinstance(texts, list | tuple) and all(isinstance(t, str) for t in texts)
        if not of_texts or len(texts) != 2:
            raise wrong(f"item {at} of field 'history' must be a pair of texts", texts)
        messages.append({"role": "user", "content": texts[0]})
        messages.append({"role": "assistant", "content": texts[1]})
    return messages


def _prompt_completion(row: Mapping[str, Any], words: Words) -> tuple[Messages, list[Path]]:
    names = ("prompt", "completion")
    for name in names:
        if name not in row:
            raise no_field(CALL, row, name)
    if all(isinstance(row[name], str) for name in names):
        texts = zip(("user", "assistant"), names, strict=True)
        messages = [{"role": role, "content": row[name]} for role, name in texts]
    elif any(isinstance(row[name], str) for name in names):
        kinds = " and a ".join(type(row[name]).__name__ for name in names)
        raise bad(
            f"fields 'prompt' and 'completion' must both be text, or both lists of messages, got a "
            f"{kinds}",
            kind=DataTypeError,
        )
    else:
        messages = [message for name in names for message in _messages(row, name, words)[0]]
    return messages, [(name,) for name in names]


def _role(word: Any, at: int, field: str, words: Words) -> str:
    if isinstance(word, str) and word in words:
        return words[word]
    near = nearest(word, words) if isinstance(word, str) else f"known are: {', '.join(words)}"
    raise bad(
        f"{place(at, field)} must have a known word for its role, got {word!r:.80}",
        f"write one that is known ({near}), or add it, as in roles={{'bot': 'assistant'}}",
    )


def _system(row: Mapping[str, Any]) -> Messages:
    text = _optional(row, "system")
    return [{"role": "system", "content": text}] if text else []


def _text(row: Mapping[str, Any], name: str) -> str:
    if name not in row:
        raise no_field(CALL, row, name)
    if not isinstance(row[name], str):
        raise wrong(f"field {name!r} must be text", row[name])
    return row[name]


def _optional(row: Mapping[str, Any], name: str) -> str:
    return "" if row.get(name) is None else _text(row, name)


def _those_in(row: Mapping[str, Any], names: Sequence[str]) -> list[Path]:
    return [(name,) for name in names if name in row]
