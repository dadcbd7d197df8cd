"""Both back ends give the same ids, however a column is cut or sliced."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon.errors import TokenizerError
from zephon.exec.tokenizers import gigatoken_encoder, reference_encoder
from zephon.exec.tokenizers.definition import without_special_tokens
from zephon.exec.tokenizers.encoder import TEXT, Encoded, join, pieces, text_offsets
from zephon.exec.tokenizers.gigatoken_encoder import GigatokenEncoder
from zephon.exec.tokenizers.hostile_texts import fixed_texts
from zephon.exec.tokenizers.reference_encoder import ReferenceEncoder
from zephon.exec.tokenizers.whitespace_encoder import WhitespaceEncoder

FAST = ["byte_level", "split_regex", "byte_fallback"]
SPECIALS = ["<|endoftext|>", "<|bos|>", "<|begin_of_text|>", "<s>", "</s>", "<unk>", "<|end"]


def column(*texts: str) -> pa.LargeStringArray:
    return pa.array(texts, TEXT)


def ids(encoded: Encoded) -> list[list[int]]:
    assert encoded.values.dtype == np.int32
    assert encoded.offsets.dtype == np.int64
    assert encoded.offsets[0] == 0
    assert encoded.offsets[-1] == len(encoded.values)
    return [part.tolist() for part in np.split(encoded.values, encoded.offsets[1:-1])]


@pytest.fixture(scope="module")
def pairs(kinds):
    """Fast and reference encoder of each kind, special tokens matched and not."""
    made = {}
    for name in FAST:
        content = kinds[name].to_str().encode()
        for split in (False, True):
            fast = GigatokenEncoder(without_special_tokens(content) if split else content)
            reference = ReferenceEncoder.load(content, split_special_tokens=split)
            made[name, split] = fast, reference
    return made


hostile = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from([*SPECIALS, " ", "\n", "\r\n", "a", "Z9", "é", "漢", "😀"])).map(
            "".join
        ),
        st.tuples(st.sampled_from("a \n0=é漢\u0301"), st.integers(1, 400)).map(
            lambda unit_times: unit_times[0] * unit_times[1]
        ),
    ),
    max_size=8,
)


@pytest.mark.parametrize("split", [False, True], ids=["matched", "split"])
@pytest.mark.parametrize("kind", FAST)
def test_both_give_the_same_ids_for_any_text(pairs, kind, split):
    fast, reference = pairs[kind, split]

    @settings(max_examples=60, deadline=None)
    @given(hostile)
    def check(texts):
        texts = column(*texts)
        wanted = reference.encode(texts)
        for encode in (fast.encode_singly, fast.encode_together):
            came = encode(texts)
            assert came.offsets.tolist() == wanted.offsets.tolist()
            assert came.values.tolist() == wanted.values.tolist()

    check()


@pytest.mark.parametrize("split", [False, True], ids=["matched", "split"])
@pytest.mark.parametrize("kind", FAST)
def test_both_give_the_same_ids_for_the_fixed_texts(pairs, kind, split):
    fast, reference = pairs[kind, split]
    texts = column(*fixed_texts())
    assert ids(fast.encode(texts)) == ids(reference.encode(texts))


@pytest.mark.parametrize("kind", FAST)
def test_one_huge_word_is_encoded_whole(pairs, kind):
    fast, reference = pairs[kind, False]
    texts = column("b", "a" * 300_000, "", "漢字" * 30_000, "c")
    assert ids(fast.encode(texts)) == ids(reference.encode(texts))


@pytest.mark.parametrize("kind", FAST)
def test_a_text_is_encoded_without_brackets(pairs, kind):
    for encoder in pairs[kind, False]:
        assert ids(encoder.encode(column("", ""))) == [[], []]
        assert encoder.encode(column()).offsets.tolist() == [0]
        assert encoder.encode(column()).values.tolist() == []


@pytest.mark.parametrize("module", [gigatoken_encoder, reference_encoder])
def test_ids_do_not_depend_on_pieces(pairs, module, monkeypatch):
    encoder = pairs["byte_level", False][module is reference_encoder]
    texts = column(*[f"{'word ' * (n % 7)}{n}" for n in range(300)])
    whole = ids(encoder.encode(texts))
    monkeypatch.setattr(module, "PIECE_BYTES", 40)
    assert ids(encoder.encode(texts)) == whole
    assert ids(encoder.encode(texts.slice(17, 60))) == whole[17:77]


def test_the_first_text_of_an_object_needs_no_awkward(pairs, kinds, monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "awkward", raising=False)
    encoder = GigatokenEncoder(kinds["byte_level"].to_str().encode())

    def together(texts):
        raise AssertionError("went together")

    monkeypatch.setattr(encoder, "encode_together", together)
    encoder.encode(column("x" * 1000))
    monkeypatch.setattr(gigatoken_encoder, "FIRST_BYTES", 1000)
    with pytest.raises(AssertionError, match="went together"):
        encoder.encode(column("x"))


def test_what_cannot_be_loaded_is_said():
    with pytest.raises(TokenizerError, match="gigatoken cannot load this tokenizer: Failed to"):
        GigatokenEncoder(b"{")
    with pytest.raises(TokenizerError, match="tokenizers cannot load this tokenizer"):
        ReferenceEncoder.load(b"{", split_special_tokens=False)


def test_a_panic_is_an_ordinary_error():
    class PanicException(BaseException):
        pass

    def panic():
        raise PanicException("index out of bounds")

    with pytest.raises(TokenizerError, match=r"gave up: index out of bounds; set options\("):
        gigatoken_encoder._without_panic(panic)


@given(st.lists(st.text(max_size=12)), st.integers(1, 30), st.integers(0, 5))
def test_pieces_hold_every_document_once(texts, size, skipped):
    texts = column(*texts)[skipped:]
    parts = list(pieces(texts, size))
    assert [text for part in parts for text in part.to_pylist()] == texts.to_pylist()
    assert all(len(part) for part in parts) or not len(texts)
    for part in parts:
        offsets = text_offsets(part)
        assert len(part) <= 1 or offsets[-2] - offsets[0] < size + max(np.diff(offsets))


def test_join_keeps_documents_apart():
    a = Encoded(np.array([1, 2], np.int32), np.array([0, 0, 2]))
    b = Encoded(np.array([3], np.int32), np.array([0, 1]))
    assert ids(join([a, b])) == [[], [1, 2], [3]]
    assert join([a]) is a


def test_the_stub_gives_a_word_its_number():
    encoder = WhitespaceEncoder()
    assert ids(encoder.encode(column("to be  or\nnot to be", ""))) == [
        [6283, 7605, 8423, 313, 6283, 7605],
        [],
    ]
