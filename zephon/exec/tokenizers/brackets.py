"""Ids in, rows out: brackets around documents, cuts, padding. Pure functions on whole columns.

Bracketing costs 0.5 ns a token for documents of 250 tokens and more (1.3 at 25 tokens), against
10 to 16 for encoding: one masked copy, which moves runs and not single tokens. A slice a document
and one ``concatenate`` is as fast at 1,400 tokens, 4 times slower at 250, 17 times at 25.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zephon.exec.tokenizers.encoder import Encoded, offsets_of


@dataclass(frozen=True, slots=True)
class Cuts:
    """Rows cut into consecutive pieces; the values stay where they are.

    offsets: of the pieces, shape [pieces + 1], int64, over the same values.
    parent: the row of each piece. child: its number within the row, from 0. last: it ends the
    row. All of shape [pieces].
    """

    offsets: NDArray[np.int64]
    parent: NDArray[np.int64]
    child: NDArray[np.int32]
    last: NDArray[np.bool_]


def bracket(
    documents: Encoded,
    *,
    prefix: Sequence[int] = (),
    suffix: Sequence[int] = (),
    max_length: int | None = None,
) -> Encoded:
    """Put ``prefix`` before and ``suffix`` after each document.

    Args:
        documents: the ids; only read, and returned as they are when there is nothing to do.
        prefix: ids, few.
        suffix: ids, few.
        max_length: cut each document so that with its brackets it has at most so many tokens;
            at least ``len(prefix) + len(suffix)``.
    """
    lengths = np.diff(documents.offsets)
    values = documents.values
    if max_length is not None:
        room = max_length - len(prefix) - len(suffix)
        if int(lengths.max(initial=0)) > room:
            kept = np.minimum(lengths, room)
            values = values[_alternating(kept, lengths - kept)]
            lengths = kept
    if not prefix and not suffix:
        return Encoded(values, offsets_of(lengths))
    offsets = offsets_of(lengths + (len(prefix) + len(suffix)))
    row_values = np.empty(int(offsets[-1]), np.int32)
    is_content = np.ones(len(row_values), np.bool_)
    places = [(offsets[:-1] + i, token) for i, token in enumerate(prefix)]
    places += [(offsets[1:] - len(suffix) + i, token) for i, token in enumerate(suffix)]
    for place, _ in places:
        is_content[place] = False
    row_values[is_content] = values
    for place, token in places:
        row_values[place] = token
    return Encoded(row_values, offsets)


def cut(offsets: NDArray[np.int64], max_length: int) -> Cuts:
    """Cut each row into pieces of ``max_length`` tokens, the last shorter; an empty row is one.

    >>> cut(np.array([0, 5, 5, 7]), 2).offsets.tolist()
    [0, 2, 4, 5, 5, 7]
    """
    lengths = np.diff(offsets)
    counts = np.maximum(1, -(-lengths // max_length))
    parent = np.repeat(np.arange(len(lengths)), counts)
    child = np.arange(len(parent)) - (np.cumsum(counts) - counts)[parent]
    starts = offsets[:-1][parent] + child * max_length
    return Cuts(
        offsets=np.append(starts, offsets[-1]),
        parent=parent,
        child=child.astype(np.int32),
        last=child == counts[parent] - 1,
    )


def pad(rows: Encoded, *, length: int, pad_id: int) -> tuple[Encoded, NDArray[np.int32]]:
    """Fill each row up to ``length`` with ``pad_id`` at its end; longer rows stay as they are.

    Returns:
        The padded rows, and a mask with the same offsets: 1 on tokens, 0 on padding, int32.
    """
    lengths = np.diff(rows.offsets)
    missing = np.maximum(0, length - lengths)
    is_token = _alternating(lengths, missing)
    values = np.full(len(is_token), pad_id, np.int32)
    values[is_token] = rows.values
    return Encoded(values, offsets_of(lengths + missing)), is_token.astype(np.int32)


def _alternating(trues: NDArray[np.int64], falses: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return ``trues[0]`` times True, ``falses[0]`` times False, and so on."""
    counts = np.stack([trues, falses], axis=1).ravel()
    return np.repeat(np.tile([True, False], len(trues)), counts)
