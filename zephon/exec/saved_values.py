"""Single values of a checkpoint: arrays of integers as text, and what is read checked.

Arrays are delta-coded, stored in the narrowest type, and compressed with zstd.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.io.formats.zstd_module import zstd

MOST = int(np.iinfo(np.int64).max)
_WIDTHS = ("i1", "i2", "i4", "i8")
_MOST_TOLD = 8


def told(noun: str, numbers: Sequence[int]) -> str:
    """Write some numbers for people.

    >>> told("lane", [3]), told("lane", [3, 4]), told("lane", [])
    ('lane 3', 'lanes 3, 4', 'no lanes')
    """
    if not numbers:
        return f"no {noun}s"
    shown = ", ".join(map(str, numbers[:_MOST_TOLD]))
    more = f" and {len(numbers) - _MOST_TOLD} more" if len(numbers) > _MOST_TOLD else ""
    return f"{noun}{'s' if len(numbers) > 1 else ''} {shown}{more}"


def whole(saved: Mapping[str, Any], name: str, least: int = 0) -> int:
    """Read an integer; raises KeyError or ValueError."""
    value = saved[name]
    if type(value) is not int or not least <= value <= MOST:
        raise ValueError(f"{name!r} must be an integer of at least {least}, got {value!r:.40}")
    return value


def flag(saved: Mapping[str, Any], name: str) -> bool:
    """Read a truth value; raises KeyError or TypeError."""
    value = saved[name]
    if not isinstance(value, bool):
        raise TypeError(f"{name!r} must be true or false, got {value!r:.40}")
    return value


def integers(saved: Mapping[str, Any], name: str, most: int = MOST) -> NDArray[np.int64]:
    """Read integers that are never negative; raises KeyError or what ``unpack`` does."""
    values = unpack(saved[name])
    if len(values) and (int(values.min()) < 0 or int(values.max()) > most):
        raise ValueError(f"{name!r} must be from 0 to {most:,}, got {values.min()}, {values.max()}")
    return values


def pack(values: NDArray) -> str:
    """Write integers as text: type, then base64 of zstd of their differences.

    >>> unpack(pack(np.array([5, 6, 7, 1 << 40])))
    array([            5,             6,             7, 1099511627776])
    """
    wide = np.asarray(values).astype(np.int64)
    delta = np.diff(wide, prepend=0)
    low, high = (int(delta.min()), int(delta.max())) if len(delta) else (0, 0)
    kind = next(k for k in _WIDTHS if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    data = zstd.compress(delta.astype("<" + kind).tobytes())
    return f"{kind}:{base64.b64encode(data).decode('ascii')}"


def unpack(text: str) -> NDArray[np.int64]:
    """Read what ``pack`` wrote.

    Raises:
        TypeError, ValueError: it is something else.
        MemoryError: more integers than there is room for.
    """
    if not isinstance(text, str):
        raise TypeError(f"integers must be text, got {text!r:.40}")
    kind, _, data = text.partition(":")
    if kind not in _WIDTHS:
        raise ValueError(f"integers of type {kind!r}")
    try:
        raw = zstd.decompress(base64.b64decode(data, validate=True))
    except zstd.ZstdError as exc:
        raise ValueError(str(exc)) from exc
    return np.cumsum(np.frombuffer(raw, "<" + kind), dtype=np.int64)
