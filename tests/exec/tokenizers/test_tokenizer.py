"""One tokenizer, any number of threads; found loaded the second time; errors that help."""

import gc
import importlib.metadata
import subprocess
import sys
import threading
import weakref

import numpy as np
import pyarrow as pa
import pytest
import tokenizers
from tokenizers import processors

from zephon.errors import ExecutionError, PlanError, TokenizerError
from zephon.exec.tokenizers import Template, load_tokenizer, loaded
from zephon.exec.tokenizers import tokenizer as tokenizer_module
from zephon.exec.tokenizers.encoder import TEXT


def encode(tokenizer, *texts):
    encoded = tokenizer.encode(pa.array(texts, TEXT), np.arange(len(texts)))
    return [part.tolist() for part in np.split(encoded.values, encoded.offsets[1:-1])]


@pytest.mark.parametrize("backend", ["gigatoken", "tokenizers"])
def test_threads_share_one_tokenizer(kinds, backend):
    """Eight threads, ten thousand short texts each, on an object that others set up meanwhile."""
    shared = tokenizers.Tokenizer.from_str(kinds["byte_level"].to_str())
    tokenizer = load_tokenizer(tokenizer=shared, backend=backend)
    texts = [f"text {n} <|endoftext|> naïve" for n in range(10_000)]
    column = pa.array(texts, TEXT)
    wanted = tokenizer.encode(column, np.arange(10_000))
    wrong = []

    def work(seed):
        for start in range(0, 10_000, 500):
            shared.enable_truncation(1 + (start + seed) % 9)
            part = column.slice(start, 500)
            came = tokenizer.encode(part, np.arange(start, start + 500))
            low, high = wanted.offsets[start], wanted.offsets[start + 500]
            if not np.array_equal(came.values, wanted.values[low:high]):
                wrong.append((seed, start))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert tokenizer.special_tokens_seen == 90_000


def test_a_second_pipeline_finds_it_loaded(fresh_process, kinds):
    one = load_tokenizer(tokenizer=kinds["byte_level"])
    other = load_tokenizer(tokenizer=kinds["byte_level"])
    assert one is not other
    assert one._pool is other._pool


def test_at_most_two_stay_loaded_when_nobody_uses_them(fresh_process, kinds):
    names = ["byte_level", "split_regex", "byte_fallback"]
    pools = [weakref.ref(load_tokenizer(tokenizer=kinds[name])._pool) for name in names]
    gc.collect()
    assert [pool() is not None for pool in pools] == [False, True, True]
    assert len(loaded._recent) == 2


def test_one_that_is_in_use_stays(fresh_process, kinds):
    held = load_tokenizer(tokenizer=kinds["byte_level"])
    for name in ("split_regex", "byte_fallback"):
        load_tokenizer(tokenizer=kinds[name])
    assert load_tokenizer(tokenizer=kinds["byte_level"])._pool is held._pool


def test_the_users_object_is_not_changed(kinds):
    shared = tokenizers.Tokenizer.from_str(kinds["byte_level"].to_str())
    shared.enable_truncation(2)
    shared.enable_padding(length=5)
    before = shared.to_str()
    tokenizer = load_tokenizer(tokenizer=shared, split_special_tokens=True)
    assert len(encode(tokenizer, "several words in a row")[0]) > 2
    assert shared.to_str() == before
    assert shared.encode_special_tokens is False


def test_a_template_is_found_and_not_applied(kinds):
    tokenizer = load_tokenizer(tokenizer=kinds["split_regex"], add_special_tokens=True)
    assert tokenizer.template == Template((402,), (403,))
    text = "hello"
    assert [402, *encode(tokenizer, text)[0], 403] == kinds["split_regex"].encode(text).ids
    assert load_tokenizer(tokenizer=kinds["split_regex"]).template == Template()


def test_a_template_that_does_more_is_refused(kinds):
    odd = tokenizers.Tokenizer.from_str(kinds["byte_level"].to_str())
    odd.post_processor = processors.TemplateProcessing(
        single="$A <|bos|> $A", special_tokens=[("<|bos|>", 1)]
    )
    with pytest.raises(TokenizerError, match="needs a template that puts fixed tokens around a"):
        load_tokenizer(tokenizer=odd, add_special_tokens=True)
    plain = load_tokenizer(tokenizer=odd)
    assert plain.backend == "tokenizers"  # the text comes twice, even without special tokens
    assert plain.reason == "gigatoken differs on 'Hello, world!'"


