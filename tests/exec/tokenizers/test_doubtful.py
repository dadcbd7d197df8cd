"""A fast back end with other Unicode tables is used for what it surely knows, and nothing else."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers

from zephon.exec.tokenizers import Encoded, load_tokenizer, loaded
from zephon.exec.tokenizers.careful_encoder import CarefulEncoder
from zephon.exec.tokenizers.doubtful import differing, doubtful_characters, table_of
from zephon.exec.tokenizers.encoder import TEXT, Encoder
from zephon.exec.tokenizers.gigatoken_encoder import GigatokenEncoder
from zephon.exec.tokenizers.reference_encoder import ReferenceEncoder

ALPHABET = "aé漢🎉\u0301\u0323\u0378\U000e0100ก็ 1\n"  # U+0378 is nobody's


@pytest.fixture(scope="module")
def composing(kinds):
    made = Tokenizer.from_str(kinds["byte_level"].to_str())
    made.normalizer = normalizers.NFC()
    return made


def encoded(values, offsets):
    return Encoded(np.array(values, np.int32), np.array(offsets, np.int64))


def test_differing_documents_are_found():
    one = encoded([1, 2, 3], [0, 1, 1, 3])
    assert differing(one, one).tolist() == []
    assert differing(one, encoded([1, 2, 4], [0, 1, 1, 3])).tolist() == [2]
    assert differing(one, encoded([1, 9, 2, 3], [0, 1, 2, 4])).tolist() == [1]
    assert differing(one, encoded([2, 1, 2, 3], [0, 1, 2, 4])).tolist() == [0, 1]


class Watched(Encoder):
    def __init__(self, inner):
        self.inner, self.seen = inner, []

    def encode(self, texts):
        self.seen += texts.to_pylist()
        return self.inner.encode(texts)


@settings(max_examples=80, deadline=None)
@given(texts=st.lists(st.text(ALPHABET, max_size=8), max_size=9), first=st.integers(0, 2))
def test_documents_with_doubtful_characters_go_to_the_reference(composing, texts, first):
    reference = ReferenceEncoder.load(composing.to_str().encode(), split_special_tokens=False)
    fast, slow = Watched(reference), Watched(reference)
    table = table_of([(0x323, 0x323), (0x378, 0x378), (0xE0100, 0xE01FF)])
    column = pa.array(["\u0378"] * first + texts, TEXT).slice(first)
    careful = CarefulEncoder(fast, lambda: slow, table)
    made, wanted = careful.encode(column), reference.encode(column)
    np.testing.assert_array_equal(made.values, wanted.values)
    np.testing.assert_array_equal(made.offsets, wanted.offsets)
    doubtful = [t for t in texts if {"\u0323", "\u0378", "\U000e0100"} & set(t)]
    assert slow.seen == doubtful
    assert fast.seen == [text for text in texts if text not in doubtful]


class OtherTables(GigatokenEncoder):
    """Knows nothing of one mark."""

    mark = "\u0322"

    def encode_together(self, texts):
        return self._renamed(texts, super().encode_together)

    def encode_singly(self, texts):
        return self._renamed(texts, super().encode_singly)

    def _renamed(self, texts, encode):
        return encode(pa.array([t.replace(self.mark, "?") for t in texts.to_pylist()], TEXT))


class OtherLetters(OtherTables):
    """Knows nothing of a letter, which no version of Unicode takes away."""

    mark = "n"


def test_another_mark_is_doubtful_and_another_letter_is_refused(
    fresh_process, monkeypatch, composing
):
    monkeypatch.setattr(loaded, "GigatokenEncoder", OtherTables)
    tokenizer = load_tokenizer(tokenizer=composing)
    assert tokenizer.backend == "gigatoken"
    assert "are left to tokenizers" in tokenizer.reason
    texts = ["plain", "a\u0322b", "größe", "漢字 🎉"]
    made = tokenizer.encode(pa.array(texts, TEXT), np.arange(len(texts)))
    wanted = [composing.encode(text, add_special_tokens=False).ids for text in texts]
    assert [part.tolist() for part in np.split(made.values, made.offsets[1:-1])] == wanted
    loaded._recent.clear()
    again = load_tokenizer(tokenizer=composing)  # by what was kept on disk
    assert again.reason == tokenizer.reason
    made = again.encode(pa.array(texts, TEXT), np.arange(len(texts)))
    assert [part.tolist() for part in np.split(made.values, made.offsets[1:-1])] == wanted


def test_a_difference_in_what_everybody_knows_is_none_of_tables(
    fresh_process, monkeypatch, composing
):
    monkeypatch.setattr(loaded, "GigatokenEncoder", OtherLetters)
    tokenizer = load_tokenizer(tokenizer=composing)
    assert (tokenizer.backend, tokenizer.reason[:18]) == ("tokenizers", "gigatoken differs ")


def test_characters_that_nobody_knows_are_doubtful_and_letters_are_not(composing):
    reference = ReferenceEncoder.load(composing.to_str().encode(), split_special_tokens=False)
    table = table_of(doubtful_characters(reference.encode, reference.encode))
    assert table[[0x378, 0xE000, 0xD800, 0x10FFFF]].all()
    assert not table[[ord(each) for each in "aé漢🎉\u0301\u0323ก็ 1\n"]].any()
