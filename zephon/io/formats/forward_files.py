"""The compressed files that a reader has open, of which it asks for blocks in any order."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zephon.io.formats.format import Texts
from zephon.io.formats.forward_file import ForwardFile, PassedBlocks
from zephon.io.shard import Shard

PASSED_BYTES = 64 << 20  # decoded text that a reader keeps behind its places in files, all together

_OPEN_FILES = 8


class ForwardFiles:
    """Compressed files of one dataset, each opened when it is asked for; for any threads.

    Args:
        dataset: its name, for messages.
        shards: of the dataset.
    """

    def __init__(self, dataset: str, shards: Sequence[Shard]) -> None:
        self._dataset = dataset
        self._shards = shards
        self._files: OrderedDict[int, ForwardFile] = OrderedDict()
        self._passed = PassedBlocks(PASSED_BYTES)
        self._texts: Texts | None = None
        self._begun: set[int] = set()
        self._lock = threading.Lock()

    def keep_texts(self, texts: Texts) -> None:
        """Keep the text of files that are read from their front again."""
        self._texts = texts

    def block(self, shard: int, group: int, offsets: NDArray[np.int64]) -> bytes:
        """Give the text of one block.

        Args:
            shard: position in the dataset's shards.
            group: which block of it.
            offsets: where its blocks begin, and where the last ends, in bytes of the decoded text,
                shape [blocks + 1].

        Raises:
            ShardError: the file was written to since it was counted.
            DamageError: it is damaged or cut off.
        """
        return self._file(shard, offsets).block(group)

    def close(self) -> None:
        """Close all files; a later ``block`` opens them again."""
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()
            self._passed.clear()

    def _file(self, shard: int, offsets: NDArray[np.int64]) -> ForwardFile:
        with self._lock:
            if shard not in self._files:
                self._files[shard] = ForwardFile(
                    self._dataset,
                    self._shards[shard],
                    offsets,
                    self._passed,
                    self._texts,
                    again=shard in self._begun,
                )
                self._begun.add(shard)
            self._files.move_to_end(shard)
            if len(self._files) > _OPEN_FILES:
                self._files.popitem(last=False)  # closed with its last reader
            return self._files[shard]
