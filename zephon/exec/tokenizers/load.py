"""From what a pipeline was given to a tokenizer that can encode."""

from __future__ import annotations

import hashlib
import logging
import os
from functools import partial

import pyarrow as pa

from zephon.errors import PlanError, TokenizerError, nearest
from zephon.exec.tokenizers.definition import Definition
from zephon.exec.tokenizers.encoder import Encoded, Template, text_offsets
from zephon.exec.tokenizers.guard import Guard
from zephon.exec.tokenizers.loaded import BACKENDS, LoadedTokenizer, loaded_tokenizer
from zephon.exec.tokenizers.pool import EncoderPool
from zephon.exec.tokenizers.sources import from_object, from_path
from zephon.exec.tokenizers.tokenizer import Tokenizer
from zephon.exec.tokenizers.verdicts import library_version
from zephon.exec.tokenizers.whitespace_encoder import (
    BOS,
    BUCKETS,
    EOS,
    FIRST_ID,
    PAD,
    WhitespaceEncoder,
)

FALLBACK = "__fallback__"
STUB_VERSION = "1"

_logger = logging.getLogger(__name__)


def load_tokenizer(
    *,
    tokenizer_id: str | os.PathLike[str] | None = None,
    tokenizer: object | None = None,
    backend: str = "auto",
    split_special_tokens: bool = False,
    add_special_tokens: bool = False,
) -> Tokenizer:
    """Load a tokenizer, or find it loaded.

    Args:
        tokenizer_id: a tokenizer.json, or a directory that holds one. None or "__fallback__",
            and no ``tokenizer``: the white space stub, for trials.
        tokenizer: a ``tokenizers.Tokenizer`` or a fast tokenizer of ``transformers``; it is only
            read, and it takes precedence.
        backend: "auto": gigatoken where the probe finds the ids of ``tokenizers``; or one of the
            two by name.
        split_special_tokens: the text of a special token is plain text.
        add_special_tokens: fill in ``Tokenizer.template``. Encoding itself adds nothing.

    Raises:
        TokenizerError: there is no such tokenizer, it cannot be loaded, its own template is no
            fixed prefix and suffix, or ``backend="gigatoken"`` does not give the right ids.
        NotYetError: names on the hub, URLs, and callables.
        PlanError: no such back end.
    """
    if backend not in BACKENDS:
        raise PlanError(
            f"options: no tokenizer_backend {backend!r}; {nearest(str(backend), BACKENDS)}"
        )
    if tokenizer is not None:
        definition = from_object(tokenizer, split_special_tokens=split_special_tokens)
    elif tokenizer_id is None or tokenizer_id == FALLBACK:
        if tokenizer_id is None:
            _logger.warning(
                "tokenize: no tokenizer was named; words become arbitrary numbers, which is for "
                "trials only; pass tokenizer_id or tokenizer"
            )
        return _fallback()
    else:
        definition = from_path(tokenizer_id, split_special_tokens=split_special_tokens)
    loaded = loaded_tokenizer(definition, backend)
    return Tokenizer(
        definition,
        loaded.pool,
        backend=loaded.backend,
        version=library_version(loaded.backend),
        reason=loaded.reason,
        template=_template(definition, loaded) if add_special_tokens else Template(),
        guard=_guard(definition, loaded) if loaded.backend == "gigatoken" else None,
        places=partial(loaded.places, definition),
    )


def _template(definition: Definition, loaded: LoadedTokenizer) -> Template:
    template = loaded.template()
    if template is None:
        raise TokenizerError(
            f"tokenizer {definition.name!r}: special_tokens='tokenizer_default' needs a template "
            "that puts fixed tokens around a document, and this one does something else; use "
            "special_tokens='bos_eos', 'bos', 'eos' or 'none'"
        )
    return template


def _guard(definition: Definition, loaded: LoadedTokenizer) -> Guard:
    def encode(texts: pa.LargeStringArray) -> Encoded:
        offsets = text_offsets(texts)
        with loaded.pool.lend(int(offsets[-1] - offsets[0])) as encoder:
            return encoder.encode(texts)

    return Guard(definition.name, loaded.reference, encode)


def _fallback() -> Tokenizer:
    definition = Definition(
        name=FALLBACK,
        content=b"",
        content_digest=hashlib.sha256(
            f"zephon white space stub {STUB_VERSION}".encode()
        ).hexdigest(),
        ids=(BOS, EOS, PAD),
        vocab_size=FIRST_ID + BUCKETS,
        special_tokens=(),
        added_texts=(),
    )
    return Tokenizer(
        definition,
        EncoderPool(WhitespaceEncoder, load_worth=0),
        backend="whitespace",
        version=STUB_VERSION,
        reason="no tokenizer was named",
        template=Template(),
    )
