"""What a tokenizer back end promises: text in, token ids and offsets out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import ExecutionError
from zephon.io.fields import TEXT


@dataclass(frozen=True, slots=True)
class Encoded:
    """Documents as tokens; read-only, and perhaps a view of a back end's memory.

    values: shape [tokens], int32, nothing but the documents.
    offsets: shape [docs + 1], int64, the first is 0; document d is
        values[offsets[d]:offsets[d + 1]].
    """

    values: NDArray[np.int32]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Template:
    """The ids that a tokenizer's own template puts around a document."""

    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()


class Encoder(ABC):
    """Turns text into token ids, without any bracket around a document.

    One thread at a time may use an object. The text is valid UTF-8, as every ``large_string`` of
    a reader is: a back end may encode other bytes without a word.
    """

    @abstractmethod
    def encode(self, texts: pa.LargeStringArray) -> Encoded:
        """Encode each document.

        Args:
            texts: one document a row, no nulls; a slice is fine.
        """


def check_texts(texts: pa.Array) -> None:
    """Refuse what no encoder takes.

    Raises:
        ExecutionError: the column is not ``large_string``, or a document is null.
    """
    if texts.type != TEXT:
        raise ExecutionError(f"tokenize: expected a column of type {TEXT}, got {texts.type}")
    if texts.null_count:
        raise ExecutionError(
            f"tokenize: {texts.null_count} of {len(texts)} documents are null, expected none; "
            "a reader must have refused or replaced them"
        )


def text_offsets(texts: pa.LargeStringArray) -> NDArray[np.int64]:
    """View where each document begins in the byte buffer, shape [docs + 1]; they rarely start at 0.

    >>> text_offsets(pa.array(["ab", "", "é"], pa.large_string())).tolist()
    [0, 2, 2, 4]
    """
    buffer = texts.buffers()[1]
    if buffer is None or not buffer.size:  # Arrow leaves the buffer out of an empty column
        return np.zeros(1, np.int64)
    return np.frombuffer(buffer, np.int64, len(texts) + 1, offset=8 * texts.offset)


def pieces(texts: pa.LargeStringArray, size: int) -> Iterator[pa.LargeStringArray]:
    """Cut a column into runs of whole documents of about ``size`` bytes each. Copies nothing."""
    offsets = text_offsets(texts)
    total = int(offsets[-1] - offsets[0])
    if total <= size or len(texts) < 2:
        yield texts
        return
    marks = np.arange(size, total, size) + offsets[0]
    stops = np.unique(np.append(np.searchsorted(offsets, marks), len(texts)))
    start = 0
    for stop in stops[stops > 0].tolist():
        yield texts.slice(start, stop - start)
        start = stop


def join(parts: Sequence[Encoded]) -> Encoded:
    """Put consecutive runs of documents together. Copies, unless there is only one."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return Encoded(np.concatenate([part.values for part in parts]), offsets_of(lengths))


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offsets of documents laid end to end, shape [docs + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
