"""One document in 4,096 is checked for ever, and a lie is found."""

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import TokenizerError
from zephon.exec.tokenizers import Encoded, Encoder, Template
from zephon.exec.tokenizers.encoder import TEXT
from zephon.exec.tokenizers.guard import GUARDED_BYTES, Guard, guarded
from zephon.exec.tokenizers.pool import EncoderPool
from zephon.exec.tokenizers.sources import from_object
from zephon.exec.tokenizers.tokenizer import Tokenizer

FIRST = 38_149


class Letters(Encoder):
    """A token a character; a liar adds one to the second token of what holds an x."""

    def __init__(self, *, lies: bool = False) -> None:
        self.lies = lies
        self.met: list[str] = []

    def encode(self, texts):
        documents = texts.to_pylist()
        self.met += documents
        values = [[ord(letter) for letter in text] for text in documents]
        for text, ids in zip(documents, values, strict=True):
            if self.lies and "x" in text:
                ids[1] += 1
        flat = np.array([i for ids in values for i in ids], np.int32)
        return Encoded(flat, np.cumsum([0, *map(len, values)]))


def test_one_ordinal_in_4096_is_guarded():
    chosen = guarded(np.arange(10_000_000))
    assert chosen[0] == FIRST
    assert len(chosen) == pytest.approx(10_000_000 / 4096, rel=0.05)
    assert np.array_equal(guarded(chosen), np.arange(len(chosen)))


def tokenizer(kinds, fast, reference):
    definition = from_object(kinds["byte_level"], split_special_tokens=True)
    pool = EncoderPool(lambda: fast, load_worth=0)
    guard = Guard("small", lambda: reference, fast.encode)
    return Tokenizer(
        definition,
        pool,
        backend="gigatoken",
        version="",
        reason="",
        template=Template(),
        guard=guard,
    )


def test_a_lie_about_a_guarded_document_raises(kinds):
    made = tokenizer(kinds, Letters(lies=True), Letters())
    texts = pa.array(["oxen", "foxes run", "boxes"], TEXT)
    assert len(made.encode(texts, np.arange(3)).offsets) == 4
    with pytest.raises(
        TokenizerError,
        match=r"'small', document at ordinal 38149: from token 1 on, tokenizers gives \[111, 120, "
        r"101, 115\] and gigatoken \[112, .*; the text begins 'foxes run'; "
        r"set options\(tokenizer_backend='tokenizers'\)",
    ):
        made.encode(texts, np.arange(FIRST - 1, FIRST + 2))


def test_only_guarded_documents_reach_the_reference(kinds):
    reference = Letters()
    made = tokenizer(kinds, Letters(), reference)
    texts = pa.array([str(n) for n in range(2_000)], TEXT)
    made.encode(texts, np.arange(38_000, 40_000))
    assert reference.met == ["149", "918"]


def test_the_beginning_of_a_long_document_is_compared(kinds):
    reference, fast = Letters(), Letters(lies=True)
    made = tokenizer(kinds, fast, reference)
    ordinal = np.array([FIRST])
    long = "é" * GUARDED_BYTES
    made.encode(pa.array([long], TEXT), ordinal)
    made.encode(pa.array(["a" + long], TEXT), ordinal)
    assert reference.met == ["é" * (GUARDED_BYTES // 2), "a" + "é" * (GUARDED_BYTES // 2 - 1)]
    made.encode(pa.array([long + "x"], TEXT), ordinal)
    with pytest.raises(TokenizerError, match="from token 1 on"):
        made.encode(pa.array(["x" + long], TEXT), ordinal)


def test_a_document_that_came_out_too_short_is_found(kinds):
    class Short(Letters):
        def encode(self, texts):
            whole = super().encode(texts)
            return Encoded(whole.values[:-1], np.array([0, len(whole.values) - 1]))

    made = tokenizer(kinds, Short(), Letters())
    with pytest.raises(TokenizerError, match=r"from token 2 on, tokenizers gives \[99\] and giga"):
        made.encode(pa.array(["abc"], TEXT), np.array([FIRST]))
