"""Does the fast back end give the ids of the reference? Asked once for each tokenizer and version.

The texts are chosen to hurt: special tokens in text, whole and broken; scripts, emoji, combining
marks, controls, white space of every kind; a sample of all of Unicode; words of the vocabulary;
runs and words far longer than any in prose; nothing at all. The fast back end is used only when
every id of every text agrees. About 300 KB of text, 0.2 to 0.4 s with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from zephon.exec.tokenizers.definition import Definition
from zephon.exec.tokenizers.encoder import TEXT, Encoded
from zephon.exec.tokenizers.hostile_texts import fixed_texts
from zephon.exec.tokenizers.reference_encoder import ReferenceEncoder
from zephon.exec.tokenizers.verdicts import Verdict

# what may stand beside an added token and decide whether it is one: letters, signs, digits
_NEIGHBOURS = ("_", "é", "1", ".", "木", "'", "\u0301")

Encode = Callable[[pa.LargeStringArray], Encoded]


def probe_texts(definition: Definition) -> list[str]:
    """Return every text to compare: the fixed ones, and what the tokenizer itself suggests."""
    texts = list(fixed_texts())
    added = definition.added_texts
    for token in dict.fromkeys((*added[:48], *added[-48:])):
        texts += [
            token,
            f"a{token}b",
            f" {token} ",
            f"{token}{token}",
            f"{token}\n\nx",
            f"x\t{token}",
        ]
        texts += [token[:-1], token[1:], token.upper(), f"<{token}>"]
        texts += [f"{sign}{token}{sign}" for sign in _NEIGHBOURS]
        texts += [f"x {token} {other} {token}{other}" for other in added[:4]]
    texts.append("".join(added[:48]))
    words = sorted(str(word) for word in _vocabulary(definition.content))
    for word in words[:: max(1, len(words) // 512)]:
        text = word.replace("Ġ", " ").replace("▁", " ").replace("Ċ", "\n")
        texts += [text, f"{text}{text}"]
    return texts


def compare(definition: Definition, ways: Sequence[Encode], reference: ReferenceEncoder) -> Verdict:
    """Encode every text in each way and with the reference.

    Returns:
        A verdict whose reason quotes the first text that differs.
    """
    template = reference.template()
    if any(token.get("single_word") for token in _added_tokens(definition.content)):
        return Verdict(False, "an added token matches whole words only", template)
    texts = probe_texts(definition)
    column = pa.array(texts, TEXT)
    wanted = reference.encode(column)
    for way in ways:
        try:
            came = way(column)
        except Exception as exc:
            return Verdict(False, f"gigatoken fails on the probe: {exc}", template)
        place = first_difference(wanted, came)
        if place is not None:
            return Verdict(False, f"gigatoken differs on {texts[place][:40]!r}", template)
    return Verdict(True, f"gigatoken agrees on {len(texts)} probe texts", template)


def first_difference(wanted: Encoded, came: Encoded) -> int | None:
    """Return the first document whose ids differ, None if there is none."""
    if np.array_equal(wanted.offsets, came.offsets) and np.array_equal(wanted.values, came.values):
        return None
    for document in range(min(len(wanted.offsets), len(came.offsets)) - 1):
        a = wanted.values[wanted.offsets[document] : wanted.offsets[document + 1]]
        b = came.values[came.offsets[document] : came.offsets[document + 1]]
        if not np.array_equal(a, b):
            return document
    return min(len(wanted.offsets), len(came.offsets)) - 1


def _added_tokens(content: bytes) -> list[dict[str, Any]]:
    return msgspec.json.decode(content).get("added_tokens") or []


def _vocabulary(content: bytes) -> list[str]:
    vocab = msgspec.json.decode(content)["model"]["vocab"]
    return list(vocab) if isinstance(vocab, dict) else [token for token, _ in vocab]
