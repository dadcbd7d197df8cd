"""Lists of integers in JSON text, parsed all at once: no Python object a token.

Digits are copied out of the text behind one another and handed to Arrow, which parses about 16
million integers a second; ``json`` makes about a third of that, and an object of each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from zephon.io.fields import TEXT
from zephon.io.formats.arrow_columns import token_lists

_COMMA, _OPEN, _CLOSE = b",[]"
_PLAIN = re.compile(rb"\[[\s\d,-]*\]")


def parse_token_lists(lists: Sequence[msgspec.Raw | bytes]) -> pa.LargeListArray | None:
    """Parse one list of integers a row.

    Args:
        lists: each one valid JSON value, without white space around it.

    Returns:
        the column; None if a value is no list of integers, or one does not fit int32.

    >>> parse_token_lists([b"[1, -2]", b"[]"]).to_pylist()
    [[1, -2], []]
    """
    letters = np.frombuffer(b"".join(lists), np.uint8)
    stops = np.cumsum(np.fromiter((memoryview(one).nbytes for one in lists), np.int64, len(lists)))
    space = letters <= 32
    if space.any():
        stops -= np.searchsorted(np.flatnonzero(space), stops)
        letters = letters[~space]
    cut = (letters == _COMMA) | (letters == _OPEN) | (letters == _CLOSE)
    cuts = np.flatnonzero(cut)
    signs = letters[cuts]
    opens, closes = cuts[signs == _OPEN], cuts[signs == _CLOSE]
    starts = np.zeros_like(stops)
    starts[1:] = stops[:-1]
    if not (np.array_equal(opens, starts) and np.array_equal(closes, stops - 1)):
        return None  # not one flat list a row
    ends = signs != _OPEN  # a comma or bracket ends an integer, but for the bracket of []
    ends[1:] &= (signs[1:] != _CLOSE) | (signs[:-1] != _OPEN) | (np.diff(cuts) > 1)
    bounds = np.zeros(np.count_nonzero(ends) + 1, np.int64)
    bounds[1:] = (cuts - np.arange(len(cuts)))[ends]
    digits = letters[~cut]
    texts = pa.Array.from_buffers(
        TEXT, len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(digits)]
    )
    try:
        tokens = texts.cast(pa.int32())
    except pa.ArrowInvalid:
        return None
    offsets = np.zeros(len(lists) + 1, np.int64)
    offsets[1:] = np.searchsorted(cuts[ends], stops)
    return token_lists(offsets, tokens)


def doubtful_lists(lists: Sequence[msgspec.Raw | bytes | None]) -> list[int]:
    """Find the rows that ``parse_token_lists`` refuses; None counts among them."""
    odd = [row for row, one in enumerate(lists) if one is None or not _PLAIN.fullmatch(one)]
    others = [one for one in lists if one is not None and _PLAIN.fullmatch(one)]
    if parse_token_lists(others) is not None:
        return odd
    return [row for row, one in enumerate(lists) if one is None or parse_token_lists([one]) is None]
