"""Blocks of a compressed text, by number.

A compressed file can be read only forwards. One decoder is kept at the place that was read last;
blocks that it passes are kept a while, so that threads that ask for neighbouring blocks in another
order are served without going back. Going back further starts from the front again: random order
over a large compressed file needs a cache of row groups that holds what is read at random.
"""

from __future__ import annotations

import gzip
import os
import threading
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO, cast

from zephon.io.formats.line_blocks import LineBlocks
from zephon.io.formats.zstd_module import zstd
from zephon.io.shard import Shard

_PASSED_BLOCKS = 16  # kept behind the decoder, about 1 MiB each

DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError)


class ForwardFile:
    """One compressed shard; any number of threads may ask, one at a time decodes."""

    def __init__(self, dataset: str, shard: Shard, blocks: LineBlocks) -> None:
        self._dataset = dataset
        self._shard = shard
        self._offsets = blocks.offsets
        self._lock = threading.Lock()
        self._passed: OrderedDict[int, bytes] = OrderedDict()
        self._stream: BinaryIO | None = None
        self._next = 0

    def block(self, number: int) -> bytes:
        """Give the text of one block.

        Raises:
            ShardError: the file is damaged, cut off, gone, or was written to since.
        """
        with self._lock:
            if number in self._passed:
                return self._passed[number]
            stream, self._stream = self._stream, None  # lost if what follows raises
            if stream is None or number < self._next:
                stream = self._start()
            while self._next <= number:
                self._advance(stream)
            self._stream = stream
            return self._passed[number]

    def close(self) -> None:
        """Let go of the file; a later ``block`` opens it again."""
        with self._lock:
            if self._stream is not None:
                self._stream.close()
            self._stream = None
            self._passed.clear()

    def _start(self) -> BinaryIO:
        self._shard.check_unchanged(self._dataset, os.stat(self._shard.path))
        stream = open_text(Path(self._shard.path))
        stream.read(int(self._offsets[0]))  # a byte order mark
        self._next = 0
        self._passed.clear()
        return stream

    def _advance(self, stream: BinaryIO) -> None:
        wanted = int(self._offsets[self._next + 1] - self._offsets[self._next])
        text = stream.read(wanted)
        if len(text) != wanted:
            raise EOFError(f"block {self._next} has {len(text)} bytes of {wanted}")
        self._passed[self._next] = text
        self._next += 1
        if len(self._passed) > _PASSED_BLOCKS:
            self._passed.popitem(last=False)


def open_text(path: Path) -> BinaryIO:
    """Open a file for reading its decoded text, by its suffix: .gz, .zst, or as it is.

    Several gzip members or zstd frames are one text.
    """
    name = path.name.lower()
    if name.endswith(".gz"):
        return cast(BinaryIO, gzip.open(path, "rb"))
    if name.endswith(".zst"):
        window: dict[int, int] = {
            zstd.DecompressionParameter.window_log_max: 31
        }  # files made with --long=31
        return cast(BinaryIO, zstd.open(path, "rb", options=window))
    return path.open("rb")
