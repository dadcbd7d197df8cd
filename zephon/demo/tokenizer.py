"""A byte-level BPE tokenizer, trained on the demo's own documents in a few seconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

VOCABULARY = 8_192
BEGIN, END = "<|begin|>", "<|end|>"
_TRAINED_ON = 4_000_000  # characters; more changes the merges little and the wait much


def train(directory: Path, texts: Sequence[str]) -> int:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``; return the size of the vocabulary.

    The same texts give the same tokenizer. Where there is more text than needed, documents are
    taken at an even distance.
    """
    # the tokenizer library loads when a tokenizer is first needed, as everywhere in Zephon
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,  # pyright: ignore[reportCallIssue]
        special_tokens=[AddedToken(BEGIN, special=True), AddedToken(END, special=True)],  # pyright: ignore[reportCallIssue]
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),  # pyright: ignore[reportCallIssue]
        show_progress=False,  # pyright: ignore[reportCallIssue]
    )
    every = max(1, sum(map(len, texts)) // _TRAINED_ON)
    tokenizer.train_from_iterator(texts[::every], trainer)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return tokenizer.get_vocab_size()


def decode(directory: Path, tokens: Sequence[int]) -> str:
    """Turn token ids back into text, special tokens left out."""
    from tokenizers import Tokenizer  # loaded late for the reason above

    return Tokenizer.from_file(str(directory / "tokenizer.json")).decode(list(tokens))
