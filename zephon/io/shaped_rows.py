"""Whole rows after column steps: the row below, without some fields, with computed ones over it.

A row is put together when somebody looks at it; until then it costs the computed columns alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError
from zephon.io.formats.arrow_values import python_value, unheld
from zephon.io.list_kinds import in_words
from zephon.io.payload import Payload, RowSource

if TYPE_CHECKING:
    from zephon.batches.identity import SampleMeta


class ShapedRows(RowSource):
    """Rows that are dicts, each of what a row below has and of computed values.

    below: the rows below, one each; None: there are none. over: their fields are part of the rows;
    else they only say who the rows are. gone: fields of theirs that are left out. new: names of
    others, by those they have. computed: columns, one value a row; held, not copied.
    """

    __slots__ = ("_below", "_computed", "_gone", "_new", "_over")

    are_dicts = True

    def __init__(
        self,
        below: Payload | None,
        *,
        over: bool,
        gone: tuple[str, ...] = (),
        new: Mapping[str, str] | None = None,
        computed: pa.RecordBatch,
    ) -> None:
        self._below = below
        self._over = over
        self._gone = frozenset(gone)
        self._new = dict(new or {})
        self._computed = computed

    @property
    def has_metas(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the rows below say themselves who they are."""
        return self._below is not None and self._below.has_metas

    def row(self, index: int) -> dict[str, Any]:
        """Make one row.

        Raises:
            DataError: the row below cannot be decoded, is no object, or has a field of a name that
                another one gets.
        """
        below = None if not self._over or self._below is None else self._below.row(index)
        return self._shaped(below, index)

    def rows(self, indices: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Make some rows; those below are made together."""
        if not self._over or self._below is None:
            return [self._shaped(None, index) for index in indices.tolist()]
        below = self._below.take(indices).rows()
        return [self._shaped(*pair) for pair in zip(below, indices.tolist(), strict=True)]

    def place(self, index: int) -> str:
        """Say where the row below lies."""
        return "" if self._below is None else self._below.place(index)

    def meta(self, index: int) -> SampleMeta:
        """Give what the row below says of itself."""
        if self._below is None:
            raise NotImplementedError
        return self._below.meta(index)

    def metas_only(self) -> RowSource:
        """Give empty rows that still say who they are."""
        below = None if self._below is None else self._below.metas_only()
        return ShapedRows(below, over=False, computed=self._computed.select([]))

    def some(self, rows: NDArray[np.int64]) -> tuple[RowSource, NDArray[np.int64]]:
        """Copy the computed values of some rows, and the rows below as these copy."""
        kept, places = np.unique(rows, return_inverse=True)
        below = None if self._below is None else self._below.take(kept).copied()
        indices = pa.array(kept)
        computed = self._computed
        if computed.num_columns:
            arrays = [column.take(indices) for column in computed.columns]
            computed = pa.RecordBatch.from_arrays(arrays, names=computed.schema.names)
        few = ShapedRows(
            below, over=self._over, gone=tuple(self._gone), new=self._new, computed=computed
        )
        return few, places

    def _shaped(self, below: Any, index: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self._over:
            made = self._renamed(below, index)
        for name, column in zip(self._computed.schema.names, self._computed.columns, strict=True):
            try:
                made[name] = python_value(column[index])
            except (ValueError, OverflowError) as exc:
                problem = unheld(name, column[index], exc)
                raise DataError(f"{self._located(index)}{problem}") from exc
        return made

    def _renamed(self, below: Any, index: int) -> dict[str, Any]:
        if not isinstance(below, Mapping):
            raise DataError(
                f"{self._located(index)}a row must be an object with fields to compute, rename or "
                f"drop some, got {in_words(below)}; mend or remove the row"
            )
        new = self._new
        kept: list[tuple[str, Any]] = [
            (name, value) for name, value in below.items() if name not in self._gone
        ]
        made = {new.get(name, name): value for name, value in kept}
        if len(made) < len(kept):
            twice = next(name for old, name in new.items() if old in below and name in below)
            raise DataError(
                f"{self._located(index)}a row must have no field {twice!r}, since another is "
                "renamed to it, got one; rename to another name, or declare the field with "
                "schema= and drop it before"
            )
        return made

    def _located(self, index: int) -> str:
        place = self.place(index)
        return f"{place}: " if place else ""
