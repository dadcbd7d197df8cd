"""What counts the tokens of rows that are not drawn: a plan's segment, or a function of the user's.

Rows are counted in tasks; which thread runs one shows nowhere. A row that cannot be read counts -1
and hides no other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zephon.errors import DataError, DatasetError, ExecutionError, ShardError, ZephonError
from zephon.exec.block import QUARANTINED, SKIPPED
from zephon.exec.runners import InlineRunner, Runner
from zephon.exec.segment import Segment
from zephon.io.dataset import Dataset
from zephon.io.far_reading import FarReading
from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader
from zephon.planner import physical
from zephon.work.calibration import MOST_TOKENS, ChoosingCount
from zephon.work.refs import Refs

TASK_ROWS = 128
TASK_BYTES = 4 << 20
Sized: TypeAlias = tuple[Sequence[Column], RowReader]
_SIZES: dict[str, str] = {"text": "binary_length", "tokens": "list_value_length"}


class RowCount(ChoosingCount, ABC):
    """Counts rows of the datasets of one source; see ``zephon.work.calibration.Count``.

    Args:
        datasets: position in the source, and dataset, by name.
        cache: keeps decoded row groups.
        runner: runs the tasks.
    """

    def __init__(
        self, datasets: Mapping[str, tuple[int, Dataset]], cache: GroupCache, runner: Runner
    ) -> None:
        self._datasets = datasets
        self._cache = cache
        self._runner = runner

    @abstractmethod
    def count(
        self, dataset: str, shards: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count the tokens of rows, -1 for one that cannot be read; called on any thread."""

    @abstractmethod
    def sizes_reader(self, dataset: str) -> Sized | None:
        """Give what reads the columns whose sizes tell that of a row; None if there are none."""

    def __call__(
        self, dataset: str, shards: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count the tokens of rows, any number of row groups."""
        tasks = [
            self._runner.submit(partial(self.count, dataset, shards[part], rows[part]))
            for part in (slice(at, at + TASK_ROWS) for at in range(0, len(rows), TASK_ROWS))
        ]
        return np.concatenate([np.zeros(0, np.int64), *(task.result() for task in tasks)])

    def count_chosen(
        self,
        dataset: str,
        places: Sequence[tuple[int, NDArray[np.int64]]],
        choose: Callable[[int, NDArray[np.int64] | None], NDArray[np.int64]],
    ) -> list[NDArray[np.int64]]:
        """Count rows that are chosen by their sizes while their row group is at hand."""
        sized = self.sizes_reader(dataset)
        tasks = [
            self._runner.submit(
                partial(self._count_some, dataset, sized, shard, rows, partial(choose, number))
            )
            for number, (shard, rows) in enumerate(places)
        ]
        return [task.result() for task in tasks]

    def group_bytes(self, dataset: str, shard: int) -> NDArray[np.int64] | None:
        """Give the decoded bytes of a shard's row groups, shape [groups]; None if unknown."""
        data = self._datasets[dataset][1]
        return data.format.group_bytes(data.shards[shard])

    def _apart(
        self, dataset: str, shards: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count rows of which one is bad: halve them until it is alone."""
        if len(rows) == 1:
            return np.full(1, -1, dtype=np.int64)
        half = len(rows) // 2
        parts = (slice(half), slice(half, None))
        return np.concatenate([self.count(dataset, shards[p], rows[p]) for p in parts])

    def _count_some(
        self,
        dataset: str,
        sized: Sized | None,
        shard: int,
        rows: NDArray[np.int64],
        choose: Callable[[NDArray[np.int64] | None], NDArray[np.int64]],
    ) -> NDArray[np.int64]:
        shards = np.full(len(rows), shard, dtype=np.int64)
        sizes = None if sized is None else _sizes(*sized, shards, rows)
        chosen = choose(sizes)
        # Chosen by size, a few hundred rows may hold most of a row group's text: count them apart.
        load = np.arange(len(chosen)) if sizes is None else np.cumsum(sizes[chosen])
        part = load // (TASK_ROWS if sizes is None else TASK_BYTES)
        cuts = np.flatnonzero(np.diff(part)) + 1
        found = [self.count(dataset, shards[p], rows[p]) for p in np.split(chosen, cuts)]
        return np.concatenate(found)


class SegmentCount(RowCount):
    """Runs a plan's segment over rows and adds up the tokens of whatever comes of each."""

    def __init__(
        self,
        datasets: Mapping[str, tuple[int, Dataset]],
        cache: GroupCache,
        runner: Runner,
        segment: Segment,
        fetch: physical.FetchRows,
        far: FarReading,
    ) -> None:
        super().__init__(datasets, cache, runner)
        self._far = far
        self._segment = segment
        self._fetch = fetch

    def sizes_reader(self, dataset: str) -> Sized | None:
        """Give a reader of the plan's columns; it shares decoded row groups with the segment."""
        if not self._fetch.columns:
            return None
        about = self._datasets[dataset][1]
        return self._fetch.columns, RowReader(
            about,
            self._fetch.columns,
            payload=self._fetch.payload,
            cache=self._cache,
            far=self._far,
        )

    def count(
        self, dataset: str, shards: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count tokens, of all documents that come of a row together."""
        number = self._datasets[dataset][0]
        refs = Refs.of(
            component=np.full(len(rows), number, dtype=np.int32),
            shard=shards,
            row=rows,
            pass_index=np.zeros(len(rows), dtype=np.int32),
            ordinal=np.arange(len(rows)),  # which row of the request a document comes from
        )
        (block,) = self._segment.run([refs])
        if block.failure is None:
            lengths = np.diff(block.offsets)
            sums = np.bincount(block.refs.ordinal, weights=lengths, minlength=len(rows))
            # One that is left out counts as it would where it ended the run: costs are the same.
            bad = np.isin(block.lost.reason, (SKIPPED, QUARANTINED))
            sums[block.lost.refs.ordinal[bad]] = -1
            return sums.astype(np.int64)
        if isinstance(block.failure, ShardError) or not isinstance(block.failure, ZephonError):
            raise block.failure
        return self._apart(dataset, shards, rows)


class MeasureCount(RowCount):
    """Calls the user's function with whole rows, on the caller's thread."""

    def __init__(
        self,
        datasets: Mapping[str, tuple[int, Dataset]],
        cache: GroupCache,
        measure: Callable[[Any], int],
        far: FarReading,
    ) -> None:
        super().__init__(datasets, cache, InlineRunner())
        self._far = far
        self._measure = measure
        self._readers: dict[str, RowReader] = {}

    def sizes_reader(self, dataset: str) -> Sized | None:
        """Give a reader of all texts and token lists of a dataset."""
        about = self._datasets[dataset][1]
        kinds = about.kinds_without_index().items()
        columns = tuple(Column(name, kind, "empty") for name, kind in kinds if kind in _SIZES)
        try:
            reader = RowReader(about, columns, payload=False, cache=self._cache, far=self._far)
        except DatasetError:  # whoever reads such a column says what is wrong with it
            return None
        return (columns, reader) if columns else None

    def count(
        self, dataset: str, shards: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Measure row by row."""
        about = self._datasets[dataset][1]
        if dataset not in self._readers:
            self._readers[dataset] = RowReader(
                about, (), payload=True, cache=self._cache, far=self._far
            )
        try:
            payload = self._readers[dataset].take(shards, rows).payload
        except DataError:
            return self._apart(dataset, shards, rows)
        found = np.full(len(rows), -1, dtype=np.int64)
        for index in range(len(rows)):
            try:
                value = None if payload is None else payload.row(index)
            except DataError:
                continue
            name = about.shards[int(shards[index])].name
            where = f"dataset {dataset!r}, shard {name!r}, row {int(rows[index])}"
            found[index] = _measured(self._measure, value, where)
        return found


def _measured(measure: Callable[[Any], int], value: Any, where: str) -> int:
    try:
        tokens = measure(value)
    except Exception as exc:
        raise ExecutionError(f"TokenEstimation: measure failed on {where}: {exc!r}") from exc
    whole = isinstance(tokens, Integral) and not isinstance(tokens, bool)
    if not whole or not 0 <= tokens <= MOST_TOKENS:
        raise ExecutionError(
            "TokenEstimation: measure must return a whole number of tokens, from 0 to 2^40, got "
            f"{_shown(tokens)} for {where}; mend measure, or the row"
        )
    return int(tokens)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes out no whole number of more than 4,300 digits
        return f"one of {int(value).bit_length():,} bits"


def _sizes(
    columns: Sequence[Column], reader: RowReader, shards: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Add up the sizes of some columns for each row; None if one of the rows is bad."""
    import pyarrow.compute as pc  # late: it takes 30 ms to import, and only estimates need it

    try:
        taken = reader.take(shards, rows).columns.columns
    except DataError:
        return None
    total = np.zeros(len(rows), dtype=np.int64)
    for column, array in zip(columns, taken, strict=True):
        total += pc.call_function(_SIZES[column.kind], [array]).to_numpy(zero_copy_only=False)
    return total
