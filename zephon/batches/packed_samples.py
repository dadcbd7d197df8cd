"""The documents under "packed_samples" in the payloads of records, read for training.

Each record has a list of dicts, or one dict of arrays that hold all documents end to end; where
they come from, ``packed_payload`` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.batches.columns import TokenField
from zephon.batches.payload_values import laid_end_to_end
from zephon.batches.placements import Pieces
from zephon.errors import DataError
from zephon.tensors import numbers


class PackedSamples:
    """The packed samples of each record, read field by field.

    Args:
        rows: what each record has under "packed_samples".

    Raises:
        DataError: one of them is neither a list of dicts nor a dict.
    """

    def __init__(self, rows: Sequence[Any]) -> None:
        self._listed = not any(isinstance(row, Mapping) for row in rows)
        self._rows: list[Sequence[Mapping[str, Any]]] = []
        for i, row in enumerate(rows):
            documents = [row] if isinstance(row, Mapping) else row
            if not isinstance(documents, (list, tuple)) or not all(
                isinstance(document, Mapping) for document in documents
            ):
                raise DataError(
                    "to_training: 'packed_samples' must be a list of dicts, or a dict of arrays, "
                    f"and that of row {i} is {type(row).__name__}; let pack_payloads give one of "
                    "these, or call collate with a function of your own"
                )
            self._rows.append(documents)

    def names(self) -> list[str]:
        """List the fields of the first document."""
        first = next((row[0] for row in self._rows if row), {})
        return list(first)

    def field(self, name: str) -> TokenField | None:
        """Lay the documents of each row end to end; None if no document has the field.

        Raises:
            DataError: a document does not have it, or has something else than a list of numbers.
        """
        if not any(name in document for row in self._rows for document in row):
            return None
        places = [(i, at) for i, row in enumerate(self._rows) for at in range(len(row))]
        arrays = [self._array(name, i, at) for i, at in places]
        field = laid_end_to_end(name, arrays, lambda n: _where(*places[n]))
        return TokenField(field.values, field.offsets[self._splits()])

    def pieces(self, name: str) -> Pieces | None:
        """Give the length of each document, known by a field; None if they came joined."""
        if not self._listed:
            return None
        lengths = [len(document[name]) for row in self._rows for document in row]
        return Pieces(lengths=np.array(lengths, np.int64), splits=self._splits())

    def values(self, name: str) -> list[list[Any]]:
        """List a field of each row's documents, None for those without."""
        return [[document.get(name) for document in row] for row in self._rows]

    def _splits(self) -> NDArray[np.int64]:
        return np.cumsum([0, *map(len, self._rows)])

    def _array(self, name: str, i: int, at: int) -> NDArray[Any]:
        where = _where(i, at)
        document = self._rows[i][at]
        if name not in document:
            raise DataError(
                f"to_training: {name!r} must be in every document or in none, and {where} has "
                f"none; its fields are {', '.join(sorted(map(str, document)))}"
            )
        array = numbers(document[name])
        if array is None or not array.ndim:
            raise DataError(
                f"to_training: {name!r} of {where} must be a list of numbers, one a token, got "
                f"{type(document[name]).__name__}; leave the field out, or name it in "
                "collate_fields"
            )
        return array


def _where(i: int, at: int) -> str:
    return f"document {at} of row {i}"
