"""Payload values as a caller's own, so that what a function does to them changes no record."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

_UNCHANGEABLE = frozenset([str, bytes, int, float, complex, bool, type(None)]).union(
    kind for kind in np.sctypeDict.values() if kind not in (np.void, np.object_)
)


def own_copy(value: Any) -> Any:
    """Copy a payload value with everything in it; what cannot be copied is given as it is."""
    kind = type(value)
    if kind in _UNCHANGEABLE:
        return value
    if kind is dict:
        # Most rows hold nothing else: seen at once, not value by value.
        if _UNCHANGEABLE.issuperset(map(type, value.values())):
            return value.copy()
        return {name: own_copy(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        if _UNCHANGEABLE.issuperset(map(type, value)):
            return kind(value)
        return kind([own_copy(item) for item in value])
    if issubclass(kind, np.generic) and kind is not np.void:
        return value
    if kind is np.ndarray and value.dtype.kind != "O":
        return value.copy()
    try:
        return deepcopy(value)
    except Exception:  # of any class: a file, a lock, a tensor inside a graph
        return value
