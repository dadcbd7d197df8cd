"""What the first rows of a dataset have in some fields: lists of which numbers, and how long.

Decided from few rows, so a later row may be of another kind: whoever reads it says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.fields import Seen, widened
from zephon.io.formats.arrow_columns import numbers_of_type

LOOKED_AT = 64
"""Rows that are looked at."""

_NOTHING = ("", -1, None)


def seen_in_rows(rows: Iterable[object], names: Sequence[str]) -> dict[str, Seen]:
    """Look at Python rows; whatever a row's own code raises counts as no list.

    >>> seen_in_rows([{"a": [1, 2]}, {"a": [0.5]}, {}], ["a"])
    {'a': Seen(kind='float64', lengths=(2, 1, -1), container='list')}
    """
    found = [[_value_in(row, name) for name in names] for row in rows]
    return {name: _merged([row[at] for row in found]) for at, name in enumerate(names)}


def seen_in_column(column: pa.Array, types: Iterable[pa.DataType]) -> Seen:
    """Look at an Arrow column.

    Args:
        column: of the first rows.
        types: of the column in all shards, which decide the kind.
    """
    kinds = [numbers_of_type(dtype) for dtype in types]
    kind = None if None in kinds else widened(kind for kind in kinds if kind is not None)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if numbers_of_type(column.type) is None or pa.types.is_null(column.type):
        return Seen(kind, (-1,) * len(column))
    lengths = tuple(-1 if each is None else each for each in column.value_lengths().to_pylist())
    return Seen(kind, lengths, "np")


def _value_in(row: object, name: str) -> tuple[str | None, int, str | None]:
    """Say which numbers a field of a row holds, how many, and in what; see ``Seen``."""
    if not isinstance(row, Mapping):
        return _NOTHING
    try:
        value = row.get(name)
        if value is None:
            return _NOTHING
        if isinstance(value, list | tuple):
            container = "tuple" if isinstance(value, tuple) else "list"
            return _kind_of_items(value), len(value), container
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__array__"):
            return (None, -1, None)
        array = np.asarray(value)
        if array.ndim != 1:
            return (None, -1, None)
        container = "pt" if type(value).__module__.split(".")[0] == "torch" else "np"
        return _kind_of_array(array), len(array), container
    except Exception:  # the row is the user's, and so is what its code raises
        return (None, -1, None)


def _kind_of_items(items: Sequence[Any]) -> str | None:
    types = set(map(type, items))
    if not types:
        return ""
    booleans = {kind for kind in types if issubclass(kind, (bool, np.bool_))}
    if booleans:
        return "bool" if booleans == types else None
    if all(issubclass(kind, (int, np.integer)) for kind in types):
        return "int64"
    if all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in types):
        return "float64"
    return None


def _kind_of_array(array: NDArray[Any]) -> str | None:
    if array.dtype == object:
        return _kind_of_items(array.tolist())
    if not len(array):
        return ""
    return numbers_of_type(pa.list_(pa.from_numpy_dtype(array.dtype)))


def _merged(found: list[tuple[str | None, int, str | None]]) -> Seen:
    kinds = [kind for kind, _, _ in found]
    kind = None if None in kinds else widened(kind for kind in kinds if kind is not None)
    containers = {container for _, _, container in found if container is not None}
    container = containers.pop() if len(containers) == 1 else "list"
    return Seen(kind, tuple(length for _, length, _ in found), container)
