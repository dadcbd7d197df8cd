"""Does the fast back end give the ids of the reference? Asked once for each tokenizer and version.

The texts are chosen to hurt: special tokens in text, whole and broken; scripts, emoji, combining
marks, controls, white space of every kind; a sample of all of Unicode; words of the vocabulary;
runs and words far longer than any in prose; nothing at all. The fast back end is used only when
every id of every text agrees, but for texts with characters that one of the two may not know yet.
About 300 KB of text, 0.2 to 0.4 s with the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from zephon.exec.tokenizers.definition import Definition
from zephon.exec.tokenizers.doubtful import Encode, differing, doubtful_characters, table_of
from zephon.exec.tokenizers.encoder import TEXT
from zephon.exec.tokenizers.hostile_texts import fixed_texts
from zephon.exec.tokenizers.reference_encoder import ReferenceEncoder
from zephon.exec.tokenizers.verdicts import Verdict

# what may stand beside an added token and decide whether it is one: letters, signs, digits
_NEIGHBOURS = ("_", "é", "1", ".", "木", "'", "\u0301")


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
        A verdict whose reason quotes a text that differs, if that is against the fast one.
    """
    template = reference.template()
    if any(token.get("single_word") for token in _added_tokens(definition.content)):
        return Verdict(False, "an added token matches whole words only", template)
    texts = probe_texts(definition)
    column = pa.array(texts, TEXT)
    wanted = reference.encode(column)
    bad: list[int] = []
    for way in ways:
        try:
            came = way(column)
        except Exception as exc:
            return Verdict(False, f"gigatoken fails on the probe: {exc}", template)
        bad += differing(wanted, came).tolist()
    if not bad:
        return Verdict(True, f"gigatoken agrees on {len(texts)} probe texts", template)
    plain = [texts[place] for place in bad if texts[place].isascii()]
    if plain:
        return Verdict(False, f"gigatoken differs on {plain[0][:40]!r}", template)
    doubtful = doubtful_characters(ways[-1], reference.encode)
    table = table_of(doubtful)
    known = ["".join(each for each in texts[i] if not table[ord(each)]) for i in sorted(set(bad))]
    column = pa.array(known, TEXT)
    wanted = reference.encode(column)
    for way in ways:
        for place in differing(wanted, way(column)).tolist():
            return Verdict(False, f"gigatoken differs on {known[place][:40]!r}", template)
    reason = (
        f"gigatoken agrees on all but {len(set(bad))} of {len(texts)} probe texts, and documents "
        "with characters that it may know otherwise are left to tokenizers"
    )
    return Verdict(True, reason, template, doubtful)


def _added_tokens(content: bytes) -> list[dict[str, Any]]:
    return msgspec.json.decode(content).get("added_tokens") or []


def _vocabulary(content: bytes) -> list[str]:
    vocab = msgspec.json.decode(content)["model"]["vocab"]
    return list(vocab) if isinstance(vocab, dict) else [token for token, _ in vocab]
