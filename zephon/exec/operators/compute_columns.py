"""Filter rows and compute columns by expressions; one evaluation for neighbouring steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon import expressions
from zephon.column_steps import ColumnStep, no_columns
from zephon.errors import DataError, ExecutionError
from zephon.exec.block import DROPPED, FILTERED
from zephon.exec.morsel import Morsel, token_view
from zephon.exec.operator import Operator, RowError
from zephon.io.list_kinds import in_words
from zephon.io.payload import Payload
from zephon.io.shaped_rows import ShapedRows
from zephon.planner import physical

_WAY_OUT = "mend or remove the row, or filter it out before"


class ComputeColumnsOp(Operator):
    """Runs column steps on the frame; references, columns, measures and whole rows go along.

    A row that was bad before, and is still there after the filters, is an error now.
    """

    def __init__(self, step: physical.ComputeColumns) -> None:
        """Keep what to compute, and what of it is used."""
        self._step = step
        self.label = " and ".join(dict.fromkeys(each.kind for each in step.steps))

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows that pass all filters, with the columns that later steps use.

        Raises:
            DataError: a bad row passed.
            RowError: Polars raised for a row; names the expression.
        """
        frame = _with_tokens(rows, self._step.tokens)
        made, kept = self._computed(frame)
        left = replace(rows, frame=None)
        if kept is not None:
            left = left.keep(kept, FILTERED if self._step.movable else DROPPED)
        if left.faults:
            raise DataError(left.faults[min(left.faults)])
        shape, payload = self._step.shape, left.payload
        if shape is not None:
            if shape.below and not frame.num_columns and payload is not None:
                _check_dicts(payload)  # else reading columns has done it
            payload = _shaped(shape, payload, made)
        columns = _moved(left.columns, dict(self._step.moved))
        kept = made.select(list(self._step.keep))
        return replace(left, columns=columns, frame=kept, payload=payload)

    def _computed(self, frame: pa.RecordBatch) -> tuple[pa.RecordBatch, NDArray[np.int64] | None]:
        try:
            return expressions.run(self._step.steps, frame)
        except ExecutionError as exc:
            row, problem = _first_bad(self._step.steps, frame, exc)
        raise RowError(row, str(problem), _WAY_OUT)  # without a cause: what the row holds is bad


def _first_bad(
    steps: tuple[ColumnStep, ...], frame: pa.RecordBatch, problem: ExecutionError
) -> tuple[int, ExecutionError]:
    """Find the first row that cannot be computed, by halves, and what is wrong with it."""
    start, stop = 0, frame.num_rows
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            expressions.run(steps, frame.slice(start, middle - start))
        except ExecutionError as exc:
            stop, problem = middle, exc
        else:
            start = middle
    try:
        expressions.run(steps, frame.slice(start, 1))
    except ExecutionError as exc:
        problem = exc
    return start, problem


def _shaped(shape: physical.Shape, payload: Payload | None, made: pa.RecordBatch) -> Payload:
    rows = made.num_rows
    source = ShapedRows(
        payload,
        over=shape.below,
        gone=shape.gone,
        new=dict(shape.renamed),
        computed=made.select(list(shape.computed)),
    )
    return Payload((source,), np.zeros(rows, np.int32), np.arange(rows, dtype=np.int64))


def _check_dicts(payload: Payload) -> None:
    """Refuse rows without fields now, since it is known now where they lie."""
    if payload.are_dicts:
        return
    for row in range(len(payload)):
        value = payload.row(row)
        if not isinstance(value, Mapping):
            wanted = "a row must be an object with fields to compute, rename or drop some"
            raise RowError(row, f"{wanted}, got {in_words(value)}", _WAY_OUT)


def _moved(columns: pa.RecordBatch, moved: Mapping[str, str | None]) -> pa.RecordBatch:
    """Give typed columns the names that their fields have now; the others are gone."""
    if moved.keys().isdisjoint(columns.schema.names):
        return columns
    names = [moved.get(name, name) for name in columns.schema.names]
    left = [number for number, name in enumerate(names) if name is not None]
    return columns.select(left).rename_columns([name for name in names if name is not None])


def _with_tokens(rows: Morsel, names: tuple[str, ...]) -> pa.RecordBatch:
    """Lay columns that tokenize made over the frame; a mask that it left out is 1 on each token."""
    frame = rows.frame if rows.frame is not None else no_columns(len(rows.refs))
    if not names:
        return frame
    columns = dict(zip(frame.schema.names, frame.columns, strict=True))
    for name in names:
        if name in rows.columns.schema.names:
            columns[name] = rows.columns.column(name)
        else:
            offsets = token_view(rows.columns.column("input_ids")).offsets
            ones = pa.array(np.ones(int(offsets[-1] - offsets[0]), np.int32))
            columns[name] = pa.LargeListArray.from_arrays(pa.array(offsets - offsets[0]), ones)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
