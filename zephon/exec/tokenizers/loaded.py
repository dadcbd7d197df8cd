"""Tokenizers that are loaded in this process, each with the back end that was chosen for it.

A second pipeline over the same tokenizer finds its encoders loaded. The last ``KEPT`` tokenizers
stay loaded when nobody uses them any more; what is in use stays for as long as it is.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from unicodedata import unidata_version

from zephon.errors import TokenizerError
from zephon.exec.tokenizers.careful_encoder import CarefulEncoder
from zephon.exec.tokenizers.definition import Definition, without_special_tokens
from zephon.exec.tokenizers.doubtful import table_of
from zephon.exec.tokenizers.encoder import Encoder, Template
from zephon.exec.tokenizers.gigatoken_encoder import GigatokenEncoder
from zephon.exec.tokenizers.hostile_texts import VERSION
from zephon.exec.tokenizers.places import Places, keeps_ascii, spelling_of
from zephon.exec.tokenizers.pool import EncoderPool
from zephon.exec.tokenizers.probe import compare
from zephon.exec.tokenizers.reference_encoder import ReferenceEncoder
from zephon.exec.tokenizers.verdicts import Verdict, recall, remember, verdict_key

KEPT = 2

BACKENDS = ("auto", "gigatoken", "tokenizers")


class LoadedTokenizer:
    """The chosen back end of one tokenizer, and the way to the reference.

    backend: "gigatoken" or "tokenizers". reason: why that one. pool: its encoders.
    """

    def __init__(
        self,
        backend: str,
        reason: str,
        pool: EncoderPool,
        reference: Callable[[], ReferenceEncoder],
        verdict: Verdict | None = None,
    ) -> None:
        self.backend = backend
        self.reason = reason
        self.pool = pool
        self.reference = reference
        self._verdict = verdict
        self._places: Places | None = None

    def places(self, definition: Definition) -> Places:
        """Give what says where tokens lie; made at the first call, in 0.1 s for 150,000 tokens."""
        with _lock:
            if self._places is None:
                spelling = spelling_of(definition.content, definition.vocab_size)
                self._places = Places(
                    definition.name, spelling, self._offsets, keeps_ascii(definition.content)
                )
            return self._places

    def _offsets(self, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        return self.reference().offsets(texts)

    def template(self) -> Template | None:
        """Return what the tokenizer's own template adds; None if that is no fixed brackets."""
        if self._verdict is not None:
            return self._verdict.template
        return self.reference().template()


class _LateReference:
    """Loads the reference at the first call; every call gives an encoder for one thread."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._loaded: ReferenceEncoder | None = None
        self._lock = threading.Lock()

    def __call__(self) -> ReferenceEncoder:
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = ReferenceEncoder.load(
                        self._definition.content,
                        split_special_tokens=self._definition.split_special_tokens,
                    )
                except TokenizerError as exc:
                    raise TokenizerError(f"tokenizer {self._definition.name!r}: {exc}") from exc
            return self._loaded.another()


_lock = threading.Lock()
_in_use: weakref.WeakValueDictionary[tuple[str, bool, str], LoadedTokenizer] = (
    weakref.WeakValueDictionary()
)
_recent: OrderedDict[tuple[str, bool, str], LoadedTokenizer] = OrderedDict()


def loaded_tokenizer(definition: Definition, backend: str) -> LoadedTokenizer:
    """Return the tokenizer, loaded; one load at a time in a process.

    Raises:
        TokenizerError: neither back end can load it, or ``backend`` asks for gigatoken and the
            probe speaks against it.
    """
    key = (definition.content_digest, definition.split_special_tokens, backend)
    with _lock:
        loaded = _in_use.get(key)
        if loaded is None:
            loaded = _in_use[key] = _load(definition, backend)
        _recent[key] = loaded
        _recent.move_to_end(key)
        while len(_recent) > KEPT:
            _recent.popitem(last=False)
        return loaded


def _load(definition: Definition, backend: str) -> LoadedTokenizer:
    reference = _LateReference(definition)
    slow = EncoderPool(reference, load_worth=0)
    if backend == "tokenizers":
        reference()  # now, so that what cannot be loaded is refused where it was named
        return LoadedTokenizer("tokenizers", "it was asked for", slow, reference)
    content = definition.content
    if definition.split_special_tokens:
        content = without_special_tokens(content)
    key = verdict_key(
        VERSION, unidata_version, definition.content_digest, definition.split_special_tokens
    )
    verdict, first = recall(key), None
    if verdict is None:
        verdict, first = _probe(definition, content, reference())
        remember(key, verdict)
    if verdict.equal:
        table = table_of(verdict.doubtful) if verdict.doubtful else None

        def careful(encoder: Encoder) -> Encoder:
            return encoder if table is None else CarefulEncoder(encoder, reference, table)

        fast = EncoderPool(
            lambda: careful(_fast(definition.name, content)),
            first=None if first is None else careful(first),
        )
        return LoadedTokenizer("gigatoken", verdict.reason, fast, reference, verdict)
    if backend == "gigatoken":
        raise TokenizerError(
            f"tokenizer {definition.name!r}: tokenizer_backend='gigatoken' would not give the ids "
            f"of tokenizers: {verdict.reason}; use 'auto' or 'tokenizers'"
        )
    reference()
    return LoadedTokenizer("tokenizers", verdict.reason, slow, reference, verdict)


def _probe(
    definition: Definition, content: bytes, reference: ReferenceEncoder
) -> tuple[Verdict, Encoder | None]:
    try:
        encoder = GigatokenEncoder(content)
    except Exception as exc:  # whatever it is, the reference does the work
        return Verdict(False, str(exc), reference.template()), None
    ways = (encoder.encode_singly, encoder.encode_together)
    return compare(definition, ways, reference), encoder


def _fast(name: str, content: bytes) -> Encoder:
    try:
        return GigatokenEncoder(content)
    except TokenizerError as exc:
        raise TokenizerError(f"tokenizer {name!r}: {exc}") from exc
