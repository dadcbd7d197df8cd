"""Special tokens in ordinary text: matched as Hugging Face does, counted, warned of once."""

import logging

import numpy as np
import pyarrow as pa
import pytest

from zephon.exec.tokenizers import Encoded, load_tokenizer
from zephon.exec.tokenizers.encoder import TEXT
from zephon.exec.tokenizers.specials import SpecialTokens

TEXTS = pa.array(
    ["nothing", "how to use <|endoftext|> in prompts", "", "<|bos|><|endoftext|>"], TEXT
)


@pytest.mark.parametrize("backend", ["gigatoken", "tokenizers"])
def test_they_are_matched_counted_and_warned_of_once(kinds, backend, caplog):
    tokenizer = load_tokenizer(tokenizer=kinds["byte_level"], backend=backend)
    with caplog.at_level(logging.WARNING, logger="zephon"):
        encoded = tokenizer.encode(TEXTS, np.arange(70, 74))
        tokenizer.encode(TEXTS, np.arange(74, 78))
    reference = kinds["byte_level"].encode(TEXTS[1].as_py()).ids
    assert encoded.values[encoded.offsets[1] : encoded.offsets[2]].tolist() == reference
    assert 0 in reference
    assert tokenizer.special_tokens_seen == 6
    assert len(caplog.records) == 1
    assert (
        "(ordinal 71: 'how to use <|endoftext|> in prompts') holds the special token "
        "'<|endoftext|>' and gets id 0" in caplog.text
    )


@pytest.mark.parametrize("backend", ["gigatoken", "tokenizers"])
def test_split_special_tokens_makes_them_plain(kinds, backend, caplog):
    tokenizer = load_tokenizer(
        tokenizer=kinds["byte_level"], backend=backend, split_special_tokens=True
    )
    encoded = tokenizer.encode(TEXTS, np.arange(4))
    assert not np.isin(encoded.values, [0, 1, 2]).any()
    whole = "".join(map(kinds["byte_level"].id_to_token, encoded.values.tolist()))
    assert "howĠtoĠuseĠ<|endoftext|>ĠinĠprompts" in whole
    assert tokenizer.special_tokens_seen == 0
    assert not caplog.records


@pytest.mark.parametrize(
    "ids",
    [[0], [7, 8, 9], [0, 1, 90, 91], [3, 6, 9, 12, 15, 18], [0, 99]],
    ids=["one", "run", "ends", "many", "far"],
)
def test_counting_is_membership(ids):
    specials = SpecialTokens("t", tuple((token, f"<{token}>") for token in ids))
    values = np.array([5, 0, 7, 91, 90, 8, 15, 15, 2, 99, 100, 98] * 3, np.int32)
    encoded = Encoded(values, np.array([0, 12, 12, len(values)]))
    texts = pa.array(["a", "b", "c"], TEXT)
    specials.count(texts, np.arange(3), encoded)
    assert specials.seen == np.isin(values, ids).sum()
    specials.count(texts, np.arange(3), Encoded(values[:0], np.zeros(4, np.int64)))
    assert specials.seen == np.isin(values, ids).sum()
