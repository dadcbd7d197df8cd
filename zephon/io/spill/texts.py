"""Text of blocks of compressed files in the spill: a block costs a mapping, not half a file.

A compressed file can be read from its front only. Who has to do so a second time leaves here all
that is passed on the way, so that nobody has to do it a third time. It lies as decoded groups do,
uncompressed and under the same bounds: random order over a compressed dataset takes as much disk as
its text, and where there is less room, files are read from their front again.
"""

from __future__ import annotations

import pyarrow as pa

from zephon.io.fields import Column
from zephon.io.formats.format import DecodedGroup, columns_batch
from zephon.io.group_cache import Lower
from zephon.io.shard import Shard
from zephon.io.spill.key import GroupKey

_TEXT_ALONE = "\0"  # in the place of a dataset's name: nothing is decoded, so nothing names one
_COLUMNS = (Column("text", "any", values=pa.large_binary()),)


class SpilledTexts:
    """Keeps the text of blocks in a spill, and gives it back; any number of threads may call."""

    def __init__(self, spill: Lower) -> None:
        self._spill = spill

    def find(self, shard: Shard, start: int, stop: int) -> bytes | None:
        """Give the text between two places; None if it is not there."""
        group = self._spill.load(_key(shard, start, stop))
        return None if group is None else group.columns.column(0)[0].as_py()

    def keep(self, shard: Shard, start: int, text: bytes) -> None:
        """Take the text from a place on, if there is room."""
        column = pa.array([text], pa.large_binary())
        group = DecodedGroup(columns_batch(_COLUMNS, [column], 1), (), None, len(text))
        self._spill.store(_key(shard, start, start + len(text)), group)


def _key(shard: Shard, start: int, stop: int) -> GroupKey:
    """Name a text by its bytes instead of rows: which rows it has is for its format to say."""
    return GroupKey(shard.identity, 0, start, stop - start, _COLUMNS, _TEXT_ALONE)
