"""A fused run of stateless steps: references in, one block a lane out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DataError, ExecutionError, ShardError, TokenizerError
from zephon.exec.block import Block, Buffer
from zephon.exec.morsel import Morsel, TokenView, number_view, token_view
from zephon.exec.operator import Operator, RowError
from zephon.exec.runners import Handle, InlineRunner, Runner
from zephon.io.payload import Payload
from zephon.planner.physical import RowLayout
from zephon.work.refs import Refs

_Made = tuple[Sequence[Refs], Morsel | None]  # None: a row made a stage fail

_NO_COLUMNS = pa.RecordBatch.from_arrays([], names=[])


class Segment:
    """All stateless steps of a plan; built once, called from any number of workers.

    Each stage, a fused run of operators, is a task of its own.

    A row that makes an operator fail spoils nothing but itself and what follows it in its lane:
    the block is halved until the row is found, the documents before it are kept, and its error
    waits in ``Block.failure`` until the lane gets there.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[Operator]],
        layout: RowLayout,
        locate: Callable[[Refs], str],
    ) -> None:
        self._stages = [tuple(stage) for stage in stages]
        self._layout = layout
        self._locate = locate

    def submit(self, runner: Runner, draw: Callable[[], Sequence[Refs]]) -> Handle[Sequence[Block]]:
        """Start the tasks that make blocks of some draws.

        Args:
            runner: runs the tasks, in the order in which they are submitted.
            draw: gives consecutive draws, one entry a lane or strand; called on a worker.
        """
        handle: Handle[Any] = runner.submit(partial(self._run_stage, 0, partial(_drawn, draw)))
        for number in range(1, len(self._stages)):
            handle = runner.submit(partial(self._run_stage, number, handle.result))
        return handle

    def run(self, lanes: Sequence[Refs]) -> Sequence[Block]:
        """Make blocks of the draws of several lanes on this thread.

        Args:
            lanes: consecutive draws, one entry a lane.
        """
        return self.submit(InlineRunner(), lambda: lanes).result()

    def _run_stage(self, number: int, source: Callable[[], _Made]) -> _Made | Sequence[Block]:
        """Take rows through one stage; after the last one, cut them into blocks."""
        lanes, rows = source()
        last = number + 1 == len(self._stages)
        if rows is not None:
            try:
                rows = self._apply(self._stages[number], rows)
                if last:
                    self._check(rows)
            except Exception:  # found again, and raised where its lane gets to it
                rows = None
        if not last:
            return lanes, rows
        if rows is None:
            return [self._block(*self._attempt(refs)) for refs in lanes]
        return self._split(rows, lanes)

    def _apply_all(self, refs: Refs) -> Morsel:
        rows = Morsel(refs, _NO_COLUMNS)
        for stage in self._stages:
            rows = self._apply(stage, rows)
        self._check(rows)
        return rows

    def _check(self, rows: Morsel) -> None:
        """Refuse documents that must not be packed: too long, or with a field of another length."""
        layout = self._layout
        if not layout.aligned and layout.max_document is None:
            return
        lengths = rows.measures.get("length")
        if layout.tokens_field is not None:
            tokens = np.diff(token_view(rows.columns.column(layout.tokens_field)).offsets)
            lengths = tokens if lengths is None else lengths
            for name in layout.aligned:
                self._check_aligned(name, rows, tokens)
        if layout.max_document is None or lengths is None:
            return
        longer = np.flatnonzero(lengths > layout.max_document)
        if len(longer):
            row = int(longer[0])
            raise DataError(
                f"{layout.max_document_call}: Sequence length {lengths[row]} exceeds max_length "
                f"{layout.max_document} on {self._place(rows, row)}; pass drop_oversized=True, or "
                "tokenize with split_long_samples"
            )

    def _check_aligned(self, name: str, rows: Morsel, tokens: NDArray[np.int64]) -> None:
        lengths = np.diff(number_view(rows.columns.column(name)).offsets)
        differs = np.flatnonzero(lengths != tokens)
        if len(differs):
            row = int(differs[0])
            raise DataError(
                f"{self._layout.max_document_call}: field {name!r} must have one value a token of "
                f"{self._layout.tokens_field!r}, on {self._place(rows, row)} there are "
                f"{tokens[row]} tokens and {lengths[row]} values; mend or remove the row, or leave "
                "the field out of packed rows with aligned_fields"
            )

    def _place(self, rows: Morsel, row: int) -> str:
        return self._locate(rows.refs.slice(row, row + 1))

    def _apply(self, operators: Sequence[Operator], rows: Morsel) -> Morsel:
        for operator in operators:
            try:
                rows = operator.run(rows)
            except (DataError, ShardError, ExecutionError):
                raise
            except RowError as exc:
                place, cause = self._place(rows, exc.row), exc.__cause__
                kind = DataError if cause is None else ExecutionError
                text = f"{operator.label}: {exc.problem} on {place}; {exc.way_out}"
                raise kind(text) from cause
            except Exception as exc:
                kind = TokenizerError if isinstance(exc, TokenizerError) else ExecutionError
                where = self._locate(rows.refs)
                raise kind(f"{operator.label} failed on {where}: {exc}") from exc
        return rows

    def _attempt(self, refs: Refs) -> tuple[Morsel, Exception | None]:
        """Make as many rows as can be made; return them and the first error."""
        try:
            return self._apply_all(refs), None
        except Exception as exc:
            if len(refs) <= 1:
                return self._apply_all(Refs.empty()), exc
        middle = len(refs) // 2
        left, failure = self._attempt(refs.slice(0, middle))
        if failure is not None:
            return left, failure
        right, failure = self._attempt(refs.slice(middle, len(refs)))
        return _join(left, right), failure

    def _split(self, rows: Morsel, lanes: Sequence[Refs]) -> list[Block]:
        """Cut the rows into blocks, one an entry, that share one buffer."""
        stops = [len(rows.refs)]
        if len(lanes) > 1:
            stops = _stops(rows.refs, lanes)
        offsets, buffer = self._tokens(rows)
        blocks, first = [], 0
        for stop in stops:
            payload = self._kept(rows)
            if payload is not None and len(stops) > 1:
                payload = payload.take(np.arange(first, stop))
            refs = rows.refs.slice(first, stop)
            measures = {name: found[first:stop] for name, found in rows.measures.items()}
            part = offsets[first : stop + 1]
            blocks.append(Block(refs, buffer, part, payload, measures=measures))
            first = stop
        return blocks

    def _block(self, rows: Morsel, failure: Exception | None) -> Block:
        offsets, buffer = self._tokens(rows)
        return Block(rows.refs, buffer, offsets, self._kept(rows), failure, rows.measures)

    def _kept(self, rows: Morsel) -> Payload | None:
        """Give whole rows where they are delivered; they may have been read to be measured."""
        return rows.payload if self._layout.payload else None

    def _tokens(self, rows: Morsel) -> tuple[NDArray[np.int64], Buffer]:
        """View the token columns; rows without tokens have documents of none."""
        layout = self._layout
        if layout.tokens_field is None:
            return np.zeros(len(rows.refs) + 1, np.int64), Buffer({}, 0, 0)
        views = {name: number_view(rows.columns.column(name)) for name in layout.aligned}
        views[layout.tokens_field] = token_view(rows.columns.column(layout.tokens_field))
        offsets = views[layout.tokens_field].offsets
        size = int(offsets[-1] - offsets[0])
        columns = {name: _from(view, int(offsets[0])) for name, view in views.items()}
        return offsets, Buffer(columns, size, size)


