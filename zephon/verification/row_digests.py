"""What a delivered row is, as hashes: one of all that it holds, and a short one of each part."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from zephon.batches.identity import PAD_TOKEN_ID
from zephon.types import SampleBatch, SampleMeta, SampleRecord, StreamItem
from zephon.verification.row_bytes import bytes_of

_SHORT = 4
_META = tuple(each.name for each in dataclasses.fields(SampleMeta))
_ASKED = {
    "dtype": np.int64,
    "return_labels": True,
    "return_loss_mask": True,
    "return_padding_mask": True,
    "return_cu_seqlens": True,
    "return_document_ids": True,
}


@dataclass(frozen=True, slots=True)
class RowDigest:
    """A row.

    sha256: of its names and values, 32 bytes.
    names: of its parts: fields of the meta, of the payload, and outputs of ``to_training``.
    parts: the first bytes of the hash of each, in the same order.
    """

    sha256: bytes
    names: tuple[str, ...]
    parts: bytes

    def differing(self, other: RowDigest) -> list[str]:
        """Name the parts that are not those of another row."""
        mine, its = self._by_name(), other._by_name()
        return [name for name in {**mine, **its} if mine.get(name) != its.get(name)]

    def _by_name(self) -> dict[str, bytes]:
        steps = range(0, len(self.parts), _SHORT)
        return dict(zip(self.names, (self.parts[at : at + _SHORT] for at in steps), strict=True))


def digests_of(item: StreamItem) -> list[RowDigest]:
    """Hash the rows of what an iteration hands out, each as if it were delivered alone.

    Covered is what ``to_training`` makes of a row, if it holds tokens, with labels, masks,
    document ids and bounds of documents; and its record, the meta and every field of the payload.
    """
    batch = item if isinstance(item, SampleBatch) else SampleBatch([item])
    trained = list(_training(batch))  # first: a batch whose records were looked at is made of them
    return [_digest(record, arrays) for record, arrays in zip(batch.records, trained, strict=True)]


def _digest(record: SampleRecord, arrays: dict[str, Any]) -> RowDigest:
    meta, payload = record.meta, record.payload
    fields = payload if isinstance(payload, dict) else {"": payload}
    keys = (key if isinstance(key, str) else f"({key!r})" for key in fields)
    names = _names(tuple(keys), tuple(arrays))
    values = (*(getattr(meta, name) for name in _META), *fields.values(), *arrays.values())
    parts = [hashlib.sha256(bytes_of(value)).digest() for value in values]
    whole = hashlib.sha256(bytes_of(names) + b"".join(parts))
    return RowDigest(whole.digest(), names, b"".join(part[:_SHORT] for part in parts))


@functools.lru_cache(maxsize=256)
def _names(fields: tuple[str, ...], arrays: tuple[str, ...]) -> tuple[str, ...]:
    """Name the parts of a row; rows of the same parts share the names."""
    meta = (f"meta {name}" for name in _META)
    payload = (f"payload {name}" for name in fields)
    return (*meta, *payload, *(f"training {name}" for name in arrays))


def _training(batch: SampleBatch) -> Iterator[dict[str, Any]]:
    """Give what training takes of each row; nothing for those that hold no tokens."""
    records = [SampleBatch([record]) for record in batch]
    # the width of such a batch is that of its longest row
    widened = any(PAD_TOKEN_ID in record.meta.tags for record in batch)
    together = None if widened or len(records) == 1 else _arrays(batch)
    if together is not None:
        for i in range(len(batch)):
            yield {name: _row(name, values[i]) for name, values in together.items()}
        return
    for alone in records:
        arrays = _arrays(alone)
        yield {name: _row(name, values[0]) for name, values in (arrays or {}).items()}


def _arrays(batch: SampleBatch) -> dict[str, Any] | None:
    try:
        return batch.to_training(**_ASKED)
    except (TypeError, ValueError):
        return None  # rows without tokens, or of unequal lengths


def _row(name: str, values: Any) -> Any:
    """Give a row's output without what fills its line up to that of its neighbours."""
    if name != "cu_seqlens":
        return values
    return values[: int(np.argmax(values == values[-1])) + 1]
