"""Looking at single rows of a dataset, and at what a process that hangs is doing."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from zephon.errors import DatasetError, ExecutionError
from zephon.io.dataset import Dataset
from zephon.io.far_reading import FarReading
from zephon.io.group_cache import GroupCache
from zephon.io.options import StoreOptions
from zephon.io.reader import RowReader
from zephon.io.spill.spill import Spill, SpillSettings

__all__ = [
    "DatasetInspector",
    "dump_semaphore_leak_report",
    "dump_semaphore_registry",
    "install_debug_hooks",
]

FAULTHANDLER = "ZEPHON_FAULTHANDLER"
"""Environment variable: "0", "false", "no" or "off" keep ``install_debug_hooks`` from anything."""

_CACHE_BYTES = 64 << 20
_OURS = "zephon"


class DatasetInspector:
    """Reads rows by shard id and position, whole, without a pipeline.

    Rows come as records have them: Parquet values as NumPy scalars and arrays, JSON lines as
    Python's ``json`` gives them, rows in memory as copies.

    Args:
        dataset: any dataset.
        io_options: as ``Pipeline.options`` takes them; compressed JSON lines use the spill.

    Raises:
        TypeError, PlanError: what is given is no dataset, or are no options.

    >>> from zephon import Dataset, InMemoryShard
    >>> dataset = Dataset.from_dict("toy", {7: InMemoryShard([{"text": "a"}, {"text": "b"}])})
    >>> with DatasetInspector(dataset) as inspector:
    ...     inspector.read(7, 1), inspector.read_many(7, [1, 0])
    ({'text': 'b'}, [{'text': 'b'}, {'text': 'a'}])
    """

    def __init__(self, dataset: Dataset, *, io_options: Any = None) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(
                f"DatasetInspector: dataset must be a Dataset, got a {type(dataset).__name__}; "
                "make one with Dataset.from_path or Dataset.from_dict"
            )
        wanted = StoreOptions.from_any(io_options).resolved_parquet_rg_cache()
        self._dataset = dataset
        self._places = {int(key): place for place, key in enumerate(dataset.ids())}
        spill = None
        if wanted.enabled is not False and dataset.format.reads_forward(dataset.shards):
            spill = Spill(SpillSettings.of(wanted))
        self._cache = GroupCache(_CACHE_BYTES, spill)
        self._reader: RowReader | None = RowReader(
            dataset,
            (),
            payload=True,
            cache=self._cache,
            late_rows=True,
            far=FarReading.of(StoreOptions.from_any(io_options)),
        )

    def __enter__(self) -> DatasetInspector:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def read(self, shard_id: int, sample_index: int) -> Any:
        """Read one row.

        Raises:
            ExecutionError: the inspector is closed.
            DatasetError: there is no such shard.
            IndexError: there is no such row.
            DataError: the row is bad.
            ShardError: the file cannot be read.
        """
        return self.read_many(shard_id, [sample_index])[0]

    def read_many(self, shard_id: int, sample_indices: Sequence[int]) -> list[Any]:
        """Read some rows of a shard, in the order of the request; raises what ``read`` raises.

        Raises:
            TypeError: ``sample_indices`` is no list, array or other iterable of numbers.
        """
        reader = self._open()
        place = self._place(shard_id)
        if isinstance(sample_indices, str | bytes | Mapping) or not _is_iterable(sample_indices):
            raise TypeError(
                f"DatasetInspector of dataset {self._dataset.name!r}: sample_indices must be a "
                f"list of whole numbers, got {sample_indices!r}; for one row call read(shard_id, "
                "sample_index)"
            )
        indices = [self._index(place, index) for index in sample_indices]
        rows = np.array(indices, np.int64)
        taken = reader.take(np.full(len(rows), place, np.int64), rows)
        return [] if taken.payload is None else taken.payload.rows()

    def close(self) -> None:
        """Let go of everything; may be called again."""
        self._reader = None
        self._cache.clear()

    def _open(self) -> RowReader:
        if self._reader is None:
            raise ExecutionError(
                f"DatasetInspector of dataset {self._dataset.name!r}: it must be open, but it was "
                "closed; make another"
            )
        return self._reader

    def _place(self, shard_id: Any) -> int:
        place = self._places.get(shard_id) if _is_whole(shard_id) else None
        if place is None:
            known = list(self._places)
            told = f"{known[0]} to {known[-1]}" if known else "none"
            raise DatasetError(
                f"DatasetInspector of dataset {self._dataset.name!r}: shard_id must be one of "
                f"dataset.ids(), got {shard_id!r}; its {len(known)} ids are {told}"
            )
        return place

    def _index(self, place: int, index: Any) -> int:
        rows = int(self._dataset.counts()[place])
        if not _is_whole(index) or not 0 <= int(index) < rows:
            raise IndexError(
                f"DatasetInspector of dataset {self._dataset.name!r}, shard "
                f"{self._dataset.shards[place].name!r}: sample_index must be a whole number from 0 "
                f"to {rows - 1}, got {index!r}; the shard has {rows} rows"
            )
        return int(index)


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_iterable(value: object) -> bool:
    try:
        iter(value)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:  # also an array without dimensions
        return False
    return True


def install_debug_hooks() -> bool:
    """Let a process that hangs say where: stacks of all threads go to standard error on SIGUSR1.

    They come on a crash, too. ``ZEPHON_FAULTHANDLER=0`` keeps this from doing anything. May be
    called again. ``kill -USR1 PID`` asks for the stacks; the process goes on.

    Returns:
        whether SIGUSR1 is heard: not on Windows, nor without a standard error.
    """
    if os.environ.get(FAULTHANDLER, "").strip().lower() in ("0", "false", "no", "off"):
        return False
    try:
        stream = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # none, or one that is no file
        return False
    faulthandler.enable(stream)
    number = getattr(signal, "SIGUSR1", None)
    if number is None:
        return False
    faulthandler.register(number, stream, all_threads=True, chain=False)
    return True


def dump_semaphore_registry() -> dict[str, list[str]]:
    """Say what of Zephon is alive in this process.

    Returns:
        "semaphores": names of system-wide semaphores, always none, since Zephon makes none;
        "threads": names of its threads; "processes": ids of its worker processes, where the system
        tells of them (Linux).
    """
    threads = sorted(t.name for t in threading.enumerate() if t.name.startswith(_OURS))
    return {"semaphores": [], "threads": threads, "processes": _worker_processes()}


def dump_semaphore_leak_report(*, force: bool = False) -> str:
    """Say the same in words; "" if nothing of Zephon is alive, unless ``force``."""
    alive = dump_semaphore_registry()
    if not force and not any(alive.values()):
        return ""
    told = [f"{kind}: {', '.join(names) or 'none'}" for kind, names in alive.items()]
    return f"zephon, process {os.getpid()}: {'; '.join(told)}"


def _worker_processes() -> list[str]:
    found = []
    for listed in Path("/proc/self/task").glob("*/children"):
        try:
            for child in listed.read_text().split():
                command = Path("/proc", child, "cmdline").read_bytes()
                if b"zephon.exec.runners" in command:
                    found.append(child)
        except OSError:  # it has ended meanwhile
            continue
    return sorted(found)
