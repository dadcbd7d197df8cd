"""The probe decides, once: its verdict is kept, and a cache that is broken costs only time."""

import hashlib

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import TokenizerError
from zephon.exec.tokenizers import Encoded, Template, load_tokenizer, loaded
from zephon.exec.tokenizers.encoder import TEXT
from zephon.exec.tokenizers.gigatoken_encoder import GigatokenEncoder
from zephon.exec.tokenizers.hostile_texts import VERSION, fixed_texts
from zephon.exec.tokenizers.probe import probe_texts
from zephon.exec.tokenizers.reference_encoder import ReferenceEncoder
from zephon.exec.tokenizers.sources import from_object
from zephon.exec.tokenizers.verdicts import Verdict, cache_root, recall, remember, verdict_key

TEMPLATE = Template((402,), (403,))  # what ``split_regex`` puts around a document


class Liar(GigatokenEncoder):
    """Right about everything but one text."""

    def encode_together(self, texts):
        right = super().encode_together(texts)
        wrong = right.values.copy()
        place = texts.to_pylist().index("</div><br/>\n")
        wrong[right.offsets[place]] += 1
        return Encoded(wrong, right.offsets)


def forget():
    loaded._recent.clear()


def never(*args, **kwargs):
    raise AssertionError("must not be called")


def test_the_texts_are_those_of_their_version():
    digest = hashlib.sha256(msgspec.json.encode(fixed_texts())).hexdigest()
    assert (VERSION, digest[:16]) == ("2", "3b2adc71dd3b8e21"), (
        "raise VERSION when the texts change"
    )
    assert 100_000 < sum(len(text.encode()) for text in fixed_texts()) < 400_000


def test_special_tokens_are_probed_whole_and_broken(kinds):
    texts = probe_texts(from_object(kinds["byte_level"], split_special_tokens=False))
    assert {"<|endoftext|>", "a<|endoftext|>b", "<|endoftext|", "|endoftext|>"} <= set(texts)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("kind", ["byte_level", "split_regex", "byte_fallback"])
def test_the_fast_one_is_chosen_where_it_agrees(fresh_process, kinds, kind, split):
    tokenizer = load_tokenizer(tokenizer=kinds[kind], split_special_tokens=split)
    assert tokenizer.backend == "gigatoken"
    assert tokenizer.reason.startswith("gigatoken agrees on ")


def test_a_single_wrong_id_decides(fresh_process, kinds, monkeypatch):
    monkeypatch.setattr(loaded, "GigatokenEncoder", Liar)
    tokenizer = load_tokenizer(tokenizer=kinds["byte_level"])
    assert tokenizer.backend == "tokenizers"
    assert tokenizer.reason == r"gigatoken differs on '</div><br/>\n'"
    forget()
    with pytest.raises(TokenizerError, match="would not give the ids of tokenizers: gigatoken dif"):
        load_tokenizer(tokenizer=kinds["byte_level"], backend="gigatoken")


def test_a_fast_one_that_fails_is_not_used(fresh_process, kinds, monkeypatch):
    monkeypatch.setattr(GigatokenEncoder, "encode_together", never)
    assert load_tokenizer(tokenizer=kinds["byte_level"]).reason == (
        "gigatoken fails on the probe: must not be called"
    )


def test_what_gigatoken_cannot_load_goes_to_the_reference(fresh_process, kinds):
    tokenizer = load_tokenizer(tokenizer=kinds["unigram"], add_special_tokens=True)
    assert tokenizer.backend == "tokenizers"
    assert tokenizer.reason.startswith("gigatoken cannot load this tokenizer: Unsupported model")
    with pytest.raises(TokenizerError, match="Unsupported model"):
        load_tokenizer(tokenizer=kinds["unigram"], backend="gigatoken")


def test_a_kept_verdict_needs_no_reference(fresh_process, kinds, monkeypatch):
    first = load_tokenizer(tokenizer=kinds["split_regex"], add_special_tokens=True)
    forget()
    del first
    monkeypatch.setattr(ReferenceEncoder, "load", never)
    monkeypatch.setattr(loaded, "compare", never)
    again = load_tokenizer(tokenizer=kinds["split_regex"], add_special_tokens=True)
    assert again.backend == "gigatoken"
    assert again.template == TEMPLATE
    assert len(again.encode(pa.array(["some text"], TEXT), np.arange(1)).values)


def test_a_verdict_belongs_to_one_content_and_way(fresh_process, kinds):
    for split in (False, True):
        load_tokenizer(tokenizer=kinds["byte_level"], split_special_tokens=split)
    load_tokenizer(tokenizer=kinds["split_regex"])
    assert len(list((fresh_process / "verdicts").iterdir())) == 3


@pytest.mark.parametrize("content", [b"", b"{", b"null", b'{"equal": 1}', b"\xff\x00"])
def test_a_broken_file_costs_only_time(fresh_process, kinds, content, monkeypatch):
    load_tokenizer(tokenizer=kinds["byte_level"])
    (file,) = (fresh_process / "verdicts").iterdir()
    good = file.read_bytes()
    file.write_bytes(content)
    forget()
    assert load_tokenizer(tokenizer=kinds["byte_level"]).backend == "gigatoken"
    assert file.read_bytes() == good


def test_a_place_that_cannot_be_written_costs_only_time(fresh_process, kinds, monkeypatch, caplog):
    fresh_process.write_text("a file where a directory should be")
    with caplog.at_level("DEBUG", logger="zephon"):
        assert load_tokenizer(tokenizer=kinds["byte_level"]).backend == "gigatoken"
    assert "verdict not kept" in caplog.text
    assert {record.levelname for record in caplog.records} == {"DEBUG"}


def test_a_write_that_fails_leaves_nothing_behind(fresh_process, monkeypatch):
    def refuse(source, target):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", refuse)
    remember("key", Verdict(True, "so", None))
    assert list((fresh_process / "verdicts").iterdir()) == []
    assert recall("key") is None


def test_a_verdict_comes_back_as_it_was(fresh_process):
    for verdict in (Verdict(True, "so", Template((1, 2), (3,))), Verdict(False, "not", None)):
        remember("key", verdict)
        assert recall("key") == verdict


def test_a_verdict_is_named_by_versions(monkeypatch):
    import importlib.metadata

    before = verdict_key("a", True)
    assert before == verdict_key("a", True) != verdict_key("a", False)
    monkeypatch.setattr(importlib.metadata, "version", lambda library: "9.9")
    assert verdict_key("a", True) != before


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("ZEPHON_TOKENIZER_CACHE_DIR", str(tmp_path))
    assert cache_root() == tmp_path
    monkeypatch.delenv("ZEPHON_TOKENIZER_CACHE_DIR")
    assert cache_root().parts[-3:] == (".cache", "zephon", "tokenizers")
