"""The payload of a record that ``pack_sequences`` made: its documents, listed or joined.

``{"packed_samples": [document, ...]}`` as a rule, each document a dict; or one dict of arrays that
hold all documents end to end; or whatever a user's function made of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zephon.batches.columns import PackPayloads
from zephon.batches.identity import SampleId
from zephon.errors import DataError, ExecutionError
from zephon.tensors import joined

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
