"""The fast back end: gigatoken, for byte-level BPE and BPE with byte fallback.

One thread encodes 90 to 270 MB/s of GPT-2 text, 30 to 70 times what ``tokenizers`` does. A
document is never cut: 8 MB without a single space took 0.1 to 3.4 s ('a' repeated was the
slowest kind but one), against 5 to 13 s for ``tokenizers``, with equal ids; cutting could only
change them. BPE with byte fallback takes a document for one word: 15 to 20 MB/s on documents of
usual size, 2 MB/s on 4 MB of prose, about what ``tokenizers`` does there. An object keeps every
word it has met; see ``pool.py`` for what bounds that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from zephon.errors import TokenizerError
from zephon.exec.tokenizers.encoder import Encoded, Encoder, join, offsets_of, pieces, text_offsets

PIECE_BYTES = 3 << 20
FIRST_BYTES = 1 << 20
SINGLE_BYTES, SINGLE_DOCS = 8 << 20, 16_384

_Result = TypeVar("_Result")


class GigatokenEncoder(Encoder):
    """Encodes with gigatoken on the calling thread; ids are views of its output.

    Until an object has met ``FIRST_BYTES`` of text, a call goes document by document, which
    needs no awkward: importing it takes 0.25 s, more than the first training batch. Later calls
    go together, with one release of the interpreter lock a piece: document by document, each
    would wait its turn for the lock, 5 ms at worst.
    """

    def __init__(self, tokenizer_json: bytes) -> None:
        """Load the content of a tokenizer.json, in 0.15 s for GPT-2 and about 1 s for Llama 3.

        Raises:
            TokenizerError: gigatoken has no form for this tokenizer.
        """
        self._backend = _load(tokenizer_json)
        self._met_bytes = 0

    def encode(self, texts: pa.LargeStringArray) -> Encoded:
        """Encode each document; how, depends on what was met before, and what, does not."""
        offsets = text_offsets(texts)
        size = int(offsets[-1] - offsets[0])
        first = self._met_bytes < FIRST_BYTES and "awkward" not in sys.modules
        self._met_bytes += size
        if first and size <= SINGLE_BYTES and len(texts) <= SINGLE_DOCS:
            return self.encode_singly(texts)
        return self.encode_together(texts)

    def encode_singly(self, texts: pa.LargeStringArray) -> Encoded:
        """Encode one document a call: 3 µs each, and no import of awkward."""
        encode = self._backend.encode
        parts = _without_panic(lambda: [encode(document) for document in _documents(texts)])
        if not parts:
            return Encoded(np.empty(0, np.int32), np.zeros(1, np.int64))
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        return Encoded(np.concatenate(parts).view(np.int32), offsets_of(lengths))

    def encode_together(self, texts: pa.LargeStringArray) -> Encoded:
        """Encode in calls of about ``PIECE_BYTES``; one such call is not copied."""
        return join([self._encode_piece(piece) for piece in pieces(texts, PIECE_BYTES)])

    def _encode_piece(self, texts: pa.LargeStringArray) -> Encoded:
        if not len(texts):
            return Encoded(np.empty(0, np.int32), np.zeros(1, np.int64))
        encode = self._backend.encode_batch
        layout = _without_panic(lambda: encode(_documents(texts), parallel=False)).layout
        return Encoded(layout.content.data.view(np.int32), layout.offsets.data)


def _documents(texts: pa.LargeStringArray) -> list[bytes]:
    return texts.cast(pa.large_binary()).to_pylist()


def _load(tokenizer_json: bytes) -> Any:
    import gigatoken  # late: whoever only plans, or brings tokens, loads no tokenizer library

    try:
        return _without_panic(lambda: gigatoken.Tokenizer.from_json(tokenizer_json).backend)
    except Exception as exc:
        first_line = str(exc).split("\n", 1)[0]
        raise TokenizerError(f"gigatoken cannot load this tokenizer: {first_line}") from exc


def _without_panic(call: Callable[[], _Result]) -> _Result:
    """Return the result of ``call``; a panic in Rust becomes an ordinary error.

    It arrives as a BaseException and would pass every ``except Exception`` above.
    """
    try:
        return call()
    except (Exception, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as exc:
        raise TokenizerError(
            f"gigatoken gave up: {exc}; set options(tokenizer_backend='tokenizers')"
        ) from exc
