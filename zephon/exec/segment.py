"""A fused run of stateless steps: references in, one block a lane out.

The file is long because what joins the draws of lanes and what parts their blocks again fit
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.exec.block import Block, Buffer, Lost
from zephon.exec.closing import close_all
from zephon.exec.forgiving import Forgiving
from zephon.exec.morsel import Morsel, TokenView, number_view, token_view
from zephon.exec.operator import Operator, RowError
from zephon.exec.row_policies import RowPolicies
from zephon.exec.runners import Handle, InlineRunner, Runner
from zephon.io.offsets import is_ascending
from zephon.io.payload import Payload
from zephon.planner.physical import RowLayout
from zephon.work.refs import Refs


class Window(NamedTuple):
    """Draws of a lane or strand that are run together, and which of them are wanted.

    refs: of whole windows of draws. first, stop: the draws whose documents are kept.
    """

    refs: Refs
    first: int
    stop: int


Drawn = Sequence[Refs | Window]
_Made = tuple[Drawn, Morsel | None]  # None: a row made a stage fail

_RAISE = RowPolicies()
_NO_COLUMNS = pa.RecordBatch.from_arrays([], names=[])


class Segment:
    """All stateless steps of a plan; built once, called from any number of workers.

    Each stage, a fused run of operators, is a task of its own.

    A row that makes an operator fail spoils nothing but itself and what follows it in its lane:
    the block is halved until the row is found, the documents before it are kept, and its error
    waits in ``Block.failure`` until the lane gets there. One that its dataset lets go is lost.

    Args:
        stages: operators that run as one task each.
        layout: which fields documents have.
        locate: names the first of some rows.
        window: draws of a lane or strand that must be run together, since an operator sees them as
            a group; such a group is not halved.
        policies: what becomes of bad rows.
        of_records: rows are what an operator of the user made.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[Operator]],
        layout: RowLayout,
        locate: Callable[[Refs], str],
        *,
        window: int = 1,
        policies: RowPolicies = _RAISE,
        of_records: bool = False,
    ) -> None:
        self._grouped = False  # rows that leave are made of several, maybe
        self._stages: list[list[tuple[Operator, bool]]] = []
        for stage in stages:
            steps = []
            for operator in stage:
                self._grouped |= operator.sees_groups
                steps.append((operator, self._grouped))
            self._stages.append(steps)
        self._layout = layout
        self._forgiving = Forgiving(locate, policies, of_records=of_records)
        self.window = window

    def submit(self, runner: Runner, draw: Callable[[], Drawn]) -> Handle[Sequence[Block]]:
        """Start the tasks that make blocks of some draws.

        Args:
            runner: runs the tasks, in the order in which they are submitted.
            draw: gives consecutive draws, one entry a lane or strand; called on a worker.
        """
        handle: Handle[Any] = runner.submit(partial(self._run_stage, 0, partial(_drawn, draw)))
        for number in range(1, len(self._stages)):
            handle = runner.submit(partial(self._run_stage, number, handle.result))
        return handle

    def run(self, lanes: Drawn) -> Sequence[Block]:
        """Make blocks of the draws of several lanes on this thread.

        Args:
            lanes: consecutive draws, one entry a lane.
        """
        return self.submit(InlineRunner(), lambda: lanes).result()

    def close(self) -> None:
        """Let operators let go of what they built."""
        close_all([operator.close for stage in self._stages for operator, _ in stage])

    def run_rows(self, rows: Morsel) -> Block:
        """Make a block of rows that are there already, on this thread."""
        try:
            made, failure = self._applied(rows), None
        except Exception:  # found again, and kept for when its lane gets to it
            made, failure = self._attempt(rows)
        return self._block(made, failure)

    def _run_stage(self, number: int, source: Callable[[], _Made]) -> _Made | Sequence[Block]:
        """Take rows through one stage; after the last one, cut them into blocks."""
        lanes, rows = source()
        last = number + 1 == len(self._stages)
        if rows is not None:
            try:
                rows = self._apply(self._stages[number], rows)
                if last:
                    rows = self._checked(rows)
            except Exception:  # found again, and raised where its lane gets to it
                rows = None
        if not last:
            return lanes, rows
        if rows is None:
            attempts = [self._attempt(Morsel(refs_of(entry), _NO_COLUMNS)) for entry in lanes]
            blocks = [self._block(*attempt) for attempt in attempts]
        else:
            blocks = self._split(rows, [refs_of(entry) for entry in lanes])
        return [
            _cut(block, entry) if isinstance(entry, Window) else block
            for block, entry in zip(blocks, lanes, strict=True)
        ]

    def _applied(self, rows: Morsel) -> Morsel:
        for stage in self._stages:
            rows = self._apply(stage, rows)
        return self._checked(rows)

    def _checked(self, rows: Morsel) -> Morsel:
        """Refuse documents that must not be packed: too long, or with a field of another length."""
        layout = self._layout
        if not layout.aligned and layout.max_document is None:
            return rows
        lengths = rows.measures.get("length")
        errors: list[RowError] = []
        if layout.tokens_field is not None:
            tokens = np.diff(token_view(rows.columns.column(layout.tokens_field)).offsets)
            lengths = tokens if lengths is None else lengths
            for name in layout.aligned:
                errors += self._misaligned(name, rows, tokens)
        if layout.max_document is not None and lengths is not None:
            for row in np.flatnonzero(lengths > layout.max_document).tolist():
                problem = f"Sequence length {lengths[row]} exceeds max_length {layout.max_document}"
                way_out = "pass drop_oversized=True, or tokenize with split_long_samples"
                errors.append(RowError(row, problem, way_out, step=layout.max_document_call))
        if not errors:
            return rows
        errors.sort(key=lambda error: error.row)
        return self._forgiving.without(rows, errors, grouped=self._grouped)

    def _misaligned(self, name: str, rows: Morsel, tokens: NDArray[np.int64]) -> Iterator[RowError]:
        layout = self._layout
        lengths = np.diff(number_view(rows.columns.column(name)).offsets)
        for row in np.flatnonzero(lengths != tokens).tolist():
            problem = (
                f"field {name!r} must have one value a token of {layout.tokens_field!r}, got "
                f"{tokens[row]} tokens and {lengths[row]} values"
            )
            way_out = (
                "mend or remove the row, or leave the field out of packed rows with aligned_fields"
            )
            yield RowError(row, problem, way_out, step=layout.max_document_call)

    def _apply(self, operators: Sequence[tuple[Operator, bool]], rows: Morsel) -> Morsel:
        for operator, grouped in operators:
            rows = self._forgiving.run(operator, rows, grouped=grouped)
        return rows

    def _attempt(self, rows: Morsel) -> tuple[Morsel, Exception | None]:
        """Make as many rows as can be made; return them and the first error."""
        try:
            return self._applied(rows), None
        except Exception as exc:
            middle = self._middle(rows.refs)
            if not middle:
                return self._applied(rows.part(0, 0)), exc
        left, failure = self._attempt(rows.part(0, middle))
        if failure is not None:
            return left, failure
        right, failure = self._attempt(rows.part(middle, len(rows.refs)))
        return _join(left, right), failure

    def _middle(self, refs: Refs) -> int:
        """Say where to halve rows, at the edge of a window; 0: they cannot be halved."""
        middle = len(refs) // 2
        if self.window == 1 or not middle:
            return middle
        windows = refs.ordinal // self.window
        edges = np.flatnonzero(np.diff(windows)) + 1
        return int(edges[np.abs(edges - middle).argmin()]) if len(edges) else 0

    def _split(self, rows: Morsel, lanes: Sequence[Refs]) -> list[Block]:
        """Cut the rows into blocks, one an entry, that share one buffer."""
        stops = [len(rows.refs)]
        if len(lanes) > 1:
            stops = np.searchsorted(_ranks(rows.refs, lanes), np.arange(1, len(lanes) + 1)).tolist()
        lost = _lost_of_each(rows.lost, lanes)
        offsets, buffer = self._tokens(rows)
        blocks, first = [], 0
        for stop, gone in zip(stops, lost, strict=True):
            payload = self._kept(rows)
            if payload is not None and len(stops) > 1:
                payload = payload.take(np.arange(first, stop))
            refs = rows.refs.slice(first, stop)
            measures = {name: found[first:stop] for name, found in rows.measures.items()}
            part = offsets[first : stop + 1]
            blocks.append(Block(refs, buffer, part, payload, measures=measures, lost=gone))
            first = stop
        return blocks

    def _block(self, rows: Morsel, failure: Exception | None) -> Block:
        offsets, buffer = self._tokens(rows)
        kept = self._kept(rows)
        (lost,) = _lost_of_each(rows.lost, [rows.refs])
        return Block(rows.refs, buffer, offsets, kept, failure, rows.measures, lost)

    def _kept(self, rows: Morsel) -> Payload | None:
        """Give whole rows where they are delivered; they may have been read to be measured."""
        if self._layout.payload or rows.payload is None:
            return rows.payload
        return rows.payload.metas_only() if self._layout.metas and rows.payload.has_metas else None

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


