r"""Where the records of a CSV text end: at line feeds that no quotes enclose.

Whole pieces are looked at by NumPy: a line feed is enclosed if an odd number of quotes comes before
it. That holds where each quote that opens stands at the front of a field and each that closes at
its end. Where one does not, as in ``5" disks``, that piece is gone through quote by quote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

_LINE_FEED, _RETURN = 10, 13
_PIECE = 1 << 20


def pieces_of(
    file: BinaryIO, delimiter: int, quote: int | None
) -> Iterator[tuple[bytes, NDArray[np.int64]]]:
    """Give a text in pieces of whole records, front to back.

    Args:
        file: at the front of a record.
        delimiter: the byte between fields.
        quote: the byte around fields; None: none.

    Yields:
        some records, and where each ends, shape [records], int64. The last may lack its line feed.

    Raises:
        ValueError: a quote is never closed; names the byte where its record begins.
    """
    rest: list[bytes] = []  # a record that has not ended yet
    place, inside, before = 0, 0, _LINE_FEED
    while piece := file.read(_PIECE):
        ends, after = _ends(piece, delimiter, quote, inside, before)
        if ends is None:  # a quote where none is expected: all of the record must be known
            # One byte more: a quote at the end may have a second.
            piece, rest = b"".join([*rest, piece, file.read(1)]), []
            ends, after = _slow_ends(piece, delimiter, quote)
        inside, before = after, piece[-1]
        if not len(ends):
            rest.append(piece)
            continue
        stop = int(ends[-1])
        head = sum(map(len, rest))
        text = b"".join([*rest, piece[:stop]])
        place += len(text)
        yield text, ends + head
        rest = [piece[stop:]] if stop < len(piece) else []
    if rest:
        text = b"".join(rest)
        _, open_quote = _slow_ends(text, delimiter, quote)
        if open_quote:
            raise ValueError(f"the record at byte {place} opens a quote that nothing closes")
        yield text, np.array([len(text)])


def _ends(
    piece: bytes, delimiter: int, quote: int | None, inside: int, before: int
) -> tuple[NDArray[np.int64] | None, int]:
    """Find ends by counting quotes; None where that is not sure.

    Args:
        piece: of the text.
        delimiter, quote: as ``pieces_of``.
        inside: 1 if the piece begins within quotes.
        before: the byte before the piece.
    """
    letters = np.frombuffer(piece, np.uint8)
    feeds = np.flatnonzero(letters == _LINE_FEED)
    if quote is None or piece.find(quote) < 0:
        return (feeds[:0] if inside else feeds + 1), inside
    quotes = np.flatnonzero(letters == quote)
    opens = ((np.arange(len(quotes)) + inside) & 1) == 0
    previous = np.where(quotes > 0, letters[quotes - 1], before)[opens]
    following = letters[np.minimum(quotes + 1, len(letters) - 1)][~opens]
    at_edge = (quotes + 1 == len(letters))[~opens]
    fits = _among(previous, delimiter, quote).all()
    fits = fits and (_among(following, delimiter, quote) | at_edge).all()
    if not fits:
        return None, inside
    enclosed = (np.searchsorted(quotes, feeds) + inside) & 1
    return feeds[enclosed == 0] + 1, (len(quotes) + inside) & 1


def _among(letters: NDArray[np.uint8], delimiter: int, quote: int) -> NDArray[np.bool_]:
    found = (letters == delimiter) | (letters == quote)
    return found | (letters == _LINE_FEED) | (letters == _RETURN)


def _slow_ends(text: bytes, delimiter: int, quote: int | None) -> tuple[NDArray[np.int64], int]:
    """Find ends quote by quote, in a text that begins with a record; say if a quote stays open."""
    if quote is None:
        return np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED) + 1, 0
    ends: list[int] = []
    place, mark = 0, bytes([quote])
    fronts = (delimiter, _LINE_FEED, _RETURN)
    while True:
        found = text.find(mark, place)
        stop = len(text) if found < 0 else found
        feed = text.find(b"\n", place, stop)
        while feed >= 0:
            ends.append(feed + 1)
            feed = text.find(b"\n", feed + 1, stop)
        if found < 0:
            return np.array(ends, np.int64), 0
        place = found + 1
        if found and text[found - 1] not in fronts:
            continue  # a quote within a field that has none around it
        while True:
            found = text.find(mark, place)
            if found < 0:
                return np.array(ends, np.int64), 1
            place = found + 1
            if text[place : place + 1] != mark:
                break
            place += 1
