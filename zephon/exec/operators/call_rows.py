"""Call functions of the user on whole rows, one after the other: one pass over the rows.

A function costs what it does itself, the row that is made for it, and a copy of what it returned
for each record that somebody looks at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from zephon.batches.identity import LineagePath, SampleMeta
from zephon.column_steps import no_columns
from zephon.exec.bad_row import BadRow
from zephon.exec.block import DROPPED as DROPPED_DRAW
from zephon.exec.morsel import Morsel
from zephon.exec.operator import Operator, RowError
from zephon.exec.operators.row_calls import DROPPED, RowCalls
from zephon.exec.operators.splits import split_refs
from zephon.exec.operators.whole_rows import each_row
from zephon.io.made_rows import MadeRecords, MadeRows, part_of
from zephon.io.payload import Payload
from zephon.planner import physical
from zephon.work.refs import Refs

Namer = Callable[[Refs, int], SampleMeta]
"""Says who the row of a reference is."""


class CallRowsOp(Operator):
    """Replaces whole rows by what functions return for them; columns and the frame are let go of.

    Rows that say who they are go on saying it, and rows made of a conversation say it from then
    on.
    """

    def __init__(self, step: physical.CallRows, naming: Namer, *, at_once: int) -> None:
        """Keep the calls.

        Args:
            step: what to call.
            naming: says who a row is, where nothing said it before.
            at_once: threads that may be inside the functions at once.
        """
        self._step = step
        self._naming = naming
        self._calls = RowCalls(step.calls)
        self._turns = threading.Semaphore(at_once)
        self.label = "+".join(dict.fromkeys(call.call for call in step.calls))

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows that functions made; raises what the first bad row raises."""
        with self._turns:
            parents, paths, values = self._called(rows)
        below = rows.payload
        known = below.metas_only() if below is not None and below.has_metas else None
        bare = replace(rows, columns=no_columns(len(rows.refs)), payload=known, frame=None)
        kept, row_of = np.unique(np.array(parents, np.int64), return_inverse=True)
        left = bare.keep(kept, DROPPED_DRAW)
        metas = self._metas(left, row_of.tolist(), paths)
        source = MadeRows(values) if metas is None else MadeRecords(values, metas)
        count = len(values)
        payload = Payload((source,), np.zeros(count, np.int32), np.arange(count))
        return replace(
            left,
            refs=split_refs(left.refs, row_of),
            columns=no_columns(count),
            payload=payload,
            measures={name: found[row_of] for name, found in left.measures.items()},
        )

    def _called(self, rows: Morsel) -> tuple[list[int], list[LineagePath], list[Any]]:
        """Call all functions on all rows; of each row that is left, whose it is and what it is."""
        step, calls = self._step, self._calls
        parents: list[int] = []
        paths: list[LineagePath] = []
        values: list[Any] = []
        each = each_row(rows, step.token_fields, step.masks, step.container)
        row = 0
        try:
            if calls.expands:
                for row, whole in enumerate(each):
                    for path, value in calls.several(whole):
                        parents.append(row)
                        paths.append(path)
                        values.append(value)
            else:
                one, dropped = calls.only or calls.one, DROPPED
                for row, whole in enumerate(each):
                    value = one(whole)
                    if value is not dropped:
                        parents.append(row)
                        values.append(value)
        except BadRow as exc:
            error = RowError(row, exc.problem, exc.way_out, step=exc.step, kind=exc.kind)
            raise error from exc.__cause__
        return parents, paths, values

    def _metas(
        self, rows: Morsel, parents: list[int], paths: list[LineagePath]
    ) -> list[SampleMeta] | None:
        """Say who the rows are that are left, where it must be said; the last of a row ends it."""
        known = rows.payload
        if known is None and not self._calls.expands:
            return None
        metas = [
            self._naming(rows.refs, row) if known is None else known.meta(row) for row in parents
        ]
        if not self._calls.expands:
            return metas
        lasts = [one != other for one, other in zip(parents, [*parents, -1][1:], strict=True)]
        return [
            part_of(meta, path, closes=last)
            for meta, path, last in zip(metas, paths, lasts, strict=True)
        ]
