"""Functions of the user that take and give records: called, and what they return checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from zephon.errors import told
from zephon.exec.operator import RowError
from zephon.types import SampleBatch, SampleMeta, SampleRecord

_NO_LISTS = (str, bytes, Mapping, SampleBatch, SampleRecord)


def called(what: str, count: int, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Call a function of the user.

    Args:
        what: how messages call it.
        count: records that it gets.
        function: what to call, with everything that follows.
        given: arguments. named: arguments by name.

    Raises:
        RowError: it raised; of the first of its records, with the cause.
    """
    try:
        return function(*given, **named)
    except Exception as exc:  # the function is the user's, and so is what it raises
        problem = f"{what} raised {told(exc)}{lead_over(count)}"
        raise RowError(0, problem, "mend the function or the row") from exc


def records_of(what: str, count: int, made: Any) -> list[SampleRecord]:
    """Check what a function of the user returned; what stands for dropped rows stays.

    Args:
        what: how messages call the function.
        count: records that it got.
        made: what it returned; a generator runs here.

    Raises:
        RowError: it is no list of records; of the first that it got, with the cause.
    """
    if not isinstance(made, Iterable) or isinstance(made, _NO_LISTS):
        raise _wrong(what, count, f"got a {type(made).__name__}")
    items: Sequence[Any] = called(what, count, list, made)
    for number, item in enumerate(items):
        if not isinstance(item, SampleRecord):
            raise _wrong(what, count, f"got a {type(item).__name__} as item {number}")
        if not isinstance(item.meta, SampleMeta):
            came = f"got a {type(item.meta).__name__} as the meta of item {number}"
            raise _wrong(what, count, came)
    return [each for each in items if not each.meta.is_sentinel]


def is_row(record: SampleRecord) -> bool:
    """Say whether a record is a row, and does not only stand for one that is dropped."""
    return not record.meta.tombstone


def _wrong(what: str, count: int, came: str) -> RowError:
    problem = f"{what} must return a list of SampleRecord, {came}{lead_over(count)}"
    error = RowError(0, problem, "return records, such as SampleRecord(meta, payload)")
    error.__cause__ = TypeError(problem)  # the function is to blame, not the row
    return error


def lead_over(count: int) -> str:
    """Lead over to the place of the first record; without records a lane is named."""
    if count < 2:
        return ", for the record" if count else ""
    return f", for the {count} records that begin"
