"""The stub for trying a pipeline without any tokenizer: a word is a number.

A word is what ``str.split()`` gives; its id is 10 plus a hash below 10,000 that is the same in
every process. Ids cannot be turned back into text, and words share them: not for training. It
loops over words in Python, 10 to 20 MB/s, because nothing rests on its speed.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from zephon.exec.tokenizers.encoder import Encoded, Encoder, offsets_of

PAD, BOS, EOS = 0, 1, 2
FIRST_ID, BUCKETS = 10, 10_000


class WhitespaceEncoder(Encoder):
    """Gives each word the hash of its bytes."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def encode(self, texts: pa.LargeStringArray) -> Encoded:
        """Encode each document, word by word."""
        if len(self._ids) > 1_000_000:
            self._ids.clear()
        documents = [[self._id(word) for word in text.split()] for text in texts.to_pylist()]
        lengths = np.fromiter(map(len, documents), np.int64, len(documents))
        values = np.fromiter((i for ids in documents for i in ids), np.int32, int(lengths.sum()))
        return Encoded(values, offsets_of(lengths))

    def _id(self, word: str) -> int:
        known = self._ids.get(word)
        if known is None:
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            known = self._ids[word] = int.from_bytes(digest, "little") % BUCKETS + FIRST_ID
        return known
