"""A tokenizer that any number of threads may use: facts, and text in, ids out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import ExecutionError, TokenizerError
from zephon.exec.tokenizers.definition import Definition
from zephon.exec.tokenizers.encoder import (
    Encoded,
    Template,
    check_texts,
    text_offsets,
)
from zephon.exec.tokenizers.guard import Guard
from zephon.exec.tokenizers.places import Places
from zephon.exec.tokenizers.pool import EncoderPool
from zephon.exec.tokenizers.specials import SpecialTokens

SLOW_SECONDS = 5.0
LARGE_BYTES = 1 << 20

_logger = logging.getLogger(__name__)


class Tokenizer:
    """Text in, ids out.

    bos_token_id, eos_token_id, pad_token_id: None where the tokenizer has none.
    vocab_size: every id is below it.
    digest: SHA-256 of everything that decides ids.
    backend, version, reason: who encodes, and why.
    name: what it is called in messages.
    template: the ids that ``special_tokens="tokenizer_default"`` puts around a document; empty
        unless it was asked for.
    """

    def __init__(
        self,
        definition: Definition,
        pool: EncoderPool,
        *,
        backend: str,
        version: str,
        reason: str,
        template: Template,
        guard: Guard | None = None,
        places: Callable[[], Places] | None = None,
    ) -> None:
        self.name = definition.name
        self.bos_token_id, self.eos_token_id, self.pad_token_id = definition.ids
        self.vocab_size = definition.vocab_size
        self._texts = dict(definition.special_tokens)
        self.digest = definition.digest
        self.backend = backend
        self.version = version
        self.reason = reason
        self.template = template
        self._pool = pool
        self._guard = guard
        self._places = places
        self._specials: SpecialTokens | None = None
        if definition.special_tokens and not definition.split_special_tokens:
            self._specials = SpecialTokens(definition.name, definition.special_tokens)

    @property
    def special_tokens_seen(self) -> int:
        """How many special tokens ordinary text held so far."""
        return 0 if self._specials is None else self._specials.seen

    def places(self) -> Places:
        """Give what says where tokens lie in their texts.

        Raises:
            TokenizerError: this is the white space stub, whose tokens lie nowhere.
        """
        if self._places is None:
            raise TokenizerError(
                f"tokenizer {self.name!r}: nobody knows where its tokens lie in a text; pass a "
                "tokenizer, or tokenizer_id"
            )
        return self._places()

    @property
    def special_texts(self) -> list[str]:
        """The texts of special tokens."""
        return [*self._texts.values()]

    def token_id(self, text: str) -> int | None:
        """Give the id of a special token by its text; None: there is none."""
        return next((token_id for token_id, each in self._texts.items() if each == text), None)

    def token_text(self, token_id: int) -> str:
        """Give the text of a special token; "" if it is none."""
        return self._texts.get(token_id, "")

    def encode(
        self,
        texts: pa.LargeStringArray,
        ordinals: NDArray[np.int64],
        *,
        expects_specials: bool = False,
    ) -> Encoded:
        """Encode each document, without brackets.

        Args:
            texts: one document a row, no nulls, valid UTF-8; a slice is fine.
            ordinals: the draw of each document, shape [docs], int64: decides which documents the
                guard encodes twice, and names a document in messages.
            expects_specials: special tokens belong into the texts, so they are not counted.

        Raises:
            ExecutionError: a document is null, or the column is no ``large_string``.
            TokenizerError: the guard found the back ends at odds, or a back end gave up.
        """
        check_texts(texts)
        offsets = text_offsets(texts)
        began = time.monotonic()
        with self._pool.lend(int(offsets[-1] - offsets[0])) as encoder:
            encoded = encoder.encode(texts)
        seconds = time.monotonic() - began
        if len(encoded.offsets) != len(texts) + 1:
            raise ExecutionError(
                f"tokenizer {self.name!r}: {self.backend} gave {len(encoded.offsets) - 1} "
                f"documents for {len(texts)}"
            )
        if seconds > SLOW_SECONDS:
            self._report_slow(seconds, np.diff(offsets), ordinals)
        if self._guard is not None:
            self._guard.check(texts, ordinals, encoded)
        if self._specials is not None and not expects_specials:
            self._specials.count(texts, ordinals, encoded)
        return encoded

    def _report_slow(
        self, seconds: float, sizes: NDArray[np.int64], ordinals: NDArray[np.int64]
    ) -> None:
        """Name the document that held a call back, if one did."""
        largest = int(sizes.argmax()) if len(sizes) else -1
        if largest < 0 or sizes[largest] < LARGE_BYTES:
            return
        _logger.warning(
            "tokenizer %r: %d documents of %.1f MB took %.1f s; the largest has %.1f MB "
            "(ordinal %d)",
            *(self.name, len(sizes), sizes.sum() / 1e6, seconds),
            *(sizes[largest] / 1e6, int(ordinals[largest])),
        )
