"""A record: a meta and its payload, both of which an engine's record makes when they are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from zephon.batches.identity import SampleMeta, SamplePayload


class Origin(Protocol):
    """Rows of which records are made when somebody looks at them."""

    def meta(self, i: int, /) -> SampleMeta:
        """Say who row ``i`` is; the same object every time, whatever thread asks."""
        ...

    def payload(self, i: int, /) -> SamplePayload:
        """Build the payload of row ``i``, from copies."""
        ...


class _Unread:
    """Room in a record for where it comes from: rows, and which of them it is."""

    __slots__ = ("_origin",)

    _origin: tuple[Origin, int]


@dataclass(slots=True, eq=False)
class SampleRecord(_Unread):
    """A meta and its payload; operators may replace either.

    Two records are equal when their metas are and their payloads hold the same values in the same
    containers, arrays compared by type, shape and content.
    """

    meta: SampleMeta
    payload: SamplePayload

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SampleRecord):
            return NotImplemented
        return self.meta == other.meta and _same_value(self.payload, other.payload)

    def __reduce__(self) -> tuple[type[SampleRecord], tuple[SampleMeta, SamplePayload]]:
        return (type(self), (self.meta, self.payload))

    if not TYPE_CHECKING:  # a type checker must still refuse a misspelt attribute

        def __getattr__(self, name: str) -> SamplePayload | SampleMeta:
            # Python comes here only while what is wanted of an unread record is not made yet.
            if name == "payload":
                origin, i = self._origin
                self.payload = made = origin.payload(i)
                return made
            if name == "meta":
                origin, i = self._origin
                self.meta = made = origin.meta(i)
                return made
            raise AttributeError(f"SampleRecord has no attribute {name!r}")


def unread_records(origin: Origin, numbers: range) -> list[SampleRecord]:
    """Make records of some rows, each of which comes from there when somebody looks at it."""
    made = []
    new, kind = SampleRecord.__new__, SampleRecord
    for i in numbers:
        record = new(kind)
        record._origin = (origin, i)  # pyright: ignore[reportPrivateUsage]
        made.append(record)
    return made


def is_unread(record: SampleRecord) -> bool:
    """Tell whether a record is as ``unread_records`` made it: payload never seen, same meta."""
    if _has(record, "payload") or not _has(record, "_origin"):
        return False
    origin, i = record._origin  # pyright: ignore[reportPrivateUsage]
    return not _has(record, "meta") or record.meta is origin.meta(i)


def _has(record: SampleRecord, slot: str) -> bool:
    try:
        object.__getattribute__(record, slot)
    except AttributeError:
        return False
    return True


def _same_value(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    match one:
        case dict():
            return one.keys() == other.keys() and all(_same_value(one[k], other[k]) for k in one)
        case list() | tuple():
            return len(one) == len(other) and all(map(_same_value, one, other))
        case np.ndarray():
            holes = one.dtype.kind in "fc"
            return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=holes)
        case _ if hasattr(one, "data_ptr"):  # a torch tensor, known without importing torch
            return one.dtype == other.dtype and bool(one.equal(other))
        case _:
            return bool(one == other) or bool(one != one and other != other)  # not a number