def test_asking_for_the_reference_gives_the_reference(fresh_process, kinds):
    tokenizer = load_tokenizer(tokenizer=kinds["byte_level"], backend="tokenizers")
    assert (tokenizer.backend, tokenizer.reason) == ("tokenizers", "it was asked for")
    assert not fresh_process.exists()
    fast = load_tokenizer(tokenizer=kinds["byte_level"])
    assert encode(fast, "same ids") == encode(tokenizer, "same ids")
    assert fast.digest == tokenizer.digest
    assert fast.version == importlib.metadata.version("gigatoken")
    assert tokenizer.version == importlib.metadata.version("tokenizers")


def test_another_back_end_is_refused(kinds):
    with pytest.raises(PlanError, match="no tokenizer_backend 'gigatokens'; did you mean 'gigato"):
        load_tokenizer(tokenizer=kinds["byte_level"], backend="gigatokens")


def test_a_tokenizer_json_that_no_library_loads_is_named(tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text('{"model": {"type": "Strange", "vocab": {}}}')
    with pytest.raises(TokenizerError, match=r"tokenizer '.*tokenizer.json': tokenizers cannot lo"):
        load_tokenizer(tokenizer_id=file)


def test_nulls_and_other_types_are_refused(kinds):
    tokenizer = load_tokenizer(tokenizer=kinds["byte_level"])
    with pytest.raises(ExecutionError, match="1 of 2 documents are null, expected none"):
        tokenizer.encode(pa.array(["a", None], TEXT), np.arange(2))
    with pytest.raises(ExecutionError, match="expected a column of type large_string, got string"):
        tokenizer.encode(pa.array(["a"], pa.string()), np.arange(1))


def test_words_that_look_like_nothing_are_words(kinds):
    tokenizer = load_tokenizer(tokenizer=kinds["byte_level"])
    texts = ["", "null", "NA", "   ", "\x00", "None"]
    wanted = [kinds["byte_level"].encode(text, add_special_tokens=False).ids for text in texts]
    assert encode(tokenizer, *texts) == wanted
    assert wanted[0] == []
    assert all(wanted[1:])


def test_a_back_end_that_loses_a_document_is_found(kinds, monkeypatch):
    tokenizer = load_tokenizer(tokenizer=kinds["byte_level"])
    with tokenizer._pool.lend(0) as encoder:
        original = type(encoder).encode
    monkeypatch.setattr(type(encoder), "encode", lambda self, texts: original(self, texts.slice(1)))
    with pytest.raises(ExecutionError, match="gigatoken gave 1 documents for 2"):
        encode(tokenizer, "a", "b")


def test_a_slow_call_names_the_largest_document(kinds, monkeypatch, caplog):
    monkeypatch.setattr(tokenizer_module, "SLOW_SECONDS", -1.0)
    tokenizer = load_tokenizer(tokenizer=kinds["byte_level"])
    encode(tokenizer, "a", "b" * 1_000_000, "c")
    assert not caplog.records
    encode(tokenizer, "a", "b" * 1_100_000, "c")
    assert "3 documents of 1.1 MB took" in caplog.text
    assert "the largest has 1.1 MB (ordinal 1)" in caplog.text


def test_the_stub_is_the_same_in_every_process():
    code = (
        "import numpy as np, pyarrow as pa; from zephon.exec.tokenizers import load_tokenizer; "
        "t = load_tokenizer(tokenizer_id='__fallback__'); "
        "print(t.bos_token_id, t.eos_token_id, t.pad_token_id, t.vocab_size, t.digest, t.backend, "
        "t.encode(pa.array(['to be or not'], pa.large_string()), np.arange(1)).values.tolist())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    assert seen.pop().startswith("1 2 0 10010 ")


def test_the_stub_that_nobody_named_is_warned_of(caplog):
    load_tokenizer(tokenizer_id="__fallback__")
    assert not caplog.records
    load_tokenizer()
    assert "no tokenizer was named" in caplog.text
