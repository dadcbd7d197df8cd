"""The payload of a record that ``pack_sequences`` made: its documents, listed or joined.

``{"packed_samples": [document, ...]}`` as a rule, each document a dict; or one dict of arrays that
hold all documents end to end; or whatever a user's function made of the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon import collate
from zephon.batches.columns import PackPayloads, TokenField
from zephon.batches.identity import SampleId
from zephon.errors import DataError, ExecutionError
from zephon.tensors import joined, numbers

PACKED_SAMPLES = "packed_samples"

_JOINED = {"numpy_array": ("np", "NumPy arrays"), "torch_tensor": ("pt", "torch tensors")}


def pack_documents(
    documents: list[dict[str, Any]], how: PackPayloads, sample_ids: Sequence[SampleId]
) -> Any:
    """Make of a row's documents what ``pack_payloads`` asks for.

    Args:
        documents: the caller's own.
        how: a function of the list, "keep_list", "numpy_array" or "torch_tensor"; the last two lay
            each field of all documents end to end.
        sample_ids: of each document, for messages.

    Raises:
        ExecutionError: the function failed; the message names the row by its first sample.
        TypeError: a field of a document is no such array.
        DataError: documents differ in their fields, or arrays do not go together.
    """
    if callable(how):
        try:
            return how(documents)
        except Exception as error:
            raise ExecutionError(
                "pack_sequences: pack_payloads failed on the row that begins with sample "
                f"{sample_ids[0]}: {type(error).__name__}: {error}"
            ) from error
    if how == "keep_list":
        return documents
    container, wanted = _JOINED[how]
    for sample_id, document in zip(sample_ids, documents, strict=True):
        if document.keys() != documents[0].keys():
            raise DataError(
                f"pack_sequences: pack_payloads={how!r} needs the same fields in every document of "
                f"a row, and sample {sample_ids[0]} has {', '.join(sorted(documents[0]))}, sample "
                f"{sample_id} has {', '.join(sorted(document))}; pass pack_payloads='keep_list'"
            )
    made: dict[str, Any] = {}
    for name in documents[0]:
        try:
            made[name] = joined([document[name] for document in documents], container)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else DataError
            raise kind(
                f"pack_sequences: pack_payloads={how!r} needs {wanted} that can be laid end to end "
                f"in every field, got {error} in {name!r} of the row that begins with sample "
                f"{sample_ids[0]}; leave the field out, or pass pack_payloads='keep_list'"
            ) from error
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The documents that lie end to end in each row: row r has splits[r] to splits[r + 1].

    lengths: tokens of each, int64, shape [pieces]. splits: int64, shape [rows + 1].
    """

    lengths: NDArray[np.int64]
    splits: NDArray[np.int64]


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
        arrays = [
            self._array(name, i, at)
            for i, row in enumerate(self._rows)
            for at in range(len(row))
        ]  # fmt: skip
        for array in arrays:
            if array.shape[1:] != arrays[0].shape[1:]:
                raise DataError(
                    f"to_training: {name!r} must have one shape beside its length, got "
                    f"{arrays[0].shape} and {array.shape}; make the documents alike"
                )
        values, ends = collate.concatenate(arrays)
        return TokenField(values, ends[self._splits()])

    def pieces(self, name: str) -> Pieces | None:
        """Give the length of each document, known by a field; None if they came joined."""
        if not self._listed:
            return None
        lengths = [len(document[name]) for row in self._rows for document in row]
        return Pieces(lengths=np.array(lengths, np.int64), splits=self._splits())

    def values(self, name: str) -> list[list[Any]] | None:
        """List a field of each row's documents, None for those without; None if all are."""
        if not any(name in document for row in self._rows for document in row):
            return None
        return [[document.get(name) for document in row] for row in self._rows]

    def _splits(self) -> NDArray[np.int64]:
        return np.cumsum([0, *map(len, self._rows)])

    def _array(self, name: str, i: int, at: int) -> NDArray[Any]:
        where = f"document {at} of row {i}"
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
