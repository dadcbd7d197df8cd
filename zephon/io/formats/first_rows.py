"""What the first rows of a dataset have in some fields: lists of which numbers, and how long.

Decided from few rows, so a later row may be of another kind: whoever reads it says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.fields import LOOKED_AT, Seen, widened
from zephon.io.formats.arrow_columns import numbers_of_type
from zephon.io.list_kinds import NOTHING, Found, look_at


def seen_in_rows(rows: Iterable[object], names: Sequence[str]) -> dict[str, Seen]:
    """Look at Python rows; whatever a row's own code raises counts as no list.

    >>> seen_in_rows([{"a": [1, 2]}, {"a": [0.5]}, {}], ["a"])
    {'a': Seen(kind='float64', lengths=(2, 1, -1), container='list', odd='')}
    """
    found = [[_value_in(row, name) for name in names] for row in rows]
    return {name: _merged([row[at] for row in found]) for at, name in enumerate(names)}


def seen_in_column(column: pa.Array, types: Iterable[pa.DataType]) -> Seen:
    """Look at an Arrow column.

    Args:
        column: of the first rows.
        types: of the column in all shards, which decide the kind.
    """
    types = list(types)
    kinds = [numbers_of_type(dtype) for dtype in types]
    kind = None if None in kinds else widened(kind for kind in kinds if kind is not None)
    odd = "" if kind is not None else f"it is {' and '.join(dict.fromkeys(map(str, types)))}"
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if numbers_of_type(column.type) is None or pa.types.is_null(column.type):
        return Seen(kind, (-1,) * len(column), odd=odd)
    lengths = tuple(-1 if each is None else each for each in column.value_lengths().to_pylist())
    return Seen(kind, lengths, "np", odd)


def _value_in(row: object, name: str) -> Found:
    if not isinstance(row, Mapping):
        return NOTHING
    try:
        return look_at(row.get(name))
    except Exception:  # the row is the user's, and so is what its code raises
        return Found(None, odd="a row that cannot be read")


def _merged(found: list[Found]) -> Seen:
    kinds = [one.kind for one in found if one.kind is not None]
    kind = widened(kinds) if len(kinds) == len(found) else None
    containers = {one.container for one in found if one.container is not None}
    container = containers.pop() if len(containers) == 1 else "list"
    odd = "" if kind is not None else _odd(found)
    return Seen(kind, tuple(one.length for one in found), container, odd)


def _odd(found: list[Found]) -> str:
    """Say which rows have what goes with nothing, or not with others."""
    for row, one in enumerate(found):
        if one.kind is None:
            return f"row {row} has {one.odd}"
    flags = next(row for row, one in enumerate(found) if one.kind == "bool")
    other = next(row for row, one in enumerate(found) if one.kind not in ("", "bool"))
    return f"row {flags} has booleans and row {other} numbers"


def front_of_blocks(rows: NDArray[np.int64], offsets: NDArray[np.int64]) -> int:
    """Say how many bytes of a file hold the first rows that are looked at.

    Args:
        rows: of each block of the file, shape [blocks].
        offsets: where each begins, and where the last ends, shape [blocks + 1].

    >>> front_of_blocks(np.array([60, 60, 60]), np.array([3, 100, 200, 300]))
    200
    """
    blocks = int(np.searchsorted(np.cumsum(rows), LOOKED_AT)) + 1
    return int(offsets[min(blocks, len(rows))])
