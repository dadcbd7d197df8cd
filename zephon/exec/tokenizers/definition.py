"""What a tokenizer means, whoever encodes with it: the content of tokenizer.json and three ids."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from zephon.errors import TokenizerError

ROLES = ("bos_token", "eos_token", "pad_token")

CONVENTIONAL = {
    "bos_token": ("<s>", "<bos>", "<|bos|>", "[BOS]", "<|begin_of_text|>", "<|startoftext|>"),
    "eos_token": ("</s>", "<eos>", "<|eos|>", "[EOS]", "<|end_of_text|>", "<|endoftext|>"),
    "pad_token": ("<pad>", "<|pad|>", "[PAD]", "<|padding|>", "<|finetune_right_pad_id|>"),
}
"""Special tokens whose text says what they are for; asked only where no configuration speaks."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A tokenizer as data.

    name: what to call it in messages.
    content: tokenizer.json, without truncation and padding, which change no token.
    content_digest: SHA-256 of what ``content`` says; spaces and the order of keys do not matter.
    ids: bos, eos and pad, None where the tokenizer has none.
    vocab_size: every id is below it.
    special_tokens: (id, text) of each special token that text may hold, by id; without the
        unknown token, which stands for other text.
    added_texts: the text of each added token, special or not.
    split_special_tokens: a special token in text is plain text.
    """

    name: str
    content: bytes
    content_digest: str
    ids: tuple[int | None, int | None, int | None]
    vocab_size: int
    special_tokens: tuple[tuple[int, str], ...]
    added_texts: tuple[str, ...]
    split_special_tokens: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of everything that decides ids; the name is not part of it."""
        parts = [self.content_digest, *self.ids, self.split_special_tokens]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def define(
    name: str,
    content: bytes,
    *,
    ids: tuple[int | None, int | None, int | None] | None = None,
    config: Mapping[str, Any] | None = None,
    split_special_tokens: bool = False,
) -> Definition:
    """Read a tokenizer.json.

    Args:
        name: what to call it in messages.
        content: the bytes of the file.
        ids: bos, eos and pad, where the caller knows them.
        config: else ``bos_token`` and so on by text, as Hugging Face configurations have them;
            a token that is not there is None. None: no configuration, go by ``CONVENTIONAL``.
        split_special_tokens: a special token in text is plain text.

    Raises:
        TokenizerError: the content is not that of a tokenizer.json.
    """
    try:
        parsed = msgspec.json.decode(content)
        model = parsed["model"]
        vocab = model["vocab"]
        added = parsed.get("added_tokens") or []
        if not isinstance(vocab, dict):  # Unigram: a list of (token, score), the id is the place
            vocab = {token: place for place, (token, _) in enumerate(vocab)}
        by_text = {token["content"]: int(token["id"]) for token in added}
        highest = max(max(vocab.values(), default=-1), max(by_text.values(), default=-1))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError) as exc:
        raise TokenizerError(
            f"tokenizer {name}: expected the content of a Hugging Face tokenizer.json with a "
            f"model and its vocab, got something else ({type(exc).__name__}: {exc})"
        ) from exc
    if ids is None:
        special = {token["content"] for token in added if token.get("special")}
        ids = _ids(config, special, lambda text: by_text.get(text, vocab.get(text)))
    unknown = model.get("unk_token")
    canonical, plain = _without_settings(parsed, content)
    return Definition(
        name=name,
        content=plain,
        content_digest=hashlib.sha256(canonical).hexdigest(),
        ids=ids,
        vocab_size=highest + 1,
        special_tokens=tuple(
            sorted(
                (int(token["id"]), token["content"])
                for token in added
                if token.get("special") and token["content"] not in (unknown, "")
            )
        ),
        added_texts=tuple(by_text),
        split_special_tokens=split_special_tokens,
    )


def without_special_tokens(content: bytes) -> bytes:
    """Return a tokenizer.json in which no special token is matched in text."""
    parsed = msgspec.json.decode(content)
    kept = [token for token in parsed.get("added_tokens") or [] if not token.get("special")]
    return msgspec.json.encode({**parsed, "added_tokens": kept, "post_processor": None})


def _ids(
    config: Mapping[str, Any] | None, special: set[str], id_of: Callable[[str], int | None]
) -> tuple[int | None, int | None, int | None]:
    found: list[int | None] = []
    for role in ROLES:
        if config is None:
            texts = [text for text in CONVENTIONAL[role] if text in special]
        else:
            entry = config.get(role)
            text = entry.get("content") if isinstance(entry, dict) else entry
            texts = [text] if isinstance(text, str) else []
        found.append(id_of(texts[0]) if texts else None)
    return found[0], found[1], found[2]


def _without_settings(parsed: dict[str, Any], content: bytes) -> tuple[bytes, bytes]:
    """Return the canonical form for hashing, and the content for loading, keys in their order."""
    settings = ("truncation", "padding")
    rest = {key: value for key, value in parsed.items() if key not in settings}
    is_set = any(parsed.get(key) is not None for key in settings)
    canonical = msgspec.json.encode(rest, order="sorted")
    return canonical, msgspec.json.encode(rest) if is_set else content
