"""The fast back end for documents whose characters it is sure to know, the reference for others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.exec.tokenizers.encoder import Encoded, Encoder, join, pieces, text_offsets

PIECE_BYTES = 3 << 20
_ASCII = 0x80


class CarefulEncoder(Encoder):
    """Encodes as the reference does; a document with a doubtful character costs what that takes.

    Args:
        fast: for most documents.
        reference: gives the encoder for the others, and is called when the first comes.
        doubtful: says which code points are, shape [code points].
    """

    def __init__(
        self, fast: Encoder, reference: Callable[[], Encoder], doubtful: NDArray[np.bool_]
    ) -> None:
        self._fast = fast
        self._reference = reference
        self._doubtful = doubtful

    def encode(self, texts: pa.LargeStringArray) -> Encoded:
        """Encode each document; ASCII is looked at 10 GB/s, other text some 500 MB/s."""
        parts = [self._encode_piece(piece) for piece in pieces(texts, PIECE_BYTES)]
        return join(parts)

    def _encode_piece(self, texts: pa.LargeStringArray) -> Encoded:
        apart = self._doubtful_documents(texts).tolist()
        parts: list[Encoded] = []
        start = 0
        for document in apart:
            if document > start:
                parts.append(self._fast.encode(texts.slice(start, document - start)))
            parts.append(self._reference().encode(texts.slice(document, 1)))
            start = document + 1
        if start < len(texts) or not parts:
            parts.append(self._fast.encode(texts.slice(start)))
        return join(parts)

    def _doubtful_documents(self, texts: pa.LargeStringArray) -> NDArray[np.int64]:
        offsets = text_offsets(texts)
        first, stop = int(offsets[0]), int(offsets[-1])
        if first == stop:
            return np.empty(0, np.int64)
        data = np.frombuffer(texts.buffers()[2], np.uint8)[first:stop]
        if data.max() < _ASCII:
            return np.empty(0, np.int64)
        codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
        found = np.flatnonzero(self._doubtful[codes])
        if not len(found):
            return found
        # Of these characters, the place of each among the bytes: those that begin a character.
        begins = np.flatnonzero((data & 0xC0) != _ASCII)[found]
        return np.unique(np.searchsorted(offsets - first, begins, side="right") - 1)
