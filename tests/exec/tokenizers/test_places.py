"""Where tokens lie in a text: as the reference says, whichever way it was found."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers

from zephon.errors import TokenizerError
from zephon.exec.tokenizers import load_tokenizer
from zephon.exec.tokenizers.encoder import TEXT, Encoded
from zephon.exec.tokenizers.places import Places, spelling_of

KINDS = ["byte_level", "split_regex", "byte_fallback", "unigram"]
SPELT = ["byte_level", "split_regex"]
TEXTS = st.lists(st.text(max_size=30) | st.sampled_from(["a<|bos|>b", " x", "", "é🎉"]), max_size=6)


def ranges_of(tokenizer, texts, *, first=0):
    column = pa.array(["before"] * first + texts, TEXT).slice(first)
    encoded = tokenizer.encode(column, np.arange(len(texts)))
    return encoded, tokenizer.places().ranges(column, encoded)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, first=st.integers(0, 2))
def test_they_are_those_of_the_reference(kinds, kind, texts, first):
    tokenizer = load_tokenizer(tokenizer=kinds[kind])
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    encoded, (starts, stops) = ranges_of(tokenizer, texts, first=first)
    assert len(starts) == len(stops) == len(encoded.values)
    begin = 0
    for number, text in enumerate(texts):
        some = slice(*encoded.offsets[number : number + 2].tolist())
        offsets = kinds[kind].encode(text, add_special_tokens=False).offsets
        wanted = [[begin + len(text[:at].encode()) for at in pair] for pair in offsets]
        # Of a character in several tokens the reference gives all of it to each.
        for place, (start, stop) in enumerate(wanted):
            assert start <= starts[some][place] <= stops[some][place] <= stop
        if text and kind in SPELT:
            assert starts[some][0] == begin
            assert stops[some][-1] == begin + len(text.encode())
            assert (starts[some][1:] == stops[some][:-1]).all()
        begin += len(text.encode())


@pytest.mark.parametrize("kind", KINDS)
def test_no_document_is_asked_of_the_reference_where_ids_spell_the_text(kinds, kind):
    asked = []
    tokenizer = load_tokenizer(tokenizer=kinds[kind])
    known = tokenizer.places()
    watched = Places(
        known.name,
        known.spelling,
        lambda t: asked.extend(t) or known.offsets_of(t),
        known.keeps_ascii,
    )
    column = pa.array(["one two", "größe 🎉", ""], TEXT)
    encoded = tokenizer.encode(column, np.arange(3))
    np.testing.assert_array_equal(watched.ranges(column, encoded), known.ranges(column, encoded))
    assert bool(asked) == (kind not in SPELT)


def test_a_document_that_was_normalized_is_looked_up_and_the_others_are_not(kinds):
    composing = Tokenizer.from_str(kinds["byte_level"].to_str())
    composing.normalizer = normalizers.NFC()
    tokenizer = load_tokenizer(tokenizer=composing)
    texts = ["plain", "e\u0301a", "more"]  # two characters become one
    encoded, (starts, stops) = ranges_of(tokenizer, texts)
    some = slice(*encoded.offsets[1:3].tolist())
    assert starts[some][0] == len("plain")
    assert stops[some][-1] == len("plain") + len(texts[1].encode())
    assert starts[encoded.offsets[2]] == stops[some][-1]
    assert stops[-1] == sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_ascii_is_found_by_lengths_as_it_is_by_bytes(kinds, kind):
    tokenizer = load_tokenizer(tokenizer=kinds[kind])
    known = tokenizer.places()
    assert known.keeps_ascii == (kind in SPELT)
    texts = ["", "The quick brown fox", " x\n\n y ", "<|endoftext|>", "a" * 300]
    column = pa.array(texts, TEXT)
    encoded = tokenizer.encode(column, np.arange(len(texts)))
    by_bytes = Places(known.name, known.spelling, known.offsets_of)
    np.testing.assert_array_equal(known.ranges(column, encoded), by_bytes.ranges(column, encoded))


def test_a_reference_that_is_at_odds_is_refused(kinds):
    places = load_tokenizer(tokenizer=kinds["unigram"]).places()
    column = pa.array(["some text"], TEXT)
    with pytest.raises(TokenizerError, match="gives other ids"):
        places.ranges(column, Encoded(np.array([1], np.int32), np.array([0, 1])))


def test_the_stub_has_no_places():
    with pytest.raises(TokenizerError, match="nobody knows where its tokens lie"):
        load_tokenizer().places()


def test_only_models_of_fixed_bytes_are_spelt(kinds):
    content = json.loads(kinds["byte_level"].to_str())
    assert spelling_of(json.dumps(content).encode(), 600) is not None
    content["model"]["end_of_word_suffix"] = "</w>"
    assert spelling_of(json.dumps(content).encode(), 600) is None
    assert spelling_of(kinds["unigram"].to_str().encode(), 250) is None
