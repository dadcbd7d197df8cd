"""What batches hold and where it came from: rows, padding, the documents that rows cut.

Counted from the placement that comes with every batch, as arrays; `count_plainly` counts the same
from the records' own accounts, a document at a time, and is what the arrays must agree with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import plain
from zephon import SampleBatch
from zephon.types import BatchRows

_COLUMNS = ("dataset_id", "shard_id", "row", "start", "length", "ordinal")


@dataclass(frozen=True, slots=True)
class Counts:
    """What some rows hold.

    tokens: those of documents; padding: the others.
    documents: of which at least a part lies in a row; cut: those that lie in several rows.
    """

    rows: int
    tokens: int
    padding: int
    documents: int
    cut: int

    @property
    def fill(self) -> float:
        """The share of the rows that documents fill."""
        return self.tokens / (self.tokens + self.padding)

    @property
    def cut_share(self) -> float:
        """The share of the documents that lie in several rows."""
        return self.cut / self.documents


@dataclass(slots=True)
class Delivered:
    """The placement of one lane's rows, batch after batch, without the tokens."""

    rows: int = 0
    padding: int = 0
    _parts: list[tuple[NDArray[np.int64], ...]] = field(default_factory=list)

    def add(self, batch: SampleBatch) -> None:
        """Note where everything in a batch came from."""
        columns = columns_of(batch)
        spans = columns.spans
        whose = np.repeat(np.arange(len(columns)), np.diff(spans.row_splits)) + self.rows
        self._parts.append((whose, *(getattr(spans, name) for name in _COLUMNS)))
        self.rows += len(columns)
        self.padding += padding_of(batch)

    def counts(self) -> Counts:
        """Count all rows so far."""
        spans = self._spans()
        # One document of one draw may have several pieces in a row; they count once.
        pairs = np.unique(np.stack([spans["ordinal"], spans["whose"]]), axis=1)
        _, in_rows = np.unique(pairs[0], return_counts=True)
        return Counts(
            rows=self.rows,
            tokens=int(spans["length"].sum()),
            padding=self.padding,
            documents=len(in_rows),
            cut=int((in_rows > 1).sum()),
        )

    def tokens_of_datasets(self) -> NDArray[np.int64]:
        """Count the tokens of each dataset after each row, shape [rows, datasets]."""
        spans = self._spans()
        found = np.zeros((self.rows, int(spans["dataset_id"].max()) + 1), np.int64)
        np.add.at(found, (spans["whose"], spans["dataset_id"]), spans["length"])
        return np.cumsum(found, axis=0)

    def check(self, lengths: list[list[NDArray[np.int64]]]) -> NDArray[np.int64]:
        """See that no token of a pass came twice, and that cut documents left no hole.

        Args:
            lengths: tokens of each list, by dataset and shard.

        Returns:
            For each dataset the tokens of its documents of which nothing came.
        """
        spans = self._spans()
        order = np.lexsort((spans["start"], spans["row"], spans["shard_id"], spans["dataset_id"]))
        dataset, shard, row, start, length = (spans[name][order] for name in _COLUMNS[:5])
        first = np.ones(len(row), bool)
        first[1:] = (np.diff(row) != 0) | (np.diff(shard) != 0) | (np.diff(dataset) != 0)
        ends = start + length
        assert not start[first].any(), "a document begins in its middle"
        assert (start[1:] == ends[:-1])[~first[1:]].all(), "parts of a document do not meet"
        missing = np.array([sum(int(of.sum()) for of in shards) for shards in lengths])
        last = np.append(first[1:], True)
        for number, shards in enumerate(lengths):
            firsts = np.cumsum([0, *(len(of) for of in shards)])[:-1]
            mine = last & (dataset == number)
            whole = np.concatenate(shards)[firsts[shard[mine]] + row[mine]]
            assert (ends[mine] <= whole).all(), "a document is longer than in its file"
            missing[number] -= whole.sum()
        return missing

    def _spans(self) -> dict[str, NDArray[np.int64]]:
        columns = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        return dict(zip(("whose", *_COLUMNS), columns, strict=True))


def columns_of(batch: SampleBatch) -> BatchRows:
    """Give the columns of a batch that an engine made."""
    assert batch._rows is not None, "a user's records have no placement"
    return batch._rows


def padding_of(batch: SampleBatch) -> int:
    """Count the pad tokens of a batch."""
    padding = columns_of(batch).padding
    return 0 if padding is None else int(padding.sum())


def check_tokens(batch: SampleBatch, folders: list[Path], pad: int) -> None:
    """Compare every row with the parts of lists that it is said to hold, read plainly."""
    columns = columns_of(batch)
    spans = columns.spans
    names = ("dataset_id", "shard_id", "row", "start", "length")
    places = list(zip(*(getattr(spans, name).tolist() for name in names), strict=True))
    for number, record in enumerate(batch.records):
        expected: list[int] = []
        for place in places[spans.row_splits[number] : spans.row_splits[number + 1]]:
            dataset, shard, row, start, length = place
            tokens = plain.shard(folders[dataset], shard)[row].as_py()
            expected += tokens[start : start + length]
        expected += [pad] * (record.meta.padding_length or 0)
        found = list(map(int, record.payload["input_ids"]))  # pyright: ignore[reportArgumentType, reportCallIssue, reportIndexIssue]
        assert found == expected, f"row {number} is not what its placement says"


def count_plainly(batches: Iterable[SampleBatch]) -> Counts:
    """Count the rows of one lane slowly, from what each record says of itself."""
    rows = tokens = padding = 0
    rows_of: dict[tuple[int, ...], set[int]] = {}
    for batch in batches:
        for record in batch:
            packing = record.meta.tags["_packing_metadata"]
            tokens += packing["total_length"]
            padding += packing["padding_length"] or 0
            for cursor in record.meta.contribution_cursors():
                document = (cursor.chunk_id, cursor.chunk_offset)
                rows_of.setdefault(document, set()).add(rows)
            rows += 1
    cut = sum(len(found) > 1 for found in rows_of.values())
    return Counts(rows, tokens, padding, len(rows_of), cut)
