"""Where a tokenizer comes from: a file, a directory, or an object of Hugging Face's libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from zephon.errors import NotYetError, TokenizerError
from zephon.exec.tokenizers.definition import ROLES, Definition, define

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILES = ("special_tokens_map.json", "tokenizer_config.json")  # the later one wins
_OTHER_FORMS = ("tokenizer.model", "vocab.json", "merges.txt", "vocab.txt", "tekken.json")


def from_path(tokenizer_id: str | os.PathLike[str], *, split_special_tokens: bool) -> Definition:
    """Read a tokenizer.json, or the one in a directory, and the configuration beside it.

    Both ways of naming one tokenizer give one definition.

    Raises:
        TokenizerError: there is no such file, or it is no tokenizer.json.
        NotYetError: it is a URL or a name on the Hugging Face hub.
    """
    text = os.fspath(tokenizer_id)
    path = Path(text).expanduser()
    if "://" in text:
        raise NotYetError(
            f"tokenizer_id={text!r}: tokenizers at a URL are not there yet; pass a local "
            f"directory that holds {TOKENIZER_FILE}"
        )
    file = path / TOKENIZER_FILE if path.is_dir() else path
    if not file.is_file():
        raise _not_there(text, path)
    try:
        content = file.read_bytes()
    except OSError as exc:
        raise TokenizerError(f"tokenizer_id={text!r}: cannot read {file}: {exc}") from exc
    beside = file.name == TOKENIZER_FILE
    return define(
        text,
        content,
        config=_config(file.parent) if beside else None,
        split_special_tokens=split_special_tokens,
    )


def from_object(tokenizer: object, *, split_special_tokens: bool) -> Definition:
    """Copy what a ``tokenizers.Tokenizer`` or a fast tokenizer of ``transformers`` means.

    The object itself is only read. Truncation and padding set on it are left out.

    Raises:
        TokenizerError: it is no tokenizer, or one that cannot be written as a tokenizer.json.
        NotYetError: it is some other callable.
    """
    kind = f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__}"
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    write = getattr(backend, "to_str", None)
    if not callable(write):
        if callable(tokenizer):
            raise NotYetError(
                f"tokenizer={kind}: callables are not there yet; pass a tokenizers.Tokenizer, a "
                "fast tokenizer of transformers, or tokenizer_id with a local directory"
            )
        raise TokenizerError(
            f"tokenizer: expected a tokenizers.Tokenizer or a fast tokenizer of transformers, "
            f"got {kind}; a path is passed as tokenizer_id"
        )
    try:
        content = str(write()).encode()
    except Exception as exc:
        raise TokenizerError(
            f"tokenizer={kind}: it cannot be written as a {TOKENIZER_FILE}: {exc}; parts in "
            "Python have no such form"
        ) from exc
    name = getattr(tokenizer, "name_or_path", None)
    split = split_special_tokens or getattr(backend, "encode_special_tokens", False) is True
    ids: list[int | None] = []
    for role in ROLES if backend is not tokenizer else ():
        value = getattr(tokenizer, f"{role}_id", None)
        ids.append(int(value) if isinstance(value, int) else None)
    return define(
        name if isinstance(name, str) and name else kind,
        content,
        ids=(ids[0], ids[1], ids[2]) if ids else None,
        split_special_tokens=split,
    )


def _not_there(text: str, path: Path) -> TokenizerError | NotYetError:
    if path.is_dir():
        there = [name for name in _OTHER_FORMS if (path / name).is_file()]
        found = f"it has {', '.join(there)}" if there else "none of the usual files is in it"
        return TokenizerError(
            f"tokenizer_id={text!r}: looked for {path / TOKENIZER_FILE}, which is not there; "
            f"{found}; write one with transformers: "
            "AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
    parts = text.split("/")
    if 1 <= len(parts) <= 2 and all(parts) and text[0] not in ".~" and not text.endswith(".json"):
        return NotYetError(
            f"tokenizer_id={text!r}: no such local file or directory, and names on the Hugging "
            f"Face hub are not there yet; pass a local directory that holds {TOKENIZER_FILE}"
        )
    return TokenizerError(
        f"tokenizer_id={text!r}: no such file or directory; pass a {TOKENIZER_FILE}, or a "
        "directory that holds one"
    )


def _config(folder: Path) -> Mapping[str, Any] | None:
    """Join the configuration files of a folder; None if there are none."""
    joined: dict[str, Any] = {}
    seen = False
    for name in CONFIG_FILES:
        file = folder / name
        if not file.is_file():
            continue
        seen = True
        try:
            parsed = msgspec.json.decode(file.read_bytes())
            joined.update({role: parsed[role] for role in ROLES if role in parsed})
        except (OSError, msgspec.DecodeError, TypeError) as exc:
            raise TokenizerError(f"tokenizer: cannot read {file} as a JSON object: {exc}") from exc
    return joined if seen else None
