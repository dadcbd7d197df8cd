"""What a tokenizer means, whoever encodes with it: the content of tokenizer.json and three ids."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
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

Ids = tuple[int | None, int | None, int | None]


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
    dropout: share of merges that the model skips at random; ``define`` refuses any.
    split_special_tokens: a special token in text is plain text.
    """

    name: str
    content: bytes
    content_digest: str
    ids: Ids
    vocab_size: int
    special_tokens: tuple[tuple[int, str], ...]
    added_texts: tuple[str, ...]
    dropout: float = 0.0
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
    ids: Ids | None = None,
    config: Mapping[str, Any] | None = None,
    split_special_tokens: bool = False,
) -> Definition:
    """Read a tokenizer.json; the last few contents are remembered.

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
    roles = None if config is None else tuple(_text(config.get(role)) for role in ROLES)
    try:
        definition = _read(content, roles)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError) as exc:
        raise TokenizerError(
            f"tokenizer {name!r}: expected the content of a Hugging Face tokenizer.json with a "
            f"model and its vocab, got something else ({type(exc).__name__}: {exc})"
        ) from exc
    if definition.dropout:
        raise TokenizerError(
            f"tokenizer {name!r}: a text must have the same ids each time, but its model has "
            f"dropout={definition.dropout}; set dropout to null in its tokenizer.json"
        )
    return replace(
        definition,
        name=name,
        ids=definition.ids if ids is None else ids,
        split_special_tokens=split_special_tokens,
    )


@functools.lru_cache(maxsize=2)
def _read(content: bytes, roles: tuple[str | None, ...] | None) -> Definition:
    """Read a tokenizer.json whose name nobody knows; ``roles`` are the texts of bos, eos, pad."""
    parsed = msgspec.json.decode(content)
    model = parsed["model"]
    vocab = model["vocab"]
    added = parsed.get("added_tokens") or []
    if not isinstance(vocab, dict):  # Unigram: a list of (token, score), the id is the place
        vocab = {token: place for place, (token, _) in enumerate(vocab)}
    by_text = {token["content"]: int(token["id"]) for token in added}
    highest = max(max(vocab.values(), default=-1), max(by_text.values(), default=-1))
    special = {token["content"]: int(token["id"]) for token in added if token.get("special")}
    if roles is None:
        named = (next(filter(special.__contains__, CONVENTIONAL[role]), None) for role in ROLES)
        roles = tuple(named)
    ids = [None if text is None else by_text.get(text, vocab.get(text)) for text in roles]
    unknown = {model.get("unk_token"), *_texts_at(vocab, model.get("unk_id"))}
    canonical, plain = _without_settings(parsed, content)
    return Definition(
        name="",
        content=plain,
        content_digest=hashlib.sha256(canonical).hexdigest(),
        ids=(ids[0], ids[1], ids[2]),
        vocab_size=highest + 1,
        special_tokens=tuple(
            sorted((i, text) for text, i in special.items() if text not in unknown)
        ),
        added_texts=tuple(by_text),
        dropout=float(model.get("dropout") or 0.0),
    )


def without_special_tokens(content: bytes) -> bytes:
    """Return a tokenizer.json in which no special token is matched in text."""
    parsed = msgspec.json.decode(content)
    kept = [token for token in parsed.get("added_tokens") or [] if not token.get("special")]
    return msgspec.json.encode({**parsed, "added_tokens": kept, "post_processor": None})


def _text(entry: object) -> str | None:
    text = entry.get("content") if isinstance(entry, dict) else entry
    return text if isinstance(text, str) else None


def _texts_at(vocab: Mapping[str, int], place: int | None) -> list[str]:
    return [] if place is None else [text for text, token in vocab.items() if token == place]


def _without_settings(parsed: dict[str, Any], content: bytes) -> tuple[bytes, bytes]:
    """Return the canonical form for hashing, and the content for loading, keys in their order."""
    settings = ("truncation", "padding")
    rest = {key: value for key, value in parsed.items() if key not in settings}
    is_set = any(parsed.get(key) is not None for key in settings)
    canonical = msgspec.json.encode(rest, order="sorted")
    return canonical, msgspec.json.encode(rest) if is_set else content
