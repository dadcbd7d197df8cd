"""Which line of a file a byte lies in, for messages: line feeds are counted when one is made."""

from __future__ import annotations

from collections.abc import Sequence

from zephon.io.formats.block_layouts import layout_of
from zephon.io.formats.blocks import BLOCK_BYTES
from zephon.io.formats.compressed_text import codec_of
from zephon.io.shard import Shard


class LineCounts:
    """Counts line feeds of files up to their blocks, each byte once however many rows are bad.

    Any number of threads may ask; two that do at once may both count. Lines of a compressed file
    are not known: it would have to be decompressed from its front again.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards
        self._before: dict[int, tuple[int, ...]] = {}  # line feeds before each block, as far as

    def line(self, shard: int, group: int, text: bytes, byte: int) -> int | None:
        """Give the line, from 1, of a byte of a block; None if it is not known.

        Args:
            shard, group: of the block.
            text: of the block.
            byte: in ``text``.

        Raises:
            OSError: the file cannot be read.
        """
        if codec_of(self._shards[shard].name):
            return None
        return self._feeds_before(shard, group) + text.count(b"\n", 0, byte) + 1

    def _feeds_before(self, shard: int, group: int) -> int:
        known = self._before.get(shard, ())
        if group < len(known):
            return known[group]
        about = self._shards[shard]
        offsets = layout_of(about).offsets
        counts = list(known)
        with open(about.path, "rb", buffering=0) as file:
            place = int(offsets[len(known) - 1]) if known else 0
            file.seek(place)
            while len(counts) <= group:
                feeds, stop = counts[-1] if counts else 0, int(offsets[len(counts)])
                while place < stop and (piece := file.read(min(BLOCK_BYTES, stop - place))):
                    feeds += piece.count(b"\n")
                    place += len(piece)
                counts.append(feeds)
        self._before[shard] = tuple(counts)
        return counts[group]
