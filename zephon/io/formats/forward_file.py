"""Blocks of a compressed text, by number.

A compressed file can be read only forwards. One decoder is kept at the place that was read last,
and the text of the blocks that it passes is kept too, in one store for all files of a reader,
bounded by bytes, oldest first out. So lanes that read at different places of a file are served by
one pass over it, as long as they lie within the bound of each other (64 MiB, see
``forward_files``): the default deal spreads lanes over 1/16 of a dataset, so that is a dataset of
1 GiB, or larger files where lanes hold ranges of rows that are short beside them.

Where a block further back is asked for, the file is read from its front once more, and what is
passed then is kept in the spill: so random order decompresses a file twice at most, the first block
of it aside, and a block costs about 0.5 ms from then on, in any process. Without a spill, or room
in it, each such block decompresses about half a file: such files are better uncompressed.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zephon.io.formats.compressed_text import DamageError, open_text
from zephon.io.formats.format import Texts
from zephon.io.formats.line_blocks import OpenedText
from zephon.io.shard import Shard


class PassedBlocks:
    """Text of blocks that decoders have passed; shared by files and threads, bounded by bytes.

    >>> passed = PassedBlocks(limit_bytes=10)
    >>> for number in range(3):
    ...     passed.keep("a.gz", number, b"12345")
    >>> passed.find("a.gz", 0), passed.find("a.gz", 2)
    (None, b'12345')
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._texts: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._bytes = 0

    def find(self, path: str, number: int) -> bytes | None:
        """Give the text of a block, if it is still there."""
        with self._lock:
            return self._texts.get((path, number))

    def keep(self, path: str, number: int, text: bytes) -> None:
        """Add a block, in the place of the oldest ones."""
        with self._lock:
            self._bytes -= len(self._texts.pop((path, number), b""))
            self._texts[path, number] = text
            self._bytes += len(text)
            while self._bytes > self._limit:
                self._bytes -= len(self._texts.popitem(last=False)[1])

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._texts.clear()
            self._bytes = 0


class ForwardFile:
    """One compressed shard; any number of threads may ask, one at a time decodes.

    Args:
        dataset: its name, for messages.
        shard: the file.
        offsets: where its blocks begin, and where the last ends, in bytes of the decoded text,
            shape [blocks + 1].
        passed: where the text of blocks is kept; other files may share it.
        texts: where it is kept once the file had to be read from its front again.
        again: it was read before.
    """

    def __init__(
        self,
        dataset: str,
        shard: Shard,
        offsets: NDArray[np.int64],
        passed: PassedBlocks,
        texts: Texts | None = None,
        *,
        again: bool = False,
    ) -> None:
        self._dataset = dataset
        self._shard = shard
        self._offsets = offsets
        self._passed = passed
        self._texts = texts
        self._again = again
        self._lock = threading.Lock()
        self._stream: OpenedText | None = None
        self._next = 0

    def block(self, number: int) -> bytes:
        """Give the text of one block.

        Raises:
            ShardError: the file is damaged, cut off, gone, or was written to since.
        """
        path = self._shard.path
        if (text := self._passed.find(path, number)) is not None:
            return text  # without waiting for a thread that decodes another one
        with self._lock:
            if (text := self._passed.find(path, number)) is not None:
                return text
            if (text := self._kept(number)) is not None:
                return text
            stream, self._stream = self._stream, None  # lost if what follows raises
            if stream is None or number < self._next:
                self._again = self._again or stream is not None
                if stream is not None:
                    stream.close()
                stream = self._start()
            text = b""
            while self._next <= number:
                text = self._advance(stream)
            self._stream = stream
            return text

    def close(self) -> None:
        """Let go of the file; a later ``block`` opens it again."""
        with self._lock:
            if self._stream is not None:
                self._stream.close()
            self._stream = None

    def _kept(self, number: int) -> bytes | None:
        """Give the text of a block that somebody passed who read the file again."""
        if self._texts is None:
            return None
        start, stop = self._offsets[number : number + 2].tolist()
        return self._texts.find(self._shard, start, stop)

    def _start(self) -> OpenedText:
        self._shard.check_unchanged(self._dataset, os.stat(self._shard.path))
        stream = open_text(Path(self._shard.path))
        stream.read(int(self._offsets[0]))  # a byte order mark
        self._next = 0
        return stream

    def _advance(self, stream: OpenedText) -> bytes:
        wanted = int(self._offsets[self._next + 1] - self._offsets[self._next])
        text = stream.read(wanted)
        if len(text) != wanted:
            raise DamageError(f"block {self._next} has {len(text)} bytes of {wanted}")
        if self._next + 2 == len(self._offsets) and stream.read(1):
            raise DamageError(f"there is more text behind its {self._offsets[-1]} bytes")
        self._passed.keep(self._shard.path, self._next, text)
        if self._again and self._texts is not None:
            self._texts.keep(self._shard, int(self._offsets[self._next]), text)
        self._next += 1
        return text
