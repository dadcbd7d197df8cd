"""One document in 4,096 is encoded by both back ends, for ever; a difference raises.

Which ones is a fixed function of the ordinal, the same on every topology. The first is ordinal
38,149, so that a short run never loads the reference. Of a guarded document longer than 8 KiB
its first 8 KiB are compared, encoded apart by both: the reference is 30 to 70 times slower, and
this holds the cost near 1 % for documents of any size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon import seeds
from zephon.errors import TokenizerError
from zephon.exec.tokenizers.encoder import TEXT, Encoded, Encoder

ONE_IN = 4_096  # a power of two
GUARDED_BYTES = 8 << 10
_CHOSEN = np.uint64(1_408)  # of all residues, the one that comes first last

Encode = Callable[[pa.LargeStringArray], Encoded]


def guarded(ordinals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the ordinals that are guarded.

    >>> guarded(np.arange(40_000)).tolist()
    [38149, 38918]
    """
    hashed = seeds.mix64(ordinals.astype(np.uint64))
    return np.flatnonzero((hashed & np.uint64(ONE_IN - 1)) == _CHOSEN)


class Guard:
    """Compares what was encoded with the reference, now and then."""

    def __init__(self, name: str, reference: Callable[[], Encoder], encode: Encode) -> None:
        """Keep both back ends.

        Args:
            name: the tokenizer, for messages.
            reference: returns an encoder for the calling thread; called late.
            encode: the fast back end, for the beginning of a long document.
        """
        self._name = name
        self._reference = reference
        self._encode = encode

    def check(
        self, texts: pa.LargeStringArray, ordinals: NDArray[np.int64], encoded: Encoded
    ) -> None:
        """Compare the guarded documents.

        Raises:
            TokenizerError: the back ends differ on one.
        """
        for place in guarded(ordinals).tolist():
            data = texts[place].as_buffer()
            text = bytes(memoryview(data)[:GUARDED_BYTES]).decode("utf-8", "ignore")
            column = pa.array([text], TEXT)
            start, stop = encoded.offsets[place], encoded.offsets[place + 1]
            came = encoded.values[start:stop]
            if data.size > GUARDED_BYTES:
                came = self._encode(column).values
            wanted = self._reference().encode(column).values
            if not np.array_equal(came, wanted):
                raise self._differs(int(ordinals[place]), text, came, wanted)

    def _differs(
        self, ordinal: int, text: str, came: NDArray[np.int32], wanted: NDArray[np.int32]
    ) -> TokenizerError:
        shared = min(len(came), len(wanted))
        differing = np.flatnonzero(came[:shared] != wanted[:shared])
        at = int(differing[0]) if len(differing) else shared
        return TokenizerError(
            f"tokenizer {self._name!r}, document at ordinal {ordinal}: from token {at} on, "
            f"tokenizers gives {wanted[at : at + 4].tolist()} and gigatoken "
            f"{came[at : at + 4].tolist()}; the text begins {text[:60]!r}; "
            "set options(tokenizer_backend='tokenizers')"
        )
