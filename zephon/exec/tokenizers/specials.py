"""Special tokens in ordinary text: found in the ids, counted, and warned of once.

A text that says "<|endoftext|>" gets the token, as with Hugging Face's libraries: whoever writes
the text can forge a boundary that a model sees. Rows, packing and masks never look for tokens,
so nothing else is affected.
"""

from __future__ import annotations

import logging
import threading

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.exec.tokenizers.encoder import Encoded

_RUNS = 4  # with more runs of ids, one look-up a token is cheaper

_logger = logging.getLogger(__name__)


class SpecialTokens:
    """Counts special tokens; any number of threads may call it."""

    def __init__(self, name: str, tokens: tuple[tuple[int, str], ...]) -> None:
        """Keep the ids to look for.

        Args:
            name: the tokenizer, for the warning.
            tokens: id and text of each special token, at least one.
        """
        self._name = name
        self._texts = dict(tokens)
        self._lowest, self._highest = min(self._texts), max(self._texts)
        self._runs = _runs(np.array(sorted(self._texts), np.int64))
        self._table: NDArray[np.bool_] | None = None
        if len(self._runs) > _RUNS:
            self._table = np.zeros(self._highest + 2, np.bool_)
            self._table[list(self._texts)] = True
        self._lock = threading.Lock()
        self._seen = 0

    @property
    def seen(self) -> int:
        """How many were found so far."""
        return self._seen

    def count(
        self, texts: pa.LargeStringArray, ordinals: NDArray[np.int64], encoded: Encoded
    ) -> None:
        """Add what is in these documents; 0.1 ns a token where all special ids are the highest."""
        values = encoded.values
        if not len(values) or values.max() < self._lowest or values.min() > self._highest:
            return
        hits, first = 0, len(values)
        for mask in self._masks(values):
            found = int(np.count_nonzero(mask))
            if found:
                hits += found
                first = min(first, int(mask.argmax()))
        if not hits:
            return
        with self._lock:
            warned, self._seen = self._seen > 0, self._seen + hits
        if not warned:
            self._warn(texts, ordinals, encoded, first)

    def _masks(self, values: NDArray[np.int32]) -> list[NDArray[np.bool_]]:
        if self._table is not None:
            return [self._table.take(values, mode="clip")]
        unsigned = values.view(np.uint32)
        return [
            unsigned == low if low == high else (unsigned - low) <= high - low
            for low, high in self._runs
        ]

    def _warn(
        self,
        texts: pa.LargeStringArray,
        ordinals: NDArray[np.int64],
        encoded: Encoded,
        token: int,
    ) -> None:
        document = int(np.searchsorted(encoded.offsets, token, side="right")) - 1
        token_id = int(encoded.values[token])
        name, text = self._texts[token_id], texts[document].as_py()
        at = max(text.find(name), 0)
        excerpt = text[max(0, at - 24) : at + len(name) + 24]
        _logger.warning(
            "tokenizer %r: the text of a document (ordinal %d: %r) holds the special token %r and "
            "gets id %d, as with Hugging Face; pass split_special_tokens=True to tokenize to make "
            "it plain text. Later ones are counted without a word.",
            *(self._name, int(ordinals[document]), excerpt, name, token_id),
        )


def _runs(ids: NDArray[np.int64]) -> list[tuple[np.uint32, np.uint32]]:
    """Return the first and last id of each run of consecutive ids.

    >>> [(int(a), int(b)) for a, b in _runs(np.array([0, 1, 2, 9]))]
    [(0, 2), (9, 9)]
    """
    if not len(ids):
        return []
    ends = np.flatnonzero(np.diff(ids) != 1)
    starts = np.append(0, ends + 1)
    stops = np.append(ends, len(ids) - 1)
    return [(np.uint32(ids[a]), np.uint32(ids[b])) for a, b in zip(starts, stops, strict=True)]
