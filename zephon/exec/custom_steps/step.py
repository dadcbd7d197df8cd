"""What every operator that sees its lane in order promises, and what they share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from zephon.errors import ExecutionError
from zephon.exec.forgiving import NOT_OF_GROUPS
from zephon.exec.operator import RowError
from zephon.io.dataset import Dataset
from zephon.types import SampleMeta, SampleRecord


class CustomStep(ABC):
    """One operator of a plan, shared by all lanes; what it remembers of a lane is in a state.

    A state is used by one thread at a time, and not any more after ``finish``.

    label: how messages call it. datasets: by public id, so that messages name rows as they lie in
    them. row_by_row: what comes of one record does not depend on the others. gives_all_back: what
    it holds leaves at a flush.
    """

    label: str
    datasets: Mapping[int, Dataset] = MappingProxyType({})
    row_by_row: ClassVar[bool] = False
    gives_all_back: bool = True
    _said: bool = False  # that rows were kept

    @property
    def snapshots(self) -> bool:
        """Whether a state can be written down as JSON values."""
        return False

    @abstractmethod
    def make_state(self, lane: int) -> Any:
        """Make the state that a lane begins with, and begins anew with after ``finish``."""

    @abstractmethod
    def push(self, state: Any, records: list[SampleRecord]) -> tuple[Any, list[SampleRecord]]:
        """Take a group of records; return the state to go on with, and the records that leave.

        Args:
            state: of the lane of the records.
            records: at most 64, in the order of their lane; given away.

        Raises:
            ExecutionError: code of the user failed, or gave what it must not.
            DataError: a record is bad.
        """

    def push_until(
        self, state: Any, records: list[SampleRecord]
    ) -> tuple[Any, list[SampleRecord], Exception | None]:
        """Do as ``push``; where records are taken one by one, stop at the first bad one.

        Returns:
            the state, the records that leave, and what is wrong with the first bad record.
        """
        return *self.push(state, records), None

    @abstractmethod
    def finish(self, state: Any) -> list[SampleRecord]:
        """Return what is held, where the lane is flushed or ends; raises as ``push``."""

    def discard(self, state: Any) -> None:  # noqa: B027
        """Let go of a state that nobody finishes."""

    def source_exhausted(self, state: Any, component: int) -> list[SampleRecord]:
        """Hear that a component has ended in the lane; return the records that leave by that."""
        return []

    def snapshot(self, state: Any) -> Any:
        """Write a state down as JSON values; only where ``snapshots``."""
        raise NotImplementedError

    def restore(self, lane: int, saved: Any) -> Any:
        """Make the state that was written down; only where ``snapshots``."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027
        """Let go of what workers built."""

    def warn_of_kept(self, rows: int) -> None:
        """Say once that it got rows, and nobody will ever get them from it."""
        if self._said:
            return
        self._said = True
        count = "a row was" if rows == 1 else f"{rows:,} rows were"
        keep = "" if self.snapshots else ", or snapshot= and restore= to keep it for the whole lane"
        warnings.warn(
            f"{self.label}: {count} pushed that never came out, until the state was done with, and "
            "nothing said that push drops them: they are counted as dropped; return "
            "zephon.ops.tombstones_for_record(record) for what is dropped on purpose, and pass "
            f"flush= to give back what the state holds{keep}",
            RuntimeWarning,
            stacklevel=2,
        )

    def _place(self, meta: SampleMeta) -> str:
        """Name the row that a record came from, or the first of the rows that are in it."""
        number, shard_id, row = meta.contribution_refs()[0].cursor.sample_id
        dataset = self.datasets.get(number)
        shards = [] if dataset is None else np.flatnonzero(dataset.ids() == shard_id)
        if dataset is None or not len(shards):
            return f"sample {meta.sample_id} of lane {meta.lane_id}"
        shard = dataset.shards[int(shards[0])]
        return f"dataset {dataset.name!r}, shard {shard.name!r}, row {row}"

    @contextmanager
    def _located(self, lane: int, records: Sequence[SampleRecord]) -> Iterator[None]:
        """Make located errors of what goes wrong with some records; there may be none."""
        try:
            yield
        except RowError as exc:
            step = self.label if exc.step is None else exc.step
            where = f"lane {lane}"
            if records:
                where = self._place(records[min(exc.row, len(records) - 1)].meta)
            kind = exc.kind if exc.__cause__ is None else ExecutionError
            forgive = any(each.policy.on_error != "raise" for each in self.datasets.values())
            note = f"; {NOT_OF_GROUPS}" if forgive else ""
            raise kind(f"{step}: {exc.problem} on {where}; {exc.way_out}{note}") from exc.__cause__


_MOST_BITS = 8192
"""Of an integer in a snapshot: Python itself writes none out that is much wider."""


def json_values(label: str, value: Any) -> Any:
    """Copy what an operator wrote down, so that it stays as it was when it was written.

    Returns:
        The same values, tuples as lists.

    Raises:
        ExecutionError: something in it is no JSON value.
    """
    if value is None or isinstance(value, bool):
        return value
    # Of classes derived from these the value alone is kept.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        if value.bit_length() > _MOST_BITS:
            raise ExecutionError(
                f"{label}: snapshot must return integers of at most {_MOST_BITS:,} bits, got one "
                f"of {value.bit_length():,}; write it as text there, and read it in restore"
            )
        return int(value)
    if isinstance(value, list | tuple):
        return [json_values(label, each) for each in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: json_values(label, each) for key, each in value.items()}
    came = f"a {type(value).__name__}"
    if isinstance(value, dict):
        came = f"a dict with the key {next(k for k in value if not isinstance(k, str))!r:.80}"
    raise ExecutionError(
        f"{label}: snapshot must return JSON values (dicts with strings as keys, lists, strings, "
        f"numbers, True, False, None), got {came}; convert it there, and back in restore"
    )
