"""Where each token lies in its text, in bytes.

Most tokens stand for fixed bytes, so that the ids of a document spell its text; then the lengths of
these bytes say where every token begins. That is checked byte by byte, and costs little more than
copying the text. A document of which it is not so (its text was normalized, or the model marks
words) is encoded once more by the reference, which says where its tokens lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import TokenizerError
from zephon.exec.tokenizers.encoder import Encoded, text_offsets

_SPELT = pa.large_binary()
_ASCII = 0x80
_KEEPING = (None, "NFC", "NFD", "NFKC", "NFKD")  # normalizers that leave ASCII as it is
_WIDER = np.array([0x80, 0x800, 0x10000])  # from each of these on, a character takes a byte more
_MARK = "\u2581"  # what SentencePiece writes for a space

Ranges = tuple[NDArray[np.int64], NDArray[np.int64]]
OffsetsOf = Callable[[list[str]], Iterable[tuple[list[int], list[tuple[int, int]]]]]
"""Gives the ids of each text, and the first and the stop character of each id."""


@dataclass(frozen=True, slots=True)
class Places:
    """Says where tokens lie; any number of threads may ask.

    name: the tokenizer, for messages.
    spelling: the bytes that each id stands for, null where these are not fixed; None: of no id.
    offsets_of: the reference.
    keeps_ascii: text of ASCII is encoded as it is, so that it is spelt where the length is right.
    """

    name: str
    spelling: pa.LargeBinaryArray | None
    offsets_of: OffsetsOf
    keeps_ascii: bool = False
    _lengths: NDArray[np.int64] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.spelling is not None:
            offsets = np.diff(text_offsets(self.spelling))
            object.__setattr__(self, "_lengths", np.ascontiguousarray(offsets))

    def ranges(self, texts: pa.LargeStringArray, encoded: Encoded) -> Ranges:
        """Say where every token lies.

        Args:
            texts: documents, no nulls.
            encoded: their tokens, without brackets.

        Returns:
            The first and the stop byte of each token, counted from the beginning of the first
            document; both of shape [tokens], int64.

        Raises:
            TokenizerError: the reference gives other ids.
        """
        begins = text_offsets(texts) - text_offsets(texts)[0]
        if not len(encoded.values):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if self.spelling is None:
            stops, unsure = np.zeros(len(encoded.values), np.int64), range(len(texts))
        else:
            stops, unsure = self._spelt(texts, encoded, begins)
        starts = np.empty_like(stops)
        starts[1:] = stops[:-1]
        firsts = encoded.offsets[:-1][np.diff(encoded.offsets) > 0]
        starts[firsts] = begins[:-1][np.diff(encoded.offsets) > 0]
        again = [texts[document].as_py() for document in unsure]
        found = self.offsets_of(again) if again else []
        for document, text, (ids, characters) in zip(unsure, again, found, strict=True):
            some = slice(int(encoded.offsets[document]), int(encoded.offsets[document + 1]))
            if not np.array_equal(ids, encoded.values[some]):
                raise TokenizerError(
                    f"tokenizer {self.name!r}: 'tokenizers' gives other ids for a text than the "
                    "back end that is used; pass tokenizer_backend='tokenizers' to options"
                )
            ranges = _in_bytes(text, characters) + begins[document]
            starts[some], stops[some] = ranges[:, 0], ranges[:, 1]
        return starts, stops

    def _spelt(
        self, texts: pa.LargeStringArray, encoded: Encoded, begins: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[int]]:
        """Spell all documents; give the stop of each token, and which documents read otherwise."""
        assert self.spelling is not None
        assert self._lengths is not None
        offsets = text_offsets(texts)
        buffer = texts.buffers()[2] or b""
        wanted = np.frombuffer(buffer, np.uint8)[int(offsets[0]) : int(offsets[-1])]
        if self.keeps_ascii and wanted.max(initial=0) < _ASCII:
            ends = np.zeros(len(encoded.values) + 1, np.int64)
            np.cumsum(self._lengths[encoded.values], out=ends[1:])
            if np.array_equal(ends[encoded.offsets], begins):
                return ends[1:], []
        pieces = self.spelling.take(pa.array(encoded.values))
        if pieces.null_count:
            pieces = pieces.fill_null(b"")
        ends = text_offsets(pieces)
        ends = ends - ends[0]
        spelt = np.frombuffer(pieces.buffers()[2] or b"", np.uint8)[: int(ends[-1])]
        sizes = np.diff(ends[encoded.offsets])
        differs = sizes != np.diff(begins)
        if not differs.any() and np.array_equal(spelt, wanted):
            return ends[1:], []
        shift = begins[:-1] - ends[encoded.offsets[:-1]]
        stops = ends[1:] + np.repeat(shift, np.diff(encoded.offsets))
        for document in np.flatnonzero(~differs).tolist():
            first, size = int(begins[document]), int(sizes[document])
            other = int(ends[encoded.offsets[document]])
            if not np.array_equal(wanted[first : first + size], spelt[other : other + size]):
                differs[document] = True
        return stops, np.flatnonzero(differs).tolist()


def _in_bytes(text: str, characters: list[tuple[int, int]]) -> NDArray[np.int64]:
    """Turn places in characters into places in bytes, shape [tokens, 2]."""
    places = np.array(characters, np.int64).reshape(-1, 2)
    if text.isascii():
        return places
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    sizes = 1 + np.searchsorted(_WIDER, codes, side="right")
    return np.concatenate([[0], np.cumsum(sizes)])[places]


def keeps_ascii(content: bytes) -> bool:
    """Say whether a tokenizer.json surely encodes text of ASCII as it is."""
    parsed = msgspec.json.decode(content)
    kinds = _kinds(parsed.get("pre_tokenizer"))
    return "ByteLevel" in kinds and (parsed.get("normalizer") or {}).get("type") in _KEEPING


def spelling_of(content: bytes, vocab_size: int) -> pa.LargeBinaryArray | None:
    """List the bytes that each id of a tokenizer.json stands for; None: they are not fixed.

    Args:
        content: of the file.
        vocab_size: every id is below it.
    """
    parsed = msgspec.json.decode(content)
    model = parsed["model"]
    vocab = model["vocab"]
    if model.get("type", "BPE") != "BPE" or not isinstance(vocab, dict):
        return None
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        return None
    kinds = set(_kinds(parsed.get("pre_tokenizer"))) | set(_kinds(parsed.get("decoder")))
    spelt: list[bytes | None] = [None] * vocab_size
    spell = _byte_level if "ByteLevel" in kinds else _marked
    for token, number in vocab.items():
        spelt[number] = spell(token)
    for token in parsed.get("added_tokens") or []:
        spelt[int(token["id"])] = token["content"].encode()
    return pa.array(spelt, _SPELT)


def _kinds(part: Any) -> list[str]:
    """Name the parts of a pre-tokenizer or decoder, however they are nested."""
    if not isinstance(part, dict):
        return []
    inner = [*(part.get("pretokenizers") or []), *(part.get("decoders") or [])]
    return [str(part.get("type")), *(name for each in inner for name in _kinds(each))]


def _letters() -> dict[str, int]:
    """Say which byte each letter of a byte-level vocabulary is.

    Printable bytes are themselves, the others are numbered from 256 on, as GPT-2 began it
    (Radford et al. 2019, section 2.2).
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + n): b for n, b in enumerate(others)}


_BYTES = _letters()


def _byte_level(token: str) -> bytes | None:
    try:
        return bytes([_BYTES[letter] for letter in token])
    except KeyError:
        return None


def _marked(token: str) -> bytes:
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return bytes([int(token[3:5], 16)])
        except ValueError:
            pass
    return token.replace(_MARK, " ").encode()
