"""The rows of one batch as ``to_training`` reads them.

Fields are found by name, in the engine's columns first, then in payloads, then in the documents
that a payload lists as packed samples; always they come as one array of values and one of offsets.
Each error here names the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.batches.columns import BatchRows, TokenField, column_of, sample_ids
from zephon.batches.grid import Field
from zephon.batches.identity import PAD_TOKEN_ID, PLACEMENT, SampleId
from zephon.batches.packed_samples import PACKED_SAMPLES, PackedSamples, Pieces
from zephon.batches.payload_values import gather
from zephon.batches.record import SampleRecord
from zephon.batches.token_fields import TOKEN_FIELDS
from zephon.errors import DataError, PlanError, nearest
from zephon.tensors import is_array


@dataclass(frozen=True, kw_only=True)
class TrainingRows:
    """The rows of one batch.

    payloads: one a row; None: every field is in ``columns``.
    columns: the engine's batch, whose fields lie over the payloads; None: records.
    samples: the documents of each row, where payloads list them.
    tags: of each record's meta; () for columns.
    padding: pad tokens at the end of each row, shape [rows], int64; None: no row has any.
    pad_token_id: the batch's own; None: it has none.
    pads_to_longest: rows of unequal length are padded without being asked to.
    one_document: every row is known to be one document, and no packer made it.
    """

    ids: list[SampleId]
    payloads: Sequence[Any] | None
    columns: BatchRows | None
    samples: PackedSamples | None
    tags: Sequence[Mapping[str, Any]]
    padding: NDArray[np.int64] | None
    pad_token_id: int | None
    pads_to_longest: bool
    one_document: bool

    @classmethod
    def of_columns(cls, rows: BatchRows) -> TrainingRows:
        """Read an engine's batch: no record is made; payloads only where the batch kept some."""
        below = None if rows.packing == "sequences" else rows.payload
        payloads = None if below is None else [below.row(i) for i in range(len(rows))]
        if rows.fields and payloads is not None:
            payloads = [row if isinstance(row, Mapping) else {} for row in payloads]
        return cls(
            ids=sample_ids(rows),
            payloads=payloads if rows.fields else payloads or [{}] * len(rows),
            columns=rows if rows.fields else None,
            samples=None,
            tags=(),
            padding=rows.padding,
            pad_token_id=rows.pad_token_id,
            pads_to_longest=rows.pad_to_longest and rows.pad_token_id is not None,
            one_document=not rows.packed,
        )

    @classmethod
    def of_records(cls, records: Sequence[SampleRecord], made_by: BatchRows | None) -> TrainingRows:
        """Read records, whoever made them.

        Args:
            records: all of one batch.
            made_by: the engine's batch that they are the rows of; None: a user put them together.
        """
        tags = [record.meta.tags for record in records]
        payloads = [record.payload for record in records]
        longest = {tag.get(PAD_TOKEN_ID) for tag in tags}
        pads = longest | {(tag.get(PLACEMENT) or {}).get("pad_token_id") for tag in tags}
        pads.discard(None)
        return cls(
            ids=[record.meta.sample_id for record in records],
            payloads=payloads,
            columns=None,
            samples=_packed_samples(payloads),
            tags=tags,
            padding=_padding_of(records),
            pad_token_id=made_by.pad_token_id
            if made_by
            else pads.pop()
            if len(pads) == 1
            else None,
            pads_to_longest=len(longest) == 1 and None not in longest,
            one_document=made_by is not None and not made_by.packed,
        )

    def texts(self) -> list[str]:
        """Give the text of each row, "" where it has none."""
        if self.payloads is None:
            return [""] * len(self.ids)
        rows = self.payloads
        return [str(row.get("text", "")) if isinstance(row, Mapping) else "" for row in rows]

    def names(self) -> Iterable[str]:
        """List the fields of the first row."""
        found = dict.fromkeys(self.payloads[0]) if self.payloads else {}
        if self.samples is not None:
            del found[PACKED_SAMPLES]
            found |= dict.fromkeys(self.samples.names())
        if self.columns is not None:
            found |= dict.fromkeys((*self.columns.fields, *self.columns.masks))
        return found

    def tokens(self, wanted: str) -> tuple[str, TokenField]:
        """Find the tokens under a name or "auto"; the name that they have comes with them."""
        if self.columns is None and self._payloads_are_arrays():
            name, field = "payload", gather("payload", list(self.payloads or ()))
        else:
            name = self._detected() if wanted == "auto" else wanted
            field = self.field(name)
        if field is None:
            raise PlanError(
                f"to_training: no tokens field {name!r} in row 0; {nearest(name, self.names())}"
            )
        if not isinstance(field, TokenField) or field.values.ndim != 1:
            raise DataError(
                f"to_training: {name!r} must hold one sequence of token ids a row, got "
                f"{'single values' if not isinstance(field, TokenField) else 'nested sequences'}; "
                "pass tokens_field="
            )
        return name, field

    def field(self, name: str) -> Field | None:
        """Find a field of every row; None if no row has it."""
        column = None if self.columns is None else column_of(self.columns, name)
        if column is not None or not self.payloads or not isinstance(self.payloads[0], Mapping):
            return column
        present = self._values_above(name)
        if present is not None:
            return gather(name, present)
        return None if self.samples is None else self.samples.field(name)

    def values(self, name: str) -> list[Any] | None:
        """List a payload field as it is, one value a row; None if no row has it.

        Rows of ``pack_sequences`` give a list each, one value a document, None for a document
        that has none, such as one that was cut.
        """
        if self.columns is not None and name in (*self.columns.fields, *self.columns.masks):
            raise PlanError(
                f"to_training: collate_fields must name fields of the payload, got {name!r}, which "
                "has a value for every token; name it in extra_fields"
            )
        if self._below is not None:
            return self._below.values(name)
        if self.payloads and not isinstance(self.payloads[0], Mapping):
            return None
        above = self._values_above(name)
        if above is not None or self.samples is None:
            return above
        return self.samples.values(name)

    def lists_documents(self, tokens: str) -> bool:
        """Whether rows are lists of documents, as ``pack_sequences`` makes them."""
        if self.columns is not None:
            return self.columns.packing == "sequences"
        return self.samples is not None and tokens not in (self.payloads or ({},))[0]

    def placed(self, tokens: str) -> Pieces | None:
        """Give the documents that packing laid into each row; None if it is not known to have."""
        if self.columns is not None:
            spans = self.columns.spans
            packed = self.columns.packed
            return Pieces(lengths=spans.length, splits=spans.row_splits) if packed else None
        if self.samples is None or not self.lists_documents(tokens):
            return None
        return self.samples.pieces(tokens)

    def tagged(self, content: NDArray[np.int64]) -> Pieces | None:
        """Give the documents of each row as its meta says; None if one says nothing.

        Args:
            content: tokens of each row without padding, shape [rows].
        """
        if self.one_document:
            return Pieces(lengths=content, splits=np.arange(len(content) + 1))
        found = [(tag.get(PLACEMENT) or {}).get("lengths") for tag in self.tags]
        known = [lengths for lengths in found if lengths is not None]
        if len(known) < len(self.ids):
            return None
        lengths = np.concatenate([np.array(row, np.int64) for row in known])
        return Pieces(lengths=lengths, splits=np.cumsum([0, *map(len, known)]))

    @cached_property
    def _below(self) -> PackedSamples | None:
        """The source rows under the documents of an engine's rows of ``pack_sequences``."""
        rows = self.columns
        if rows is None or rows.packing != "sequences":
            return None
        splits, whole = rows.spans.row_splits.tolist(), rows.spans.are_whole().tolist()
        kept = rows.payload
        found = [
            kept.row(i) if kept is not None and all_of_it else {}
            for i, all_of_it in enumerate(whole)
        ]
        found = [row if isinstance(row, Mapping) else {} for row in found]
        return PackedSamples([found[a:b] for a, b in pairwise(splits)])

    def _values_above(self, name: str) -> list[Any] | None:
        """List a field of the payloads themselves; None if none has it."""
        rows = self.payloads or ()
        present = [row[name] for row in rows if name in row]
        if not present:
            return None
        if len(present) < len(rows):
            missing = next(i for i, row in enumerate(rows) if name not in row)
            raise DataError(
                f"to_training: {name!r} must be in every row or in none, and row {missing} has "
                f"none; its fields are {', '.join(sorted(map(str, rows[missing])))}"
            )
        return present

    def _detected(self) -> str:
        names = set(self.names())
        for name in TOKEN_FIELDS:
            if name in names:
                return name
        raise PlanError(
            f"to_training: tokens_field='auto' looks for {', '.join(TOKEN_FIELDS)}, and the rows "
            f"have {', '.join(sorted(map(str, names))) or 'no fields'}; tokenize first, or pass "
            "tokens_field="
        )

    def _payloads_are_arrays(self) -> bool:
        rows = self.payloads or ()
        if all(isinstance(row, Mapping) for row in rows):
            return False
        if all(is_array(row) for row in rows):
            return True
        kinds = ", ".join(dict.fromkeys(type(row).__name__ for row in rows))
        raise TypeError(
            f"to_training: payloads must be all dicts or all arrays, got {kinds}; "
            "make them dicts with map_transform"
        )


def _packed_samples(payloads: Sequence[Any]) -> PackedSamples | None:
    having = [isinstance(row, Mapping) and PACKED_SAMPLES in row for row in payloads]
    if not any(having):
        return None
    if not all(having):
        raise DataError(
            f"to_training: {PACKED_SAMPLES!r} must be in every row or in none, and row "
            f"{having.index(False)} has none; do not mix packed records with others in a batch"
        )
    return PackedSamples([row[PACKED_SAMPLES] for row in payloads])


def _padding_of(records: Sequence[SampleRecord]) -> NDArray[np.int64]:
    lengths = [record.meta.padding_length or 0 for record in records]
    for i, length in enumerate(lengths):
        if not isinstance(length, (int, np.integer)):
            raise DataError(
                f"to_training: padding_length of row {i} must be an int, got {length!r}; "
                "keep the packing tag that pack_flat gave"
            )
    return np.array(lengths, np.int64)
