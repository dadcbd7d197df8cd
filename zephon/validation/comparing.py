"""Whether two runs gave the same records, and whether an object is as it was.

Payloads hold anything. Where nothing can be said of two objects they count as the same: a check
must not blame an operator for a class that cannot be compared.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from zephon.types import SampleMeta, SampleRecord

_LONGEST = 10_000
"""Containers with more entries are told apart by their length alone."""

_DEEPEST = 6


def difference(one: Sequence[SampleRecord], other: Sequence[SampleRecord]) -> str | None:
    """Say where two lists of records differ, as a clause; None if they are the same."""
    if len(one) != len(other):
        return f"{len(one)} records, then {len(other)}"
    for number, (first, second) in enumerate(zip(one, other, strict=True)):
        if not _same_meta(first.meta, second.meta):
            return f"record {number} is {_short(first.meta)}, then {_short(second.meta)}"
        if not same_value(first.payload, second.payload):
            return f"record {number} holds {_short(first.payload)}, then {_short(second.payload)}"
    return None


def same_value(one: Any, other: Any) -> bool:
    """Compare two payload values, containers entry by entry, objects by what they hold."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    match one:
        case dict():
            return one.keys() == other.keys() and all(same_value(one[k], other[k]) for k in one)
        case list() | tuple() | deque():
            return len(one) == len(other) and all(map(same_value, one, other))
        case np.ndarray():
            return _same_array(one, other)
        case SampleRecord():
            return _same_meta(one.meta, other.meta) and same_value(one.payload, other.payload)
        case _ if hasattr(one, "data_ptr"):  # a torch tensor, known without importing torch
            return one.dtype == other.dtype and one.shape == other.shape and _all_equal(one, other)
        case _ if type(one).__eq__ is object.__eq__:
            held = getattr(one, "__dict__", None)
            return held is None or same_value(held, other.__dict__)
        case _:
            return bool(one == other) or bool(one != one and other != other)  # not a number


def picture(value: Any, depth: int = 0) -> Any:
    """Describe what an object holds, so that a later picture differs if that was changed.

    Plain values and containers are described in full; of any other object only which one it is,
    and at the top what its attributes are.
    """
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, str | bytes | int | float | complex | bool | type(None)):
        return (type(value), value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return (str(value.dtype), value.shape, value.tobytes() if value.size <= _LONGEST else None)
    if isinstance(value, dict | list | tuple | set | frozenset | deque):
        if len(value) > _LONGEST or depth == _DEEPEST:
            return (id(value), len(value))
        if isinstance(value, dict):
            return [(picture(k, depth + 1), picture(v, depth + 1)) for k, v in value.items()]
        inside = [picture(each, depth + 1) for each in value]
        return sorted(inside, key=repr) if isinstance(value, set | frozenset) else inside
    return id(value)


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is small, and made of nothing but numbers, text and containers."""
    if isinstance(value, str | bytes | bytearray | int | float | complex | bool | type(None)):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "O" and value.size <= _LONGEST
    if hasattr(value, "data_ptr"):  # a torch tensor, known without importing torch
        return value.numel() <= _LONGEST
    if not isinstance(value, dict | list | tuple | set | frozenset | deque):
        held = None if isinstance(value, types.ModuleType) else getattr(value, "__dict__", None)
        return depth < _DEEPEST and held is not None and is_plain(held, depth + 1)
    if len(value) > _LONGEST or depth == _DEEPEST:
        return False
    inside = [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)
    return all(is_plain(each, depth + 1) for each in inside)


def _same_meta(one: SampleMeta, other: SampleMeta) -> bool:
    """Compare entry by entry: tags may hold what cannot be compared as a whole."""
    return all(same_value(getattr(one, f.name), getattr(other, f.name)) for f in fields(SampleMeta))


def _same_array(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "O":
        return same_value(one.tolist(), other.tolist())
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _all_equal(one: Any, other: Any) -> bool:
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
