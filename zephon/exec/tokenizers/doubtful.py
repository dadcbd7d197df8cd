"""Characters of which two libraries may know different things, since their Unicode tables differ.

What a text of known characters is normalized to never changes from one version of Unicode to the
next (Unicode Normalization Forms, UAX 15, section 3); what a newer one adds, an older one leaves as
it is. So a tokenizer that normalizes can be at odds with itself on such characters alone.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.exec.tokenizers.encoder import TEXT, Encoded

Encode = Callable[[pa.LargeStringArray], Encoded]
Runs = tuple[tuple[int, int], ...]

_UNKNOWN = ("Cn", "Co", "Cs")  # nobody's, somebody's, and half of one
# A mark alone, twice, and between marks that stand in another order if it has a place in theirs;
# they compose with no q.
_CONTEXTS = ("{}", "a{}b", " {0}{0}1", "q\u0301{}\u0323q")
_AROUND = "abq1 \u0301\u0323"


def doubtful_characters(fast: Encode, reference: Encode) -> Runs:
    """Find characters on which two encoders may differ because of what they know of Unicode.

    These are the ones that this Python does not know, and of the others those that normalizing can
    change or move and that are encoded otherwise, alone or beside others. Takes 0.2 s.

    Returns:
        The first and the last of each run of them.
    """
    doubtful = np.zeros(sys.maxunicode + 1, bool)
    texts: list[str] = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category in _UNKNOWN:
            doubtful[code] = True
            continue
        parts = unicodedata.decomposition(character)
        if category[0] == "M" or parts:
            texts += [context.format(character) for context in _CONTEXTS]
        if parts and parts[0] != "<":
            texts.append("".join(chr(int(part, 16)) for part in parts.split()))
    column = pa.array(texts, TEXT)
    for document in differing(reference(column), fast(column)).tolist():
        doubtful[[ord(each) for each in texts[document] if each not in _AROUND]] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[False], doubtful, [False]]).astype(np.int8)))
    return tuple((first, stop - 1) for first, stop in edges.reshape(-1, 2).tolist())


def table_of(runs: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Say of each code point whether it is in a run, shape [code points]."""
    table = np.zeros(sys.maxunicode + 1, bool)
    for first, last in runs:
        table[first : last + 1] = True
    return table


def differing(wanted: Encoded, came: Encoded) -> NDArray[np.int64]:
    """List the documents whose ids differ; both are of the same documents."""
    sizes, others = np.diff(wanted.offsets), np.diff(came.offsets)
    differs = sizes != others
    if not differs.any():
        values = np.append(wanted.values != came.values, False)
        differs = np.logical_or.reduceat(values, wanted.offsets[:-1]) & (sizes > 0)
        return np.flatnonzero(differs)
    for document in np.flatnonzero(~differs).tolist():
        one = wanted.values[wanted.offsets[document] : wanted.offsets[document + 1]]
        other = came.values[came.offsets[document] : came.offsets[document + 1]]
        differs[document] = not np.array_equal(one, other)
    return np.flatnonzero(differs)
