"""Call an operator of the user on the rows of each 64 draws of a lane: the same rows every time.

Groups depend on nothing but ordinals, so that a row is made again by reading its own window.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from zephon.batches.identity import SampleMeta
from zephon.column_steps import no_columns
from zephon.exec.arrival_order import out_of_order
from zephon.exec.block import DROPPED, MERGED, Lost
from zephon.exec.group_calls import GroupCalls, Worker
from zephon.exec.morsel import Morsel
from zephon.exec.operator import Operator, RowError
from zephon.exec.operators.call_rows import Namer
from zephon.exec.operators.whole_rows import each_row
from zephon.exec.origins import KnownOrigins
from zephon.exec.user_calls import is_row
from zephon.io.made_rows import MadeRecords
from zephon.io.payload import Payload
from zephon.ops.context import OpServices, StageInfo
from zephon.planner import physical
from zephon.planner.logical.custom import GROUP
from zephon.types import SampleRecord
from zephon.work.refs import Refs


class CallGroupsOp(Operator):
    """Replaces rows by what an operator makes of each window; each says from then on who it is.

    All draws of a window must come together. A row stands at the draw of the row whose place it
    takes, and the operator must give them in this order; of several at one draw, the last is
    marked. A draw at which nothing stands is merged, if some row is made of it, or dropped.
    """

    sees_groups = True

    def __init__(
        self,
        step: physical.CallGroups,
        services: OpServices,
        naming: Namer,
        *,
        at_once: int,
        by_component: bool = False,
        stage_info: StageInfo | None = None,
    ) -> None:
        """Keep what to call.

        Args:
            step: the operator, and how rows look.
            services: what the operator may ask for.
            naming: says who a row is, where nothing said it before.
            at_once: threads that may be inside the operator at once.
            by_component: ordinals count within one component of a lane.
            stage_info: where the operator stands; None: it is not told.
        """
        self._step = step
        self._naming = naming
        self._by_component = by_component
        self._calls = GroupCalls(step.op, services, stage_info)
        self._turns = threading.Semaphore(at_once)
        self.label = self._calls.label

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows that the operator made; raises what the first bad window raises."""
        made = _Made(rows.refs)
        with self._turns:
            self._call(rows, made)
        refs = made.refs()
        count = len(refs)
        source = MadeRecords(made.values, made.metas)
        return Morsel(
            refs=refs,
            columns=no_columns(count),
            payload=Payload((source,), np.zeros(count, np.int32), np.arange(count)),
            lost=rows.lost.joined(made.lost()),
        )

    def close(self) -> None:
        """Take back all copies of the operator."""
        self._calls.close()

    def _call(self, rows: Morsel, made: _Made) -> None:
        step, refs = self._step, rows.refs
        if not len(refs):
            return
        each = each_row(rows, step.token_fields, step.masks, step.container)
        known = rows.payload if rows.payload is not None and rows.payload.has_metas else None
        worker = self._calls.worker()
        for start, stop in self._windows(refs):
            metas = [
                self._naming(refs, row) if known is None else known.meta(row)
                for row in range(start, stop)
            ]
            self._call_window(worker, start, metas, list(islice(each, stop - start)), made)

    def _call_window(
        self,
        worker: Worker,
        start: int,
        metas: Sequence[SampleMeta],
        values: Sequence[object],
        made: _Made,
    ) -> None:
        origins = KnownOrigins(metas[0].lane_id)
        for number, meta in enumerate(metas):
            origins.add(meta, start + number)
        records = [SampleRecord(*pair) for pair in zip(metas, values, strict=True)]
        try:
            leave = [record for record in worker.process(records) if is_row(record)]
            made.add(leave, [origins.rows_of(record.meta) for record in leave])
        except RowError as exc:
            error = RowError(start + exc.row, exc.problem, exc.way_out)
            raise error from exc.__cause__

    def _windows(self, refs: Refs) -> list[tuple[int, int]]:
        """Return where the rows of each window start and stop."""
        keys = [refs.lane, refs.ordinal // GROUP]
        if self._by_component:
            keys.append(refs.component)
        differs = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
        stops = [*(np.flatnonzero(differs) + 1).tolist(), len(refs)]
        return list(zip([0, *stops[:-1]], stops, strict=True))


class _Made:
    """Rows that windows gave, and the rows that went in: how the ones stand for the others."""

    def __init__(self, given: Refs) -> None:
        self.values: list[object] = []
        self.metas: list[SampleMeta] = []
        self._given = given
        self._ordinals = given.ordinal.tolist()
        self._primary: list[int] = []
        self._begins: list[bool] = []
        self._used = np.zeros(len(given), bool)
        self._stands = np.zeros(len(given), bool)

    def add(self, records: Sequence[SampleRecord], sources: Sequence[list[int]]) -> None:
        """Take what one window gave; ``sources``: the rows that each record is made of.

        Raises:
            RowError: a record stands before one that was given earlier; with a cause.
        """
        latest = -1
        for record, rows in zip(records, sources, strict=True):
            primary = rows[0]
            ordinal = self._ordinals[primary]
            if ordinal < latest:
                raise out_of_order(record.meta)
            self._begins.append(ordinal != latest)
            self._primary.append(primary)
            self._used[rows] = True
            self._stands[primary] = True
            latest = ordinal
            self.values.append(record.payload)
            self.metas.append(record.meta)

    def refs(self) -> Refs:
        """Refer to the rows; those at one draw are numbered 0, 1, 2, ..., the last marked."""
        count = len(self._primary)
        begins = np.array(self._begins, bool)
        starts = np.flatnonzero(begins)
        child = np.arange(count) - np.repeat(starts, np.diff(starts, append=count))
        return replace(
            self._given.take(np.array(self._primary, np.int64)),
            child=child.astype(np.int32),
            last_child=np.append(begins[1:], True)[:count],
        )

    def lost(self) -> Lost:
        """Give the draws at which nothing stands."""
        given = self._given
        if not len(given):
            return Lost.none()
        begins: NDArray[np.bool_] = np.concatenate([[True], given.last_child[:-1]])
        firsts = np.flatnonzero(begins)
        used, stands = (np.logical_or.reduceat(rows, firsts) for rows in (self._used, self._stands))
        reason = np.where(used, MERGED, DROPPED).astype(np.int8)
        return Lost(given.take(firsts[~stands]), reason[~stands])
