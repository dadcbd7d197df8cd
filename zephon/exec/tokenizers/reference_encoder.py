"""The reference back end: Hugging Face ``tokenizers``, for every tokenizer there is.

Its ids are right by definition. One thread encodes 2 to 4 MB/s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zephon.errors import TokenizerError
from zephon.exec.tokenizers.encoder import Encoded, Encoder, Template, join, offsets_of, pieces

if TYPE_CHECKING:
    import tokenizers

PIECE_BYTES = 1 << 19  # an Encoding takes a hundred times the bytes of its text

_TEMPLATE_TEXTS = ("", "a", "Hello, world!", "日本", "x y")


class ReferenceEncoder(Encoder):
    """Encodes with ``tokenizers``. What it wraps is never changed, so encoders may share it."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        """Keep a tokenizer that nobody changes any more."""
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, tokenizer_json: bytes, *, split_special_tokens: bool) -> ReferenceEncoder:
        """Load the content of a tokenizer.json; a special token in text may be plain text.

        Raises:
            TokenizerError: ``tokenizers`` cannot load it.
        """
        import tokenizers  # late: with a kept verdict the reference is rarely needed

        try:
            tokenizer = tokenizers.Tokenizer.from_buffer(tokenizer_json)
        except Exception as exc:
            raise TokenizerError(f"tokenizers cannot load this tokenizer: {exc}") from exc
        tokenizer.encode_special_tokens = split_special_tokens
        return cls(tokenizer)

    def another(self) -> ReferenceEncoder:
        """Make an encoder for one more thread; it costs nothing."""
        return ReferenceEncoder(self._tokenizer)

    def encode(self, texts: pa.LargeStringArray) -> Encoded:
        """Encode each document, whole."""
        return join([self._encode_piece(piece) for piece in pieces(texts, PIECE_BYTES)])

    def _encode_piece(self, texts: pa.LargeStringArray) -> Encoded:
        documents = texts.to_pylist()
        encodings = self._tokenizer.encode_batch_fast(documents, add_special_tokens=False)
        parts = [np.array(encoding.ids, np.int32) for encoding in encodings]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        values = np.concatenate(parts) if parts else np.empty(0, np.int32)
        return Encoded(values, offsets_of(lengths))

    def offsets(self, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Give the ids of each text, and of each token its first and its stop character."""
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return [(encoding.ids, encoding.offsets) for encoding in encodings]

    def template(self) -> Template | None:
        """Find what the tokenizer's own template puts before and after a document.

        Returns:
            None if no fixed prefix and suffix explains what it does to a few documents.
        """
        possible: set[Template] | None = None
        for text in _TEMPLATE_TEXTS:
            plain = tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
            whole = tuple(self._tokenizer.encode(text, add_special_tokens=True).ids)
            here = {
                Template(whole[:at], whole[at + len(plain) :])
                for at in range(len(whole) - len(plain) + 1)
                if whole[at : at + len(plain)] == plain
            }
            possible = here if possible is None else possible & here
        if not possible:
            return None
        return min(possible, key=lambda template: len(template.prefix))
