"""Spans of texts as masks of tokens, for all documents at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.exec.chat.spans import Span
from zephon.exec.tokenizers import Encoded
from zephon.exec.tokenizers.encoder import text_offsets
from zephon.exec.tokenizers.places import Places


def token_weights(
    texts: Sequence[str],
    column: pa.LargeStringArray,
    encoded: Encoded,
    spans: Sequence[Sequence[Span]],
    weights: Sequence[Sequence[float]],
    places: Places,
) -> NDArray[np.float32]:
    """Say how much each token counts: what its span does, or 0; one that touches a span is in it.

    Args:
        texts: the documents.
        column: the same as a column.
        encoded: their tokens.
        spans: of each document, in characters, none empty or overlapping another.
        weights: of each document, one a span.
        places: of the tokenizer.

    Returns:
        shape [tokens], float32.
    """
    begins = text_offsets(column) - text_offsets(column)[0]
    edges: list[tuple[int, int]] = []
    for text, some, begin in zip(texts, spans, begins[:-1].tolist(), strict=True):
        edges += [(begin + a, begin + b) for a, b in _in_bytes(text, some)]
    made = np.zeros(len(encoded.values), np.float32)
    if not edges or not len(made):
        return made
    bounds = np.array(edges, np.int64)
    starts, stops = places.ranges(column, encoded)
    stops = np.maximum(stops, starts + 1)  # a token of no bytes belongs to what follows
    counts = [weight for each in weights for weight in each]
    if (starts[1:] >= starts[:-1]).all() and (stops[1:] >= stops[:-1]).all():
        firsts = np.searchsorted(stops, bounds[:, 0], side="right").tolist()
        lasts = np.searchsorted(starts, bounds[:, 1], side="left").tolist()
        for first, last, count in zip(firsts, lasts, counts, strict=True):
            made[first:last] = count
        return made
    # Where normalizing moved characters past each other, each token is looked at: of the spans that
    # begin before it ends, the last.
    span = np.searchsorted(bounds[:, 0], stops, side="left") - 1
    inside = (span >= 0) & (bounds[span, 1] > starts)
    np.copyto(made, np.array(counts, np.float32)[span], where=inside)
    return made


def _in_bytes(text: str, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Turn characters into bytes."""
    if text.isascii():
        return [(span.start, span.stop) for span in spans]
    found: list[tuple[int, int]] = []
    at = size = 0
    for span in spans:
        start = size + len(text[at : span.start].encode())
        stop = start + len(text[span.start : span.stop].encode())
        found.append((start, stop))
        at, size = span.stop, stop
    return found
