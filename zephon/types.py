"""Records and batches: what comes out of a pipeline, and what goes into its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from zephon.batches import columns
from zephon.batches.columns import BatchRows, Spans, TokenField
from zephon.batches.identity import (
    ChunkId,
    ChunkOffset,
    ComponentId,
    ContributorRef,
    DatasetId,
    LaneId,
    LineageIndex,
    LineagePath,
    LocalSampleId,
    SampleCursor,
    SampleCursorKey,
    SampleId,
    SampleMeta,
    SampleNumeric,
    SamplePayload,
    SamplePayloadArray,
    SamplePayloadAtom,
    SamplePayloadDict,
    ShardId,
)
from zephon.batches.own_copies import own_copy
from zephon.batches.record import SampleRecord, is_unread
from zephon.batches.row_records import payload_of, record_of, records_of
from zephon.batches.training import training_dict
from zephon.batches.training_options import options_of
from zephon.batches.training_rows import TrainingRows
from zephon.devices import placed

__all__ = [
    "BatchRows",
    "ChunkId",
    "ChunkOffset",
    "ComponentId",
    "ContributorRef",
    "DatasetId",
    "LaneId",
    "LineageIndex",
    "LineagePath",
    "LocalSampleId",
    "SampleBatch",
    "SampleCursor",
    "SampleCursorKey",
    "SampleId",
    "SampleMeta",
    "SampleNumeric",
    "SamplePayload",
    "SamplePayloadArray",
    "SamplePayloadAtom",
    "SamplePayloadDict",
    "SampleRecord",
    "ShardId",
    "Spans",
    "StreamItem",
    "TokenField",
    "record_of",
]


Collated = TypeVar("Collated")


class SampleBatch:
    """Records that are trained on together.

    An engine's batch holds columns; its records are made when somebody asks for them. Once a
    payload was looked at, or a record got another meta, the batch is what its records say.
    Iterating gives the records in order. Batches are equal when their records are.

    Args:
        records: any number; the batch keeps them in this order.

    Raises:
        TypeError: something else than a record is among them.
    """

    __slots__ = ("__weakref__", "_built", "_mixture", "_pins", "_rows")

    def __init__(self, records: Iterable[SampleRecord]) -> None:
        self._rows: BatchRows | None = None
        self._mixture: Mapping[str, float] | None = None
        self._pins = False
        if not isinstance(records, Iterable):
            raise TypeError(
                f"SampleBatch: records must be a list of SampleRecord, got {records!r}; write "
                "SampleBatch([record])"
            )
        self._built: dict[str, tuple[SampleRecord, ...]] = {"records": tuple(records)}
        for i, record in enumerate(self._built["records"]):
            if not isinstance(record, SampleRecord):
                raise TypeError(
                    f"SampleBatch: item {i} must be a SampleRecord, got {type(record).__name__}; "
                    "write SampleRecord(meta, payload)"
                )

    @classmethod
    def from_rows(cls, rows: BatchRows) -> SampleBatch:
        """Wrap an engine's columns; nothing is copied, and no record is made."""
        batch = cls.__new__(cls)
        batch._rows = rows
        batch._built = {}
        batch._mixture = rows.target_mixture
        batch._pins = False
        return batch

    @property
    def records(self) -> tuple[SampleRecord, ...]:
        """The records, the same objects every time; payloads are built one by one when read."""
        if "records" not in self._built and self._rows is not None:
            made = tuple(records_of(self._rows))
            # One step, so that two threads that ask at once get the same records.
            self._built.setdefault("records", made)
        return self._built["records"]

    @property
    def lane_ids(self) -> list[LaneId]:
        """The lane of each record."""
        return self._of_each(lambda rows: rows.lane.tolist(), lambda meta: meta.lane_id)

    @property
    def chunk_ids(self) -> list[ChunkId]:
        """The chunk of each record."""
        return self._of_each(columns.chunk_ids, lambda meta: meta.chunk_id)

    @property
    def ids(self) -> list[SampleId]:
        """The sample of each record; of a packed one, the first that is in it."""
        return self._of_each(columns.sample_ids, lambda meta: meta.sample_id)

    @property
    def target_mixture(self) -> dict[str, float] | None:
        """The weights in force when the last record was finished, by component.

        They are those of that record's lane. None where nobody knows, as for a batch that was made
        of records.
        """
        return None if self._mixture is None else dict(self._mixture)

    @property
    def lineage_paths(self) -> list[LineagePath]:
        """The lineage of each record."""
        return self._of_each(columns.lineage_paths, lambda meta: meta.lineage)

    def to_training(
        self,
        *,
        tokens_field: str = "auto",
        return_labels: bool = False,
        dtype: Any = "auto",
        extra_fields: Iterable[str] = (),
        ignore_index: int = -100,
        rename_fields: Mapping[str, str] | None = None,
        flatten: bool = False,
        exclude_fields: Iterable[str] = (),
        return_num_valid_tokens: bool = False,
        return_loss_mask: bool = False,
        return_loss_weights: bool = False,
        return_cu_seqlens: bool = False,
        return_padding_mask: bool = False,
        eos_mask_loss: bool = False,
        eos_token_id: int | None = None,
        position_mode: str = "preserve",
        return_document_ids: bool = False,
        mask_document_boundaries: bool = False,
        pad_to: int | str | None = None,
        pad_token_id: int | None = None,
        collate_fields: Mapping[str, Callable[[list[Any]], Any]] | None = None,
        pin_memory: bool = False,
        device: Any = None,
        non_blocking: bool = False,
        **unknown: Any,
    ) -> dict[str, Any]:
        """Stack the records into what a training step takes.

        Args:
            tokens_field: the field with the token ids; "auto" takes the one that the pipeline
                packed or tokenized, else the first that is there of input_ids, tokens, token_ids,
                ids. The output is called input_ids all the same.
            return_labels: shift: input_ids lose their last token, labels their first. Pack to one
                token more than the model's context.
            dtype: of tokens, labels, positions and extra fields. "auto" is torch.long where torch
                is installed, else NumPy's int64; None gives nested lists.
            extra_fields: further fields of the payload to stack; with labels they are shifted like
                input_ids and must have a value for every token, or one a row.
            ignore_index: the label of what is not trained on: padding, what a payload's loss_mask
                leaves out, and with eos_mask_loss what follows ``eos_token_id``.
            rename_fields: old output names to new ones, after everything else is made.
            flatten: lay the rows of each array end to end.
            exclude_fields: outputs to leave out, by their new names; unknown ones are ignored.
            return_num_valid_tokens: add num_valid_tokens, the labels that count, an int.
            return_loss_mask: add loss_mask, 1.0 where a label counts, float32.
            return_loss_weights: add loss_weights, what the payload's loss_mask says of a label that
                counts, float32; 1.0 where rows have none.
            return_cu_seqlens: add cu_seqlens and max_seqlen, int32: the segment bounds of each
                row; with ``flatten`` of the whole batch. A segment is a document, the piece of one
                that lies in the row, or the padding at its end.
            return_padding_mask: add padding_mask, True on padding at the end of a row, bool.
            eos_mask_loss: mask labels whose input is ``eos_token_id``.
            eos_token_id: for ``eos_mask_loss``.
            position_mode: "preserve" hands on the payload's positions where there are any, and
                numbers the documents of ``pack_sequences``, each from 0; "sequence" numbers each
                row from 0.
            return_document_ids: add document_ids, int32: 0, 1, 2, ... for the documents of each
                row, with ``flatten`` of the whole batch, and -1 on padding.
            mask_document_boundaries: mask labels whose input is the last token of its document
                in the row, so that no document is trained to predict the next one's first token.
            pad_to: pad rows of unequal length to the longest ("longest") or to a number of tokens,
                counted like ``max_length``, before the shift. This padding is masked like that of
                ``pack_flat``; None refuses such rows.
            pad_token_id: what ``pad_to`` pads with; None: the batch's own, else 0.
            collate_fields: payload fields that no array holds (images, bytes, nested values), each
                with a function that makes the output of that name from a list of the rows' values,
                its own to change. Every row must have the field. A row of ``pack_sequences`` gives
                a list, one value a document, None for a document that has none, such as one that
                was cut.
            pin_memory: copy tensors into pinned memory, from which copies to an accelerator can run
                beside the program. Does nothing where there is none, and in workers of a
                ``DataLoader``, from which no memory comes back pinned.
            device: a torch device to hand tensors over on; those that are there are not copied.
                None: the CPU.
            non_blocking: do not wait for copies to the device; from pinned memory they then run
                beside the program. Torch keeps the pinned memory until they are done.
            unknown: refused, with the nearest name that is known.

        A loss_mask and positions of the data act where they were packed with the tokens, or where
        nothing was packed. With ``pack_sequences``, fields of the source rows that were not packed
        are there to be named in ``extra_fields`` and ``collate_fields``; a loss_mask that is made
        of them later acts beside "packed_samples" in the payload, one value a token of the row.

        Where documents begin is known from what packing placed. No token value moves a boundary,
        padding may have the id of the end of a document, and cu_seqlens, document_ids and the
        masks agree. Rows that nothing packed are one document each, or say it, as records that a
        user made do, by positions that are 0 where a document begins. Which of them
        keeps documents apart depends on the attention: cu_seqlens and max_seqlen for
        variable-length kernels, document_ids for a block mask (two tokens see each other if their
        ids are equal); positions alone do in neither.

        Returns:
            ids and texts (lists, one entry a row), and arrays of shape [rows, tokens], tokens one
            less with labels. Rows of unequal length are padded with ``pad_to``, or if the pipeline
            tokenized with padding="longest", their padding masked. input_ids and labels are
            contiguous and share no memory; without labels, arrays may be views of the batch.

        Raises:
            TypeError: an argument has no such name; payloads are neither all dicts nor all arrays;
                names were given as one string.
            ValueError: an argument does not fit, or a row does not: see the message.
        """
        options = options_of(
            {
                "tokens_field": tokens_field,
                "return_labels": return_labels,
                "dtype": dtype,
                "extra_fields": extra_fields,
                "ignore_index": ignore_index,
                "rename_fields": rename_fields,
                "flatten": flatten,
                "exclude_fields": exclude_fields,
                "return_num_valid_tokens": return_num_valid_tokens,
                "return_loss_mask": return_loss_mask,
                "return_loss_weights": return_loss_weights,
                "return_cu_seqlens": return_cu_seqlens,
                "return_padding_mask": return_padding_mask,
                "eos_mask_loss": eos_mask_loss,
                "eos_token_id": eos_token_id,
                "position_mode": position_mode,
                "return_document_ids": return_document_ids,
                "mask_document_boundaries": mask_document_boundaries,
                "pad_to": pad_to,
                "pad_token_id": pad_token_id,
                "collate_fields": collate_fields,
                "pin_memory": pin_memory,
                "device": device,
                "non_blocking": non_blocking,
            },
            unknown,
        )
        unchanged = self._unchanged()
        if unchanged is None:
            rows = TrainingRows.of_records(self.records)
        else:
            named = {*options.extra_fields, *({tokens_field} - {"auto"})}
            collated = options.collate_fields
            rows = TrainingRows.of_columns(unchanged, named=named, collated=collated)
        made = training_dict(rows, options)
        if not (options.pin_memory or self._pins or options.device is not None):
            return made
        return placed(
            made,
            pin_memory=options.pin_memory or self._pins,
            device=options.device,
            non_blocking=options.non_blocking,
        )

    def pin_memory(self) -> SampleBatch:
        """Return the same records as a batch of which ``to_training`` pins all tensors.

        ``DataLoader(pin_memory=True)`` calls it. No array is made before ``to_training``, so that
        is where memory is pinned, unless ``collate_fn`` calls it: then the loader's thread pins.
        Does nothing without an accelerator.
        """
        batch = SampleBatch.__new__(SampleBatch)
        batch._rows, batch._built, batch._mixture = self._rows, self._built, self._mixture
        batch._pins = True
        return batch

    def collate(self, function: Callable[[list[SamplePayload]], Collated]) -> Collated:
        """Call a function with the list of all payloads; return what it returns.

        For batches that hold no tokens, or whose payloads need more than ``to_training`` does.

        Args:
            function: takes the payloads in order, its own to keep and to change.

        Raises:
            TypeError: it cannot be called.
        """
        if not callable(function):
            raise TypeError(
                f"collate: function must take a list of payloads, got {function!r}; pass a "
                "function, such as torch.utils.data.default_collate"
            )
        rows = self._unchanged()
        if rows is None:
            return function([own_copy(record.payload) for record in self.records])
        return function([payload_of(rows, i) for i in range(len(rows))])

    def __len__(self) -> int:
        return len(self.records) if self._rows is None else len(self._rows)

    def __iter__(self) -> Iterator[SampleRecord]:
        return iter(self.records)

    def __eq__(self, other: object) -> bool:
        return self.records == other.records if isinstance(other, SampleBatch) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        lanes = ", ".join(map(str, sorted(set(self.lane_ids)))) or "none"
        return f"SampleBatch({len(self)} records, lanes: {lanes})"

    def __reduce__(self) -> tuple[Callable[..., SampleBatch], tuple[Any, ...]]:
        rows = self._unchanged()
        if rows is None or callable(rows.pack_payloads):  # a function may not travel
            return (_of_records, (self.records, self._mixture))
        return (SampleBatch.from_rows, (rows.alone(),))

    def _unchanged(self) -> BatchRows | None:
        """The engine's columns, while the records (if any were made) still say the same."""
        if self._rows is not None and not all(map(is_unread, self._built.get("records", ()))):
            return None
        return self._rows

    def _of_each(
        self, read: Callable[[BatchRows], list[Any]], look: Callable[[SampleMeta], Any]
    ) -> list[Any]:
        rows = self._unchanged()
        return [look(record.meta) for record in self.records] if rows is None else read(rows)


def _of_records(
    records: tuple[SampleRecord, ...], mixture: Mapping[str, float] | None
) -> SampleBatch:
    batch = SampleBatch(records)
    batch._mixture = mixture  # pyright: ignore[reportPrivateUsage]
    return batch


StreamItem: TypeAlias = SampleRecord | SampleBatch
