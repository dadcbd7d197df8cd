"""Text of blocks of compressed lines in the spill: a block costs a mapping, not half a file.

A compressed file can be read from its front only. Who has to do so a second time leaves here all
that is passed on the way, so that nobody has to do it a third time. It lies as decoded groups do,
uncompressed and under the same bounds: random order over a compressed dataset takes as much disk as
its text, and where there is less room, files are read from their front again.
"""

from __future__ import annotations

from zephon.io.formats.format import DecodedGroup, columns_batch
from zephon.io.formats.line_blocks import row_lines
from zephon.io.formats.line_layouts import blocks_of
from zephon.io.formats.line_rows import LineRows, Place
from zephon.io.group_cache import Lower
from zephon.io.shard import Shard
from zephon.io.spill.key import GroupKey

_TEXT_ALONE = "\0"  # in the place of a dataset's name: nothing is decoded, so nothing names one


class SpilledTexts:
    """Keeps the text of blocks in a spill, and gives it back; any number of threads may call."""

    def __init__(self, spill: Lower) -> None:
        self._spill = spill

    def find(self, shard: Shard, number: int) -> bytes | None:
        """Give the text of a block; None if it is not there."""
        group = self._spill.load(_key(shard, number))
        if group is None or not isinstance(group.payload, LineRows):
            return None
        return group.payload.text

    def keep(self, shard: Shard, number: int, text: bytes) -> None:
        """Take the text of a block, if there is room."""
        lines = row_lines(text)
        rows = LineRows(text, lines, Place("", shard.name, blocks_of(shard), number))
        columns = columns_batch((), [], len(lines.starts))
        self._spill.store(_key(shard, number), DecodedGroup(columns, (), rows, len(text)))


def _key(shard: Shard, number: int) -> GroupKey:
    first, stop = blocks_of(shard).first_rows[number : number + 2].tolist()
    return GroupKey(shard.identity, number, first, stop - first, (), _TEXT_ALONE)
