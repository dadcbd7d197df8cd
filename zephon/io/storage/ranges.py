"""Which requests read some ranges of a file: neighbours together, long ones in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from zephon.errors import ShardError

LONGEST = 16 << 20
"""Of one request, in bytes: it ends well before a slow line looks stalled."""

AT_ONCE = 8
"""Requests for one read that are under way together."""

_WASTE = 100
"""One byte in so many may be read for nothing, where that saves requests."""

Range = tuple[int, int]


def requests_for(ranges: Sequence[Range]) -> list[Range]:
    """Say which stretches of a file to ask for, in order.

    Together they are at most one hundredth longer than what is wanted, each at most ``LONGEST``.

    >>> requests_for([(0, 4), (4, 10), (100_000, 300_000), (300_500, 400_000)])
    [(0, 10), (100000, 400000)]
    """
    islands = _islands(ranges)
    left = sum(stop - start for start, stop in islands) // _WASTE
    gaps = sorted(
        (after[0] - before[1], number) for number, (before, after) in enumerate(pairwise(islands))
    )
    bridged = set()
    for gap, number in gaps:
        if gap > left:
            break
        left -= gap
        bridged.add(number)
    joined: list[Range] = []
    for number, (start, stop) in enumerate(islands):
        if number - 1 in bridged:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return [
        (at, min(at + LONGEST, stop))
        for start, stop in joined
        for at in range(start, stop, LONGEST)
    ]


def read_ranges(
    ranges: Sequence[Range], size: int, what: str, request: Callable[[int, int], bytes]
) -> list[bytes]:
    """Read ranges with as few requests as is sensible, several at a time.

    Args:
        ranges: each [start, stop) in bytes; an empty one reads nothing.
        size: of the file.
        what: is read, for messages.
        request: reads one stretch, and gives exactly its bytes.

    Raises:
        ShardError: a range does not lie in the file.
    """
    for start, stop in ranges:
        if not 0 <= start <= stop <= size:
            raise ShardError(
                f"{what}: a range to read must lie in its {size} bytes, got [{start}, {stop}); the "
                "file, or an index of it, is damaged"
            )
    wanted = requests_for(ranges)
    if len(wanted) > 1:
        with ThreadPoolExecutor(min(AT_ONCE, len(wanted)), "zephon-ranges") as pool:
            parts = list(pool.map(lambda stretch: request(*stretch), wanted))
    else:
        parts = [request(*stretch) for stretch in wanted]
    came = list(zip(wanted, parts, strict=True))
    return [_cut(came, start, stop) for start, stop in ranges]


def _islands(ranges: Sequence[Range]) -> list[Range]:
    """Join what overlaps or touches; leave out what is empty."""
    islands: list[Range] = []
    for start, stop in sorted(each for each in ranges if each[0] < each[1]):
        if islands and start <= islands[-1][1]:
            islands[-1] = (islands[-1][0], max(stop, islands[-1][1]))
        else:
            islands.append((start, stop))
    return islands


def _cut(came: Sequence[tuple[Range, bytes]], start: int, stop: int) -> bytes:
    pieces = [
        part[max(start - begin, 0) : stop - begin]
        for (begin, end), part in came
        if begin < stop and start < end
    ]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
