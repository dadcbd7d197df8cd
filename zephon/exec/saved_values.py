"""Single values of a checkpoint: arrays of integers as text, and what is read of a tree checked.

Arrays are delta-coded where that is shorter, stored in the narrowest type, and compressed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.io.formats.zstd_module import zstd

MOST = int(np.iinfo(np.int64).max)
DAMAGE = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, MemoryError,
    RecursionError,
)  # fmt: skip
"""What is raised by values that are not what they should be."""
_WIDTHS = ("i1", "i2", "i4", "i8")
_STEPS, _PLAIN = "d", "v"
_FEW = 256
_MOST_TOLD = 8


def told(noun: str, numbers: Sequence[int]) -> str:
    """Write some numbers for people.

    >>> told("lane", [3]), told("lane", [3, 4]), told("lane", [])
    ('lane 3', 'lanes 3, 4', 'no lanes')
    >>> told("lane", range(16, 32)), told("lane", range(0, 32, 2))
    ('lanes 16 to 31', 'lanes 0, 2, 4, 6, 8, 10, 12, 14 and 8 more')
    """
    if not numbers:
        return f"no {noun}s"
    first, last = numbers[0], numbers[-1]
    if len(numbers) > _MOST_TOLD and [*numbers] == [*range(first, last + 1)]:
        return f"{noun}s {first} to {last}"
    shown = ", ".join(map(str, numbers[:_MOST_TOLD]))
    more = f" and {len(numbers) - _MOST_TOLD} more" if len(numbers) > _MOST_TOLD else ""
    return f"{noun}{'s' if len(numbers) > 1 else ''} {shown}{more}"


def array(value: object) -> NDArray[np.int64]:
    """Return a leaf that holds integers; raises TypeError."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"integers must be there, got {value!r:.40}")
    return value


def integers(saved: Mapping[str, Any], name: str, most: int = MOST) -> NDArray[np.int64]:
    """Read integers that are never negative; raises KeyError, TypeError or ValueError."""
    values = array(saved[name])
    if len(values) and (int(values.min()) < 0 or int(values.max()) > most):
        raise ValueError(f"{name!r} must be from 0 to {most:,}, got {values.min()}, {values.max()}")
    return values


def whole(saved: Mapping[str, Any], name: str, least: int = 0) -> int:
    """Read one integer; raises KeyError, TypeError or ValueError."""
    values = array(saved[name]).tolist()
    if len(values) != 1 or values[0] < least:
        raise ValueError(f"{name!r} must be an integer of at least {least}, got {values!r:.40}")
    return values[0]


def flag(saved: Mapping[str, Any], name: str) -> bool:
    """Read a truth value; raises KeyError, TypeError or ValueError."""
    value = whole(saved, name)
    if value not in (0, 1):
        raise ValueError(f"{name!r} must be 0 or 1, got {value}")
    return bool(value)


def listed(saved: Mapping[str, Any], name: str) -> list[Any]:
    """Read a list, of which nothing is written if it is empty; raises TypeError."""
    value = saved.get(name, [])
    if not isinstance(value, list):
        raise TypeError(f"{name!r} must be numbered from 0 on, got {value!r:.40}")
    return value


def pack(values: NDArray) -> str:
    """Write integers as text: how, type, then base64 of zstd of the bytes, plane by plane.

    What grows evenly is written as differences, what jumps about as it is.

    >>> unpack(pack(np.array([5, 6, 7, 1 << 40])))
    array([            5,             6,             7, 1099511627776])
    """
    wide = np.asarray(values).astype(np.int64)
    steps = wide.copy()
    steps[1:] -= wide[:-1]
    jumps = len(wide) > _FEW and _spread(steps[1:], 0.0) > _spread(wide)
    how, chosen = (_PLAIN, wide) if jumps else (_STEPS, steps)
    low, high = (int(chosen.min()), int(chosen.max())) if len(chosen) else (0, 0)
    kind = next(k for k in _WIDTHS if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    planes = chosen.astype("<" + kind).view(np.uint8).reshape(len(chosen), int(kind[1:])).T
    data = zstd.compress(planes.tobytes())
    return f"{how}{kind}:{base64.b64encode(data).decode('ascii')}"


def _spread(values: NDArray[np.int64], around: float | None = None) -> float:
    """Return how far values lie from their mean, or from something else, on average."""
    if not len(values):
        return 0.0
    return float(np.abs(values - (values.mean() if around is None else around)).mean())


def unpack(text: str) -> NDArray[np.int64]:
    """Read what ``pack`` wrote.

    Raises:
        TypeError, ValueError: it is something else.
        MemoryError: more integers than there is room for.
    """
    if not isinstance(text, str):
        raise TypeError(f"integers must be text, got {text!r:.40}")
    kind, _, data = text.partition(":")
    how, kind = kind[:1], kind[1:]
    if kind not in _WIDTHS or how not in (_STEPS, _PLAIN):
        raise ValueError(f"integers of type {how + kind!r}")
    try:
        raw = zstd.decompress(base64.b64decode(data, validate=True))
    except zstd.ZstdError as exc:
        raise ValueError(str(exc)) from exc
    planes = np.frombuffer(raw, np.uint8).reshape(np.dtype(kind).itemsize, -1)
    values = np.ascontiguousarray(planes.T).view("<" + kind).reshape(-1)
    return np.cumsum(values, dtype=np.int64) if how == _STEPS else values.astype(np.int64)