def _drawn(draw: Callable[[], Drawn]) -> _Made:
    lanes = draw()
    return lanes, Morsel(Refs.concat([refs_of(entry) for entry in lanes]), _NO_COLUMNS)


def refs_of(entry: Refs | Window) -> Refs:
    """Return the references of an entry of some draws."""
    return entry.refs if isinstance(entry, Window) else entry


def _cut(block: Block, window: Window) -> Block:
    """Leave out documents of draws that were run for the sake of their neighbours."""
    ordinals = block.refs.ordinal
    a, b = np.searchsorted(ordinals, [window.first, window.stop]).tolist()
    lost = block.lost.refs.ordinal
    kept = np.flatnonzero((window.first <= lost) & (lost < window.stop))
    if (a, b) == (0, len(ordinals)) and len(kept) == len(lost):
        return block
    gone = int(block.offsets[-1] - block.offsets[b] + block.offsets[a] - block.offsets[0])
    block.buffer.live -= gone
    return Block(
        refs=block.refs.slice(a, b),
        buffer=block.buffer,
        offsets=block.offsets[a : b + 1],
        payload=None if block.payload is None else block.payload.take(np.arange(a, b)),
        failure=block.failure,
        measures={name: found[a:b] for name, found in block.measures.items()},
        lost=block.lost.take(kept),
    )


