"""Parts of a Parquet row group, read one after another without holding the rest of it.

A row group can be read only forwards: its pages are decoded in turn. Readers that stand where a
part ended wait for whoever asks for the next one, so that going through a file in order decodes
each page once, in as much memory as a part takes and some pages. A part further on is reached by
decoding what lies before it, from the nearest reader or from the front: at random, one of n parts
costs up to n of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from zephon.io.formats.parquet_units import Part

WAITING_READERS = 8  # of all files of a dataset; each holds some pages, and a file open
BUFFER_BYTES = 1 << 20  # read at a time of each column

Open = Callable[[int], pq.ParquetFile]

Key = tuple[int, int, tuple[str, ...] | None]
"""A shard, a row group of it, and the leaves that are read; None: all of them."""


class ForwardParts:
    """Reads parts of row groups; any number of threads may ask at once.

    Args:
        open_file: opens the file of a shard, for one reader alone.
    """

    def __init__(self, open_file: Open) -> None:
        self._open_file = open_file
        self._lock = threading.Lock()
        self._waiting: list[_Reader] = []  # the one that was used last stands last

    def read(self, shard: int, part: Part, columns: Sequence[str] | None) -> pa.Table:
        """Decode one part.

        Args:
            shard: position of the shard.
            part: of which row group, and which rows.
            columns: leaves that are read; None: all of them.

        Raises:
            pa.ArrowException, OSError, ValueError: the file cannot be read, or holds fewer rows.
        """
        key: Key = (shard, part.group, None if columns is None else tuple(columns))
        reader = self._nearest(key, part.start)
        if reader is None:
            reader = _Reader(key, self._open_file(shard), part)
        try:
            table = reader.read(part)
        except BaseException:
            reader.close()
            raise
        self._wait(reader)
        return table

    def close(self) -> None:
        """Let go of all files; a later ``read`` opens them again."""
        with self._lock:
            readers, self._waiting = self._waiting, []
        for reader in readers:
            reader.close()

    def _nearest(self, key: Key, start: int) -> _Reader | None:
        """Take the reader that stands nearest before a row, if there is one."""
        with self._lock:
            before = [r for r in self._waiting if r.key == key and r.position <= start]
            if not before:
                return None
            nearest = max(before, key=lambda reader: reader.position)
            self._waiting.remove(nearest)
            return nearest

    def _wait(self, reader: _Reader) -> None:
        """Let a reader stand where it is, in the place of the one that was used least."""
        if reader.done:
            reader.close()
            return
        with self._lock:
            self._waiting.append(reader)
            oldest = self._waiting.pop(0) if len(self._waiting) > WAITING_READERS else None
        if oldest is not None:
            oldest.close()


class _Reader:
    """Stands between two rows of a row group; one thread at a time has it."""

    def __init__(self, key: Key, file: pq.ParquetFile, part: Part) -> None:
        self.key = key
        self.position = 0
        self._file = file
        self._rows = file.metadata.row_group(part.group).num_rows
        columns = key[2]
        self._batches: Iterator[pa.RecordBatch] = file.iter_batches(
            part.step,
            row_groups=[part.group],
            columns=columns if columns is None else list(columns),
            use_threads=False,
        )
        self._rest: pa.RecordBatch | None = None

    @property
    def done(self) -> bool:
        return self.position >= self._rows

    def read(self, part: Part) -> pa.Table:
        """Go forward to a part, and through it."""
        found: list[pa.RecordBatch] = []
        while self.position < part.stop:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            self._rest = None
            if batch is None:
                raise ValueError(f"it holds {self.position} rows, not {self._rows}")
            skipped = max(0, min(part.start - self.position, batch.num_rows))
            taken = min(batch.num_rows, part.stop - self.position)
            if taken > skipped:
                found.append(batch.slice(skipped, taken - skipped))
            if taken < batch.num_rows:
                self._rest = batch.slice(taken)
            self.position += taken
        return pa.Table.from_batches(found)

    def close(self) -> None:
        self._batches = iter(())
        self._rest = None
        self._file.close()
