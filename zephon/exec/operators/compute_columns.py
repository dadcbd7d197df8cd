"""Filter rows and compute columns by expressions; one evaluation for neighbouring steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon import expressions
from zephon.column_steps import ColumnStep, no_columns
from zephon.errors import DataError, ExecutionError
from zephon.exec.block import DROPPED, FILTERED
from zephon.exec.morsel import Morsel, taken_rows, token_view
from zephon.exec.operator import Operator, RowError
from zephon.forks import polars_needed
from zephon.io.faults import NOTHING, WAY_OUT, Parts, RowFault, parted
from zephon.io.frames import joined_values
from zephon.io.list_kinds import in_words
from zephon.io.payload import Payload
from zephon.io.shaped_rows import ShapedRows
from zephon.planner import physical


class ComputeColumnsOp(Operator):
    """Runs column steps on the frame; references, columns, measures and whole rows go along.

    A row that was bad before, or for which Polars raises, is an error only if it passes all
    filters. Rows of which nothing is wrong are computed together, and so are those of which the
    same is unknown; rows for which Polars raises are found by halves.
    """

    def __init__(self, step: physical.ComputeColumns) -> None:
        """Keep what to compute, and what of it is used."""
        polars_needed()  # before rows come, of which one would be blamed
        self._step = step
        self.label = " and ".join(dict.fromkeys(each.kind for each in step.steps))

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows that pass all filters, with the columns that later steps use.

        Raises:
            DataError: a row that was bad before passed.
            RowError: Polars raised for a row that passed; names the expression.
        """
        frame = _with_tokens(rows, self._step.tokens)
        made, kept, faults = self._computed(frame, rows.faults)
        left = replace(rows, frame=None, faults=faults)
        if kept is not None:
            left = left.keep(kept, FILTERED if self._step.movable else DROPPED)
        shape, payload, faults = self._step.shape, left.payload, left.faults
        if shape is not None and shape.below and not frame.num_columns and payload is not None:
            faults = {**self._odd_rows(payload, faults), **faults}  # else reading found them
        if faults and not self._step.late_faults:
            raise _error(faults)
        return replace(
            left,
            columns=_moved(left.columns, dict(self._step.moved)),
            frame=made.select(list(self._step.keep)),
            payload=payload if shape is None else _shaped(shape, payload, made),
            faults=faults,
        )

    def _computed(
        self, frame: pa.RecordBatch, faults: Mapping[int, RowFault]
    ) -> tuple[pa.RecordBatch, NDArray[np.int64] | None, Mapping[int, RowFault]]:
        """Run the steps: what they made, which rows are left (None: all), and which are bad."""
        if not faults:
            try:
                found = expressions.run(self._step.steps, frame)
            except ExecutionError:
                pass  # of which row, and whether it counts, is found below
            else:
                return found.frame, found.kept, faults
        parts: list[tuple[NDArray[np.int64], pa.RecordBatch]] = []
        bad: dict[int, RowFault] = {}
        for names, at in _by_what_is_known(frame.num_rows, faults):
            for positions, found in _pieces(self._step.steps, frame, at, names):
                left = positions if found.kept is None else positions[found.kept]
                parts.append((left, found.frame))
                told = _faults(left, found, faults)
                bad.update(told)
                if told and not self._step.late_faults:
                    break  # an error, and no row after it matters
        kept = np.concatenate([left for left, _ in parts])
        order = np.argsort(kept)
        made = parts[0][1]
        if made.num_columns:
            arrays = [
                joined_values([made.column(name) for _, made in parts], order, field.type)
                for name, field in zip(made.schema.names, made.schema, strict=True)
            ]
            made = pa.RecordBatch.from_arrays(arrays, schema=made.schema)
        else:
            made = no_columns(len(kept))
        return made, kept[order], bad

    def _odd_rows(self, payload: Payload, faults: Mapping[int, RowFault]) -> dict[int, RowFault]:
        """Find rows without fields now, since it is known now where they lie."""
        kind = next(each.kind for each in self._step.steps if each.kind != "filter")
        found: dict[int, RowFault] = {}
        for row in () if payload.are_dicts else range(len(payload)):
            if row not in faults and not isinstance(value := payload.row(row), Mapping):
                wanted = "a row must be an object with fields to compute, rename or drop some"
                found[row] = RowFault(f"{wanted}, got {in_words(value)}", kind)
        return found


def _by_what_is_known(count: int, faults: Mapping[int, RowFault]) -> Parts:
    """Part rows: all of which everything is known, and others by what is unknown of them."""
    unknown = {row: fault.unknown for row, fault in faults.items() if fault.unknown}
    known = np.ones(count, np.bool_)
    known[[*unknown]] = False
    return [(NOTHING, np.flatnonzero(known)), *parted(unknown)]


def _pieces(
    steps: tuple[ColumnStep, ...],
    frame: pa.RecordBatch,
    at: NDArray[np.int64],
    unknown: frozenset[str],
) -> Iterator[tuple[NDArray[np.int64], expressions.Computed]]:
    """Compute some rows, together as far as nothing raises."""
    some = taken_rows(frame, pa.array(at), len(at))
    try:
        found = expressions.run(steps, some, unknown)
    except ExecutionError:
        if len(at) > 1:
            middle = len(at) // 2
            yield from _pieces(steps, frame, at[:middle], unknown)
            yield from _pieces(steps, frame, at[middle:], unknown)
            return
        found = expressions.run(steps, some, unknown, lenient=True)
    yield at, found


def _faults(
    left: NDArray[np.int64], found: expressions.Computed, before: Mapping[int, RowFault]
) -> dict[int, RowFault]:
    """Say what is wrong with those of some rows that are left, now and before."""
    told: dict[int, RowFault] = {}
    if found.problem is not None:
        step, problem = found.problem
        told = dict.fromkeys(left.tolist(), RowFault(" ".join(str(problem).split()), step))
    for row in left.tolist() if before else ():
        if row in before:
            told[row] = min(before[row], told.get(row, before[row]), key=lambda fault: fault.rank)
    return {row: replace(fault, unknown=found.unknown) for row, fault in told.items()}


def _error(faults: Mapping[int, RowFault]) -> Exception:
    row = min(faults)
    fault = faults[row]
    if fault.step is None:
        return DataError(fault.why)
    return RowError(row, fault.why, WAY_OUT, step=fault.step)


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
