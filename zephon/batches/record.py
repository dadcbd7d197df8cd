"""A record: a meta and its payload, which an engine's record builds when somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zephon.batches.identity import SampleMeta, SamplePayload


class _Unread:
    """Room in a record for the function that makes its payload when somebody looks."""

    __slots__ = ("_origin",)

    _origin: tuple[SampleMeta, Callable[[], SamplePayload]]


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

        def __getattr__(self, name: str) -> SamplePayload:
            # Python comes here only while the payload of an unread record is not made yet.
            if name != "payload" or not _has(self, "_origin"):
                raise AttributeError(f"SampleRecord has no attribute {name!r}")
            self.payload = self._origin[1]()
            return self.payload


def unread_record(meta: SampleMeta, build: Callable[[], SamplePayload]) -> SampleRecord:
    """Make a record whose payload is built by ``build`` when somebody first looks at it."""
    record = SampleRecord.__new__(SampleRecord)
    record.meta = meta
    record._origin = (meta, build)  # pyright: ignore[reportPrivateUsage]
    return record


def is_unread(record: SampleRecord) -> bool:
    """Tell whether a record is as ``unread_record`` made it: payload never seen, same meta."""
    if _has(record, "payload") or not _has(record, "_origin"):
        return False
    return record.meta is record._origin[0]  # pyright: ignore[reportPrivateUsage]


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
