"""Rows that the user holds in memory, as a shard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zephon.errors import DatasetError

_SAMPLED = 64  # rows looked at to estimate the size of a shard


class InMemoryShard:
    """A list of rows with the face of a shard; the rows stay the user's own objects.

    Rows that a pipeline hands out are copies, so nothing written to them comes back here.

    Raises:
        DatasetError: it was given no rows: one text or mapping, or what cannot be gone through.

    >>> shard = InMemoryShard([{"text": "one"}, {"text": "two"}])
    >>> len(shard), shard[1], shard.getsamples([1, 0])
    (2, {'text': 'two'}, [{'text': 'two'}, {'text': 'one'}])
    """

    __slots__ = ("_raw_bytes", "_rows")

    def __init__(self, rows: Iterable[Any]) -> None:
        try:
            # A text would give its letters as rows, a mapping its keys.
            found = None if isinstance(rows, str | bytes | bytearray | Mapping) else iter(rows)
        except TypeError:
            found = None
        if found is None:
            raise DatasetError(
                f"InMemoryShard: rows must be a list of rows, got {type(rows).__name__}; put rows "
                "into a list, such as InMemoryShard([{'text': 'one'}])"
            )
        self._rows: tuple[Any, ...] = tuple(found)
        self._raw_bytes: int | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Any:
        return self._rows[index]

    def __repr__(self) -> str:
        return f"InMemoryShard({len(self)} rows)"

    def getsamples(self, indices: Iterable[int]) -> list[Any]:
        """Give the rows at these positions, in the order asked for; the user's own objects."""
        return [self._rows[index] for index in indices]

    def close(self) -> None:
        """Do nothing: there is no file behind the rows."""

    @property
    def raw_bytes(self) -> int:
        """Bytes of all rows, estimated once from about 64 of them, evenly spaced."""
        if self._raw_bytes is None:
            step = max(1, len(self) // _SAMPLED)
            seen = self._rows[::step]
            total = sum(estimated_bytes(row) for row in seen)
            self._raw_bytes = round(total * len(self) / len(seen)) if seen else 0
        return self._raw_bytes


def check_shards(name: str, shards: object) -> None:
    """Refuse what cannot be the shards of a dataset in memory.

    Raises:
        DatasetError: it is no dict from 64-bit integers to ``InMemoryShard``.
    """
    if not isinstance(shards, Mapping):
        raise DatasetError(
            f"dataset {name!r}: shards must be a dict from shard id to InMemoryShard, got "
            f"{type(shards).__name__}; pass {{0: InMemoryShard(rows)}}"
        )
    for key, rows in shards.items():
        if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
            raise DatasetError(
                f"dataset {name!r}: shard ids must be int, got {key!r}; number the shards"
            )
        if not -(2**63) <= key < 2**63:
            raise DatasetError(
                f"dataset {name!r}: shard ids must be from -2^63 to 2^63 - 1, got one of "
                f"{int(key).bit_length()} bits; number the shards"
            )
        if not isinstance(rows, InMemoryShard):
            raise DatasetError(
                f"dataset {name!r}, shard {key}: rows must be an InMemoryShard, got a "
                f"{type(rows).__name__}; pass InMemoryShard(rows)"
            )


def estimated_bytes(value: object) -> int:
    """Estimate the bytes of a value as data, without Python's own overhead.

    >>> estimated_bytes({"text": "abc", "n": [1, 2]})
    24
    """
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value)
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(estimated_bytes(key) + estimated_bytes(item) for key, item in value.items())
    if isinstance(value, Sequence):
        if value and isinstance(value[0], (int, float)):
            return 8 * len(value)
        return sum(estimated_bytes(item) for item in value)
    return 8
