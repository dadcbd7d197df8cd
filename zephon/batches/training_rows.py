"""The rows of one batch as ``to_training`` reads them, and the matrix that they lie in.

Fields are found by name, in the engine's columns first, then in payloads; either way they come as
one array of values and one of offsets. Each error here names the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zephon import collate
from zephon.batches.columns import BatchRows, TokenField, column_of, sample_ids
from zephon.batches.identity import PAD_TOKEN_ID, SampleId
from zephon.batches.record import SampleRecord
from zephon.batches.token_fields import TOKEN_FIELDS
from zephon.errors import DataError, PlanError, nearest
from zephon.tensors import is_array, numbers

Field: TypeAlias = TokenField | NDArray[Any]  # the array: one value a row


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """The rows of one batch.

    payloads: one a row; None: every field is in ``columns``.
    columns: the engine's batch, whose fields lie over the payloads; None: records of a user.
    padding: pad tokens at the end of each row, shape [rows], int64; None: no row has any.
    pad_token_id: pads rows of unequal length; None: such rows are refused.
    """

    ids: list[SampleId]
    payloads: Sequence[Any] | None
    columns: BatchRows | None
    padding: NDArray[np.int64] | None
    pad_token_id: int | None

    @classmethod
    def of_columns(cls, rows: BatchRows) -> TrainingRows:
        """Read an engine's batch: no record is made; payloads only where the batch kept some."""
        below = rows.payload
        payloads = None if below is None else [below.row(i) for i in range(len(rows))]
        if rows.fields and payloads is not None:
            payloads = [row if isinstance(row, Mapping) else {} for row in payloads]
        return cls(
            ids=sample_ids(rows),
            payloads=payloads if rows.fields else payloads or [{}] * len(rows),
            columns=rows if rows.fields else None,
            padding=rows.padding,
            pad_token_id=rows.pad_token_id if rows.pad_to_longest else None,
        )

    @classmethod
    def of_records(cls, records: Sequence[SampleRecord]) -> TrainingRows:
        """Read records, whoever made them."""
        pads = {record.meta.tags.get(PAD_TOKEN_ID) for record in records}
        return cls(
            ids=[record.meta.sample_id for record in records],
            payloads=[record.payload for record in records],
            columns=None,
            padding=_padding_of(records),
            pad_token_id=pads.pop() if len(pads) == 1 else None,
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
        if self.columns is not None:
            found |= dict.fromkeys((*self.columns.fields, *self.columns.masks))
        return found

    def tokens(self, wanted: str) -> tuple[str, TokenField]:
        """Find the tokens under a name or "auto"; the name that they have comes with them."""
        if self.columns is None and self._payloads_are_arrays():
            name, field = "payload", _gather("payload", list(self.payloads or ()))
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
        present = [row[name] for row in self.payloads if name in row]
        if not present:
            return None
        if len(present) < len(self.payloads):
            missing = next(i for i, row in enumerate(self.payloads) if name not in row)
            raise DataError(
                f"to_training: {name!r} must be in every row or in none, and row {missing} has "
                f"none; its fields are {', '.join(sorted(map(str, self.payloads[missing])))}"
            )
        return _gather(name, present)

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


class Grid:
    """How the rows of one batch lie in a matrix, as wide as their longest.

    width: tokens in the longest row.
    lengths: tokens of each row, its packed padding included; int64, shape [rows].
    missing: columns without a token at the end of each row; None: no row is shorter than another.
    trailing: columns of padding at the end of each row, of either kind; None: there is none.
    """

    __slots__ = ("_offsets", "lengths", "missing", "trailing", "width")

    def __init__(self, name: str, tokens: TokenField, rows: TrainingRows) -> None:
        self._offsets = tokens.offsets
        self.lengths = tokens.offsets[1:] - tokens.offsets[:-1]
        self.width = int(self.lengths.max())
        self.missing = None
        if int(self.lengths.min()) != self.width:
            if rows.pad_token_id is None:
                refuse_unequal(name, self.lengths)
            self.missing = self.width - self.lengths
        self.trailing = self.missing
        if rows.padding is not None and rows.padding.any():
            self._check_padding(rows.padding)
            self.trailing = rows.padding if self.missing is None else rows.padding + self.missing

    def matrix(self, name: str, field: Field, fill: int = 0) -> NDArray[Any]:
        """Lay out a field that has a value for every token; a view where no row is padded."""
        if not isinstance(field, TokenField):
            self._refuse_length(name, 0, "a single value")
        if field.offsets is not self._offsets:  # an engine's fields share one array of offsets
            lengths = field.offsets[1:] - field.offsets[:-1]
            differs = lengths != self.lengths
            if differs.any():
                i = int(differs.argmax())
                self._refuse_length(name, i, f"{lengths[i]} values")
        if self.missing is None:
            return collate.stack(field.values, field.offsets)
        return collate.pad_rows(field.values, field.offsets, fill)

    def tail(self) -> NDArray[np.bool_]:
        """Mark the padding: bool, shape [rows, width]."""
        if self.trailing is None:
            return np.zeros((len(self.lengths), self.width), np.bool_)
        return collate.tail(self.width, self.trailing)

    def _check_padding(self, padding: NDArray[np.int64]) -> None:
        outside = (padding < 0) | (padding > self.lengths)
        if outside.any():
            i = int(outside.argmax())
            raise DataError(
                f"to_training: padding_length of row {i} must be 0 to {self.lengths[i]}, which is "
                f"the row's length, got {padding[i]}; keep the packing tag that pack_flat gave"
            )

    def _refuse_length(self, name: str, i: int, came: str) -> NoReturn:
        raise DataError(
            f"to_training: {name!r} must have one value a token, and row {i} has "
            f"{self.lengths[i]} tokens and {came}; make it as long as the tokens"
        )


def refuse_unequal(name: str, lengths: NDArray[np.int64]) -> NoReturn:
    """Refuse rows that no matrix holds, naming two of them."""
    one, other = collate.unequal_rows(lengths) or (0, 0)
    raise DataError(
        f"to_training: {name!r} must be as long in every row, got {lengths[one]} in row {one} and "
        f"{lengths[other]} in row {other}; pack with pack_flat, or tokenize with padding='longest'"
    )


def _padding_of(records: Sequence[SampleRecord]) -> NDArray[np.int64]:
    lengths = [record.meta.padding_length or 0 for record in records]
    for i, length in enumerate(lengths):
        if not isinstance(length, (int, np.integer)):
            raise DataError(
                f"to_training: padding_length of row {i} must be an int, got {length!r}; "
                "keep the packing tag that pack_flat gave"
            )
    return np.array(lengths, np.int64)


def _gather(name: str, values: Sequence[Any]) -> Field:
    """Turn the values of one field, one a row, into arrays of numbers. Copies."""
    rows: list[NDArray[Any]] = []
    for i, value in enumerate(values):
        array = numbers(value)
        if array is None:
            raise DataError(
                f"to_training: {name!r} of row {i} must hold numbers of at most 64 bits in one "
                f"regular array, got {_excerpt(value)}; leave the field out, or convert it with "
                "map_transform"
            )
        rows.append(array)
        if array.shape[1:] != rows[0].shape[1:] or array.ndim != rows[0].ndim:
            raise DataError(
                f"to_training: {name!r} must have one shape beside its length, got "
                f"{rows[0].shape} in row 0 and {array.shape} in row {i}; make them alike"
            )
    return np.stack(rows) if not rows[0].ndim else TokenField(*collate.concatenate(rows))


def _excerpt(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"