def _from(view: TokenView, first: int) -> NDArray[Any]:
    """Return a column's values such that its first document begins at ``first``."""
    shift = int(view.offsets[0]) - first
    if shift == 0:
        return view.values
    if shift > 0:
        return view.values[shift:]
    return np.concatenate([np.zeros(-shift, view.values.dtype), view.values])


def _ranks(refs: Refs, entries: Sequence[Refs]) -> NDArray[np.int64]:
    """Say of which entry each row is, shape [rows].

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
    return rank[found]


def _lost_of_each(lost: Lost, entries: Sequence[Refs]) -> list[Lost]:
    """Give each entry its lost draws, in the order of its draws."""
    if not len(lost):
        return [lost] * len(entries)
    if len(entries) == 1 and is_ascending(lost.refs.ordinal):
        return [lost]
    ranks = _ranks(lost.refs, entries) if len(entries) > 1 else np.zeros(len(lost), np.int64)
    order = np.lexsort((lost.refs.ordinal, ranks))
    stops = np.cumsum(np.bincount(ranks, minlength=len(entries))).tolist()
    return [lost.take(order[a:b]) for a, b in zip([0, *stops], stops, strict=False)]


def _join(left: Morsel, right: Morsel) -> Morsel:
    columns = pa.Table.from_batches([left.columns, right.columns]).combine_chunks().to_batches()
    payloads = [m.payload for m in (left, right) if m.payload is not None]
    return Morsel(
        Refs.concat([left.refs, right.refs]),
        columns[0] if columns else left.columns,
        Payload.concat(payloads) if payloads else None,
        {n: np.concatenate([left.measures[n], right.measures[n]]) for n in left.measures},
        lost=left.lost.joined(right.lost),
    )
