"""Small tokenizers of each kind, trained once, and a process that has loaded none of them."""

import json
import weakref
from collections import OrderedDict

import pytest
import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors, trainers

from zephon.exec.tokenizers import loaded

TEXT = [
    "The quick brown fox doesn't jump over 12 lazy dogs, does it?",
    "def fill(rows):\n    return [row for row in rows if row]  # keep\n",
    "日本語のテキスト 漢字 😀 émoji naïve größe Русский",
    "white   space\t\tand\r\nlines\n\n\n",
] * 30


def byte_level() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>", "<|bos|>", "<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


def split_regex() -> tokenizers.Tokenizer:
    """Like Llama 3: a regular expression, whole words first, and a template with BOS."""
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A <|end_of_text|>",
        special_tokens=[
            (token, tokenizer.token_to_id(token))
            for token in ("<|begin_of_text|>", "<|end_of_text|>")
        ],
    )
    return tokenizer


def byte_fallback() -> tokenizers.Tokenizer:
    """Like Llama 2 and Mistral: SentencePiece BPE, bytes for unknown characters."""
    tokenizer = tokenizers.Tokenizer(
        models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    specials = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=specials + [f"<0x{byte:02X}>" for byte in range(256)],
        limit_alphabet=60,
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    parsed = json.loads(tokenizer.to_str())
    parsed["added_tokens"] = parsed["added_tokens"][: len(specials)]
    return tokenizers.Tokenizer.from_str(json.dumps(parsed))


def unigram() -> tokenizers.Tokenizer:
    """A kind that only the reference knows."""
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=250, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


FAST_KINDS = {
    "byte_level": byte_level,
    "split_regex": split_regex,
    "byte_fallback": byte_fallback,
}


@pytest.fixture(scope="session")
def kinds() -> dict[str, tokenizers.Tokenizer]:
    made = {name: make() for name, make in FAST_KINDS.items()}
    return {**made, "unigram": unigram()}


@pytest.fixture
def fresh_process(monkeypatch, tmp_path):
    """No tokenizer is loaded, and no verdict is kept."""
    monkeypatch.setattr(loaded, "_in_use", weakref.WeakValueDictionary())
    monkeypatch.setattr(loaded, "_recent", OrderedDict())
    monkeypatch.setenv("ZEPHON_TOKENIZER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
