"""What a source says of its position, as JSON values and back: the same values, never pickle."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from zephon.errors import CheckpointError, PlanError

_MARK = "$"  # a dict with one such key stands for a value that JSON does not have
_WIDE = 2**63


def to_json(value: object, where: str) -> Any:
    """Write a value as JSON: plain values, containers of them, bytes, and arrays of numbers.

    Tuples, sets, keys of other kinds and integers of any size come back as they were; NumPy's
    numbers come back as Python's.

    Args:
        value: what to write; nothing in the result shares memory with it.
        where: how to call it in an error.

    >>> from_json(to_json({"rng": (3, (1, 2), None), 7: 2**70}, "state"))
    {'rng': (3, (1, 2), None), 7: 1180591620717411303424}

    Raises:
        PlanError: a part of it is of another kind; the message names its place.
    """
    match value:
        case None | bool() | np.bool_():
            return None if value is None else bool(value)
        case str():
            return str(value)
        case int() | np.integer():
            number = int(value)
            return number if -_WIDE <= number < _WIDE else {"$int": str(number)}
        case float() | np.floating():
            number = float(value)
            return number if math.isfinite(number) else {"$float": repr(number)}
        case bytes() | bytearray():
            return {"$bytes": base64.b64encode(value).decode("ascii")}
        case list():
            return _each(value, where)
        case tuple():
            return {"$tuple": _each(value, where)}
        case set() | frozenset():
            kind = "$set" if isinstance(value, set) else "$frozenset"
            return {kind: sorted(_each(value, where), key=json.dumps)}
        case np.ndarray() if value.dtype.kind in "biuf":
            data = base64.b64encode(value.tobytes()).decode("ascii")
            return {"$array": [value.dtype.str, list(value.shape), data]}
        case Mapping():
            return _mapping(value, where)
    raise PlanError(
        f"{where} must be made of numbers, strings, bytes, lists, tuples, sets, dicts and arrays "
        f"of numbers, so that a checkpoint can hold it, got a {type(value).__name__}; leave it "
        "out, or write it as these"
    )


def _each(values: Any, where: str) -> list[Any]:
    return [to_json(each, f"{where}[{place}]") for place, each in enumerate(values)]


def _mapping(value: Mapping[Any, Any], where: str) -> Any:
    if all(isinstance(key, str) and not key.startswith(_MARK) for key in value):
        return {str(key): to_json(each, f"{where}[{key!r}]") for key, each in value.items()}
    return {
        "$dict": [
            [to_json(key, f"a key of {where}"), to_json(each, f"{where}[{key!r}]")]
            for key, each in value.items()
        ]
    }


def from_json(value: Any) -> Any:
    """Read back what ``to_json`` wrote.

    Raises:
        CheckpointError: it was never written so.
    """
    match value:
        case list():
            return [from_json(each) for each in value]
        case Mapping() if len(value) == 1 and next(iter(value)).startswith(_MARK):
            ((kind, body),) = value.items()
            try:
                return _READ[kind](body)
            except (KeyError, TypeError, ValueError) as exc:
                raise CheckpointError(
                    f"restore: the state of a work source is damaged at {kind!r}: "
                    f"{type(exc).__name__} {exc}; restore an earlier checkpoint"
                ) from exc
        case Mapping():
            return {key: from_json(each) for key, each in value.items()}
    return value


def _array(body: Any) -> np.ndarray:
    kind, shape, data = body
    return np.frombuffer(base64.b64decode(data), dtype=kind).reshape(shape).copy()


_READ = {
    "$int": int,
    "$float": float,
    "$bytes": base64.b64decode,
    "$tuple": lambda body: tuple(from_json(body)),
    "$set": lambda body: set(from_json(body)),
    "$frozenset": lambda body: frozenset(from_json(body)),
    "$array": _array,
    "$dict": lambda body: {from_json(key): from_json(each) for key, each in body},
}
