"""Lists of numbers in JSON text, parsed all at once: no Python object a value.

Digits are copied out of the text behind one another and handed to Arrow, which parses about 16
million integers a second; ``json`` makes about a third of that, and an object of each. A number
becomes the float64 nearest to it, as ``json`` has it; but an integer must be that float64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.exact_numbers import exactly, rounded_if_integer
from zephon.io.fields import TEXT, Column
from zephon.io.formats.arrow_columns import number_lists

_COMMA, _OPEN, _CLOSE = b",[]"
_INTEGERS = re.compile(rb"\[[\s\d,-]*\]")
_FLOATS = re.compile(rb"\[[\s\d,.eE+-]*\]")
_BOOLEANS = re.compile(rb"\[[\s,truefals]*\]")


def parse_lists(lists: Sequence[msgspec.Raw | bytes], wanted: Column) -> pa.LargeListArray | None:
    """Parse one list of numbers or booleans a row.

    Args:
        lists: each one valid JSON value, without white space around it.
        wanted: any column but one of text.

    Returns:
        the column; None if a value is no such list, or its type does not hold it exactly.

    >>> parse_lists([b"[1, -2]", b"[]"], Column("ids", "tokens")).to_pylist()
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
    values = _values(texts, digits, wanted)
    if values is None:
        return None
    offsets = np.zeros(len(lists) + 1, np.int64)
    offsets[1:] = np.searchsorted(cuts[ends], stops)
    return number_lists(offsets, values)


def doubtful_lists(lists: Sequence[msgspec.Raw | bytes | None], wanted: Column) -> list[int]:
    """Find the rows that ``parse_lists`` refuses; None counts among them."""
    plain = {"f": _FLOATS, "b": _BOOLEANS}.get(wanted.dtype.kind, _INTEGERS)
    odd = [row for row, one in enumerate(lists) if one is None or not plain.fullmatch(one)]
    others = [one for one in lists if one is not None and plain.fullmatch(one)]
    if parse_lists(others, wanted) is not None:
        return odd
    return [
        row for row, one in enumerate(lists) if one is None or parse_lists([one], wanted) is None
    ]


def _values(texts: pa.Array, letters: NDArray[np.uint8], wanted: Column) -> pa.Array | None:
    """Parse values, one a text; None if one is none.

    Args:
        texts: each one JSON value, but no list.
        letters: of all of them.
    """
    item, kind = wanted.type.value_type, wanted.dtype.kind
    if kind == "b" and (letters < 58).any():
        return None  # Arrow would read 0 and 1 as booleans, too
    try:
        found = texts.cast({"b": pa.bool_(), "f": pa.float64()}.get(kind, item))
    except pa.ArrowInvalid:
        return None
    if kind != "f":
        return found.cast(item)
    floats = found.to_numpy()
    for place in rounded_if_integer(floats).tolist():
        if not _is_exact(texts[place].as_py(), float(floats[place])):
            return None
    made, wrong = exactly(floats, wanted.dtype)
    return None if len(wrong) else pa.array(made, item)


def _is_exact(text: str, number: float) -> bool:
    """Say whether a number is what its text says; any float is, as ``json`` reads it."""
    if not text.lstrip("-").isdecimal():
        return True
    return math.isfinite(number) and int(text) == int(number)
