"""What a tokenizer means does not depend on how it was named; what is missing is said."""

import json
from types import SimpleNamespace

import pytest
import tokenizers

from zephon.errors import NotYetError, TokenizerError
from zephon.exec.tokenizers.definition import define
from zephon.exec.tokenizers.sources import from_object, from_path


def save(folder, tokenizer, config=None, special_map=None, name="tokenizer.json"):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / name))
    for file, content in (
        ("tokenizer_config.json", config),
        ("special_tokens_map.json", special_map),
    ):
        if content is not None:
            (folder / file).write_text(json.dumps(content))
    return folder


def read(path, *, split=False):
    return from_path(path, split_special_tokens=split)


def test_a_file_and_its_directory_are_one_tokenizer(tmp_path, kinds):
    folder = save(tmp_path, kinds["byte_level"], {"bos_token": "<|bos|>"})
    by_file, by_folder = read(folder / "tokenizer.json"), read(str(folder))
    assert by_file.digest == by_folder.digest
    assert by_file.ids == by_folder.ids == (1, None, None)


def test_the_digest_is_of_the_meaning(tmp_path, kinds):
    config = {"eos_token": "<|endoftext|>"}
    plain = read(save(tmp_path / "a", kinds["byte_level"], config))
    parsed = json.loads((tmp_path / "a" / "tokenizer.json").read_text())
    again = save(tmp_path / "b", kinds["byte_level"], {**config, "model_max_length": 8})
    (again / "tokenizer.json").write_text(json.dumps(dict(reversed(parsed.items())), indent=3))
    assert read(again).digest == plain.digest
    assert plain.digest != read(save(tmp_path / "c", kinds["byte_level"], {})).digest
    assert plain.digest != read(save(tmp_path / "d", kinds["split_regex"], config)).digest
    assert plain.digest != read(tmp_path / "a", split=True).digest


def test_truncation_and_padding_are_no_part_of_it(kinds):
    tokenizer = tokenizers.Tokenizer.from_str(kinds["byte_level"].to_str())
    before = from_object(tokenizer, split_special_tokens=False)
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=9)
    after = from_object(tokenizer, split_special_tokens=False)
    assert after.digest == before.digest
    assert json.loads(after.content).get("truncation") is None
    assert tokenizer.truncation["max_length"] == 3
    assert tokenizer.padding["length"] == 9


@pytest.mark.parametrize(
    ("config", "special_map", "ids"),
    [
        ({"bos_token": "<|bos|>", "pad_token": {"content": "<|pad|>"}}, None, (1, None, 2)),
        (None, {"eos_token": {"content": "<|endoftext|>"}}, (None, 0, None)),
        ({"bos_token": None}, {"bos_token": "<|bos|>", "eos_token": "<|bos|>"}, (None, 1, None)),
        ({"bos_token": "<not there>"}, None, (None, None, None)),
        ({}, None, (None, None, None)),
        (None, None, (1, 0, 2)),
    ],
    ids=["config", "map", "config wins", "unknown", "config without", "no config"],
)
def test_ids_come_from_the_configuration_beside_it(tmp_path, kinds, config, special_map, ids):
    assert read(save(tmp_path, kinds["byte_level"], config, special_map)).ids == ids


def test_a_file_with_another_name_stands_alone(tmp_path, kinds):
    folder = save(tmp_path, kinds["byte_level"], {"bos_token": "<|pad|>"}, name="mine.json")
    assert read(folder / "mine.json").ids == (1, 0, 2)


def test_facts_of_each_kind(kinds):
    found = {name: from_object(kind, split_special_tokens=False) for name, kind in kinds.items()}
    assert {name: one.vocab_size for name, one in found.items()} == {
        name: kind.get_vocab_size() for name, kind in kinds.items()
    }
    assert found["byte_fallback"].special_tokens == ((1, "<s>"), (2, "</s>"))
    assert found["byte_fallback"].ids == (1, 2, None)
    assert found["unigram"].special_tokens == ((1, "</s>"),)


def test_a_fast_tokenizer_of_transformers_brings_its_ids(kinds):
    outer = SimpleNamespace(
        backend_tokenizer=kinds["byte_level"],
        bos_token_id=5,
        eos_token_id=6,
        pad_token_id=None,
        name_or_path="some/model",
    )
    found = from_object(outer, split_special_tokens=False)
    assert found.ids == (5, 6, None)
    assert found.name == "some/model"


def test_an_object_that_splits_special_tokens_goes_on_doing_so(kinds):
    tokenizer = tokenizers.Tokenizer.from_str(kinds["byte_level"].to_str())
    tokenizer.encode_special_tokens = True
    assert from_object(tokenizer, split_special_tokens=False).split_special_tokens


def test_a_directory_without_it_says_what_was_looked_for(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(b"")
    with pytest.raises(TokenizerError, match=r"looked for .*tokenizer\.json, which is not there; "):
        read(tmp_path)
    with pytest.raises(TokenizerError, match=r"it has tokenizer\.model; write one with"):
        read(tmp_path)
    with pytest.raises(TokenizerError, match=r"no such file or directory; pass a tokenizer\.json"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["gpt2", "org/model"])
def test_a_name_on_the_hub_is_not_there_yet(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotYetError, match="no such local file or directory, and names on the Hug"):
        read(name)


def test_a_url_is_not_there_yet():
    with pytest.raises(NotYetError, match="tokenizers at a URL are not there yet; pass a local"):
        read("s3://bucket/tokenizer")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"model": {"vocab": 3}}'])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(TokenizerError, match=r"expected the content of a Hugging Face tokenizer"):
        read(tmp_path)


def test_a_broken_configuration_is_named(tmp_path, kinds):
    folder = save(tmp_path, kinds["byte_level"])
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(TokenizerError, match=r"cannot read .*tokenizer_config\.json as a JSON"):
        read(folder)


def test_other_objects_are_refused():
    with pytest.raises(NotYetError, match="callables are not there yet"):
        from_object(len, split_special_tokens=False)
    with pytest.raises(
        TokenizerError, match=r"got builtins\.str; a path is passed as tokenizer_id"
    ):
        from_object("gpt2", split_special_tokens=False)


def test_an_object_that_cannot_be_written_is_refused():
    def to_str():
        raise ValueError("Custom PreTokenizer cannot be serialized")

    with pytest.raises(TokenizerError, match=r"cannot be written as a tokenizer\.json: Custom"):
        from_object(SimpleNamespace(to_str=to_str), split_special_tokens=False)


def test_the_unknown_token_is_no_special_token_of_text():
    content = {
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"},
        "added_tokens": [
            {"id": 0, "content": "[UNK]", "special": True},
            {"id": 9, "content": "[SEP]", "special": True},
            {"id": 8, "content": "  ", "special": False},
        ],
    }
    found = define("small", json.dumps(content).encode())
    assert found.special_tokens == ((9, "[SEP]"),)
    assert found.added_texts == ("[UNK]", "[SEP]", "  ")
    assert found.vocab_size == 10


def test_a_model_that_encodes_at_random_is_refused(kinds):
    content = json.loads(kinds[next(iter(kinds))].to_str())
    content["model"]["dropout"] = 0.5
    with pytest.raises(TokenizerError, match=r"tokenizer 'dice': .* its model has dropout=0\.5"):
        define("dice", json.dumps(content).encode())