def _drawn(draw: Callable[[], Sequence[Refs]]) -> _Made:
    lanes = draw()
    return lanes, Morsel(Refs.concat(lanes), _NO_COLUMNS)


def _from(view: TokenView, first: int) -> NDArray[Any]:
    """Return a column's values such that its first document begins at ``first``."""
    shift = int(view.offsets[0]) - first
    if shift == 0:
        return view.values
    if shift > 0:
        return view.values[shift:]
    return np.concatenate([np.zeros(-shift, view.values.dtype), view.values])


def _stops(refs: Refs, entries: Sequence[Refs]) -> list[int]:
    """Return where the rows of each entry end; entries stand in order and may have none.

    No two entries are of one lane, or each is of one component and no two of one strand.
    """
    filled = [number for number, entry in enumerate(entries) if len(entry)]
    keys = np.array([int(entries[number].lane[0]) for number in filled], np.int64)
    found = refs.lane
    if len(np.unique(keys)) < len(keys):
        width = int(keys.max()) + 1
        keys += width * np.array([int(entries[number].component[0]) for number in filled])
        found = found + width * refs.component.astype(np.int64)
    rank = np.zeros(int(keys.max(initial=0)) + 1, np.int64)
    rank[keys] = filled
    return np.searchsorted(rank[found], np.arange(1, len(entries) + 1)).tolist()


def _join(left: Morsel, right: Morsel) -> Morsel:
    columns = pa.Table.from_batches([left.columns, right.columns]).combine_chunks().to_batches()
    payloads = [m.payload for m in (left, right) if m.payload is not None]
    return Morsel(
        Refs.concat([left.refs, right.refs]),
        columns[0] if columns else left.columns,
        Payload.concat(payloads) if payloads else None,
        {n: np.concatenate([left.measures[n], right.measures[n]]) for n in left.measures},
    )
