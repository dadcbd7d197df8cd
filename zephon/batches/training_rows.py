"""The rows of one batch as ``to_training`` reads them.

Fields are found by name, in the engine's columns where these hold all that is asked for, else in
the payloads of records, and in the documents that a payload lists as packed samples; always they
come as one array of values and one of offsets. Records say the same as the columns that they were
made from, whether somebody looked at them, pickled them or put them into another batch: their tags
say how they were laid out. Each error here names the row.

The file is long because one class stands here that answers all that is asked of the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.batches.columns import BatchRows, TokenField, column_of, sample_ids
from zephon.batches.grid import Field
from zephon.batches.identity import PAD_TOKEN_ID, PLACEMENT, SampleId, SampleMeta
from zephon.batches.own_copies import own_copy
from zephon.batches.packed_payload import PACKED_SAMPLES
from zephon.batches.packed_samples import PackedSamples
from zephon.batches.payload_values import gather
from zephon.batches.placements import Pieces, Placements
from zephon.batches.record import SampleRecord
from zephon.batches.row_records import meta_of, payload_of, placement_of
from zephon.batches.token_fields import TOKEN_FIELDS
from zephon.errors import DataError, PlanError, nearest
from zephon.tensors import is_array


@dataclass(frozen=True, kw_only=True)
class TrainingRows:
    """The rows of one batch.

    columns: the engine's batch, where its columns are all that is needed; None: records.
    payloads: one a record; () for columns.
    samples: the documents of each row, where payloads list them.
    placements: how an engine laid out each record; empty for columns.
    padding: pad tokens at the end of each row, shape [rows], int64; None: no row has any.
    pad_token_id: the batch's own; None: it has none.
    pads_to_longest: rows of unequal length are padded without being asked to.
    fresh: nobody else has the payloads.
    """

    ids: list[SampleId]
    columns: BatchRows | None
    payloads: Sequence[Any]
    samples: PackedSamples | None
    placements: Placements
    padding: NDArray[np.int64] | None
    pad_token_id: int | None
    pads_to_longest: bool
    fresh: bool

    @classmethod
    def of_columns(
        cls, rows: BatchRows, *, named: Collection[str], collated: Collection[str]
    ) -> TrainingRows:
        """Read an engine's batch: no record is made where columns hold all that is asked for.

        Args:
            rows: of the batch.
            named: fields that the caller names: the token field but for "auto", and extra fields.
            collated: fields whose values a function gets as a record holds them.
        """
        if _laid_out_before(rows):
            metas = [meta_of(rows, i) for i in range(len(rows))]
            return cls._of(metas, [payload_of(rows, i) for i in range(len(rows))], fresh=True)
        rows = _as_lists_read(rows)
        columns = {*rows.fields, *rows.masks}
        kept = rows.payload is not None and rows.packing != "sequences"
        if not columns or kept or collated or callable(rows.pack_payloads) or (
            not columns.issuperset(named)
        ):  # fmt: skip
            return cls._of_unread(rows, as_held=not columns.isdisjoint(collated))
        return cls(
            ids=sample_ids(rows),
            columns=rows,
            payloads=(),
            samples=None,
            placements=Placements(()),
            padding=rows.padding,
            pad_token_id=rows.pad_token_id,
            pads_to_longest=_pads_to_longest(rows),
            fresh=True,
        )

    @classmethod
    def _of_unread(cls, rows: BatchRows, *, as_held: bool) -> TrainingRows:
        # Arrays are read more quickly than lists; only functions of the user see a container.
        if not as_held and rows.pack_payloads in (None, "keep_list"):
            rows = replace(rows, container="np")
        payloads = [payload_of(rows, i) for i in range(len(rows))]
        return cls(
            ids=sample_ids(rows),
            columns=None,
            payloads=payloads,
            samples=_packed_samples(payloads),
            placements=Placements([placement_of(rows, i) for i in range(len(rows))]),
            padding=rows.padding,
            pad_token_id=rows.pad_token_id,
            pads_to_longest=_pads_to_longest(rows),
            fresh=True,
        )

    @classmethod
    def of_records(cls, records: Sequence[SampleRecord]) -> TrainingRows:
        """Read records of one batch, whoever made them."""
        metas = [record.meta for record in records]
        return cls._of(metas, [record.payload for record in records], fresh=False)

    @classmethod
    def _of(
        cls, metas: Sequence[SampleMeta], payloads: Sequence[Any], *, fresh: bool
    ) -> TrainingRows:
        placements = Placements([meta.tags.get(PLACEMENT) or {} for meta in metas])
        longest = {meta.tags.get(PAD_TOKEN_ID) for meta in metas}
        pads = (longest | placements.pad_token_ids) - {None}
        return cls(
            ids=[meta.sample_id for meta in metas],
            columns=None,
            payloads=payloads,
            samples=_packed_samples(payloads),
            placements=placements,
            padding=_padding_of(metas),
            pad_token_id=pads.pop() if len(pads) == 1 else None,
            pads_to_longest=len(longest) == 1 and None not in longest,
            fresh=fresh,
        )

    def texts(self) -> list[str]:
        """Give the text of each row, "" where it has none."""
        if self.columns is not None:
            return [""] * len(self.ids)
        rows = self.payloads
        return [str(row.get("text", "")) if isinstance(row, Mapping) else "" for row in rows]

    def names(self) -> Iterable[str]:
        """List the fields of the first row."""
        if self.columns is not None:
            return (*self.columns.fields, *self.columns.masks)
        first = self.payloads[0] if self.payloads else {}
        found = dict.fromkeys(first) if isinstance(first, Mapping) else {}
        if self.samples is not None:
            del found[PACKED_SAMPLES]
            found |= dict.fromkeys(self.samples.names())
        return found

    def tokens(self, wanted: str) -> tuple[str, TokenField]:
        """Find the tokens under a name or "auto"; the name that they have comes with them."""
        if self._payloads_are_arrays():
            name, field = "payload", gather("payload", self.payloads)
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
        if self.columns is not None:
            return column_of(self.columns, name)
        above = self._values_above(name)
        if above is not None:
            return gather(name, above)
        return None if self.samples is None else self.samples.field(name)

    def acting(self, name: str) -> Field | None:
        """Find a field that acts without being named: "positions" or "loss_mask".

        A field of source rows that was not packed with the tokens does not: a document that was
        cut no longer has it.

        Raises:
            DataError: it has something else than one value a token.
        """
        left_out = self.samples is not None and self.placements.left_out(name)
        if left_out and self._values_above(name) is None:
            return None
        field = self.field(name)
        if isinstance(field, TokenField) and field.values.ndim != 1:
            raise DataError(
                f"to_training: {name!r} must have one value a token, and row 0 has values of shape "
                f"{field.values.shape[1:]}; give the field another name, or one value a token"
            )
        return field

    def values(self, name: str) -> list[Any]:
        """List a payload field as records hold it, one value a row, the caller's own.

        Rows of ``pack_sequences`` give a list each, one value a document, None for a document
        that has none, such as one that was cut.

        Raises:
            DataError: a row does not have it.
        """
        found = self._values_above(name)
        if found is None and self.samples is not None:
            found = self.samples.values(name)
        if found is None:
            known = nearest(name, map(str, self.names()))
            raise DataError(
                f"to_training: collate_fields must name fields that every row has, got {name!r}, "
                f"and row 0 has none; {known}"
            )
        return found if self.fresh else own_copy(found)

    def lists_documents(self, tokens: str) -> bool:
        """Whether rows are lists of documents, as ``pack_sequences`` makes them."""
        if self.columns is not None:
            return self.columns.packing == "sequences"
        return self.samples is not None and tokens not in self.payloads[0]

    def placed(self, tokens: str) -> Pieces | None:
        """Give the documents that packing laid into each row; None if it is not known to have."""
        if self.columns is not None:
            spans = self.columns.spans
            packed = self.columns.packed
            return Pieces(lengths=spans.length, splits=spans.row_splits) if packed else None
        if self.samples is None or not self.lists_documents(tokens):
            return None
        return self.samples.pieces(tokens)

    def tagged(self, tokens: str, content: NDArray[np.int64]) -> Pieces | None:
        """Give the documents of each row as its meta says; None if one says nothing.

        Args:
            tokens: the token field.
            content: tokens of each row without padding, shape [rows].
        """
        if self.columns is not None:
            return Pieces.one_a_row(content)
        known = self.placements.all_known
        if not known or (self.lists_documents(tokens) and not self.placements.all_packed):
            return None
        return self.placements.pieces(content)

    @property
    def all_packed(self) -> bool:
        """Whether packing made every row."""
        return self.placements.all_packed if self.columns is None else self.columns.packed

    def _values_above(self, name: str) -> list[Any] | None:
        """List a field of the payloads themselves; None if none has it."""
        rows = self.payloads
        if not rows or not isinstance(rows[0], Mapping):
            return None
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
        names = {*self.names()}
        own = self.placements if self.columns is None else self.columns
        for name in (own.tokens_field, *TOKEN_FIELDS):
            if name in names:
                return name
        raise PlanError(
            f"to_training: tokens_field='auto' looks for {', '.join(TOKEN_FIELDS)}, and the rows "
            f"have {', '.join(sorted(map(str, names))) or 'no fields'}; tokenize first, or pass "
            "tokens_field="
        )

    def _payloads_are_arrays(self) -> bool:
        rows = self.payloads
        if all(isinstance(row, Mapping) for row in rows):
            return False
        if all(is_array(row) for row in rows):
            return True
        kinds = ", ".join(dict.fromkeys(type(row).__name__ for row in rows))
        raise TypeError(
            f"to_training: payloads must be all dicts or all arrays, got {kinds}; "
            "store dicts in the dataset, or call collate with a function of your own"
        )


def _as_lists_read(rows: BatchRows) -> BatchRows:
    """Widen floats where records hold lists, from which no narrower type can be read."""
    if rows.container not in ("list", "tuple"):
        return rows
    wide = {
        name: TokenField(field.values.astype(np.float64), field.offsets)
        for name, field in rows.fields.items()
        if field.values.dtype in (np.float16, np.float32)
    }
    return replace(rows, fields={**rows.fields, **wide}) if wide else rows


def _pads_to_longest(rows: BatchRows) -> bool:
    return rows.pad_to_longest and rows.pad_token_id is not None


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


def _laid_out_before(rows: BatchRows) -> bool:
    """Whether rows are what an operator made of rows that an engine had laid out."""
    if rows.metas is None or rows.packed:
        return False
    return any(PLACEMENT in rows.metas.meta(i).tags for i in range(len(rows)))


def _padding_of(metas: Sequence[SampleMeta]) -> NDArray[np.int64]:
    lengths = [meta.padding_length or 0 for meta in metas]
    for i, length in enumerate(lengths):
        if not isinstance(length, (int, np.integer)):
            raise DataError(
                f"to_training: padding_length of row {i} must be an int, got {length!r}; "
                "keep the packing tag that pack_flat gave"
            )
    return np.array(lengths, np.int64)
