"""What every operator that sees its lane in order promises, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from zephon.errors import ExecutionError
from zephon.exec.operator import RowError
from zephon.types import SampleRecord


class CustomStep(ABC):
    """One operator of a plan, shared by all lanes; what it remembers of a lane is in a state.

    A state is used by one thread at a time, and not any more after ``finish``.

    label: how messages call it.
    """

    label: str

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

    @abstractmethod
    def finish(self, state: Any) -> list[SampleRecord]:
        """Return what is held, where the lane is flushed or ends; raises as ``push``."""

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

    @contextmanager
    def _located(self, lane: int, records: Sequence[SampleRecord]) -> Iterator[None]:
        """Make located errors of what goes wrong with some records; there may be none."""
        try:
            yield
        except RowError as exc:
            step = self.label if exc.step is None else exc.step
            where = f"lane {lane}"
            if records:
                meta = records[min(exc.row, len(records) - 1)].meta
                where = f"sample {meta.sample_id} of lane {lane}"
            kind = exc.kind if exc.__cause__ is None else ExecutionError
            raise kind(f"{step}: {exc.problem} on {where}; {exc.way_out}") from exc.__cause__


def json_values(label: str, value: Any) -> Any:
    """Copy what an operator wrote down, so that it stays as it was when it was written.

    Returns:
        The same values, tuples as lists.

    Raises:
        ExecutionError: something in it is no JSON value.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
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
