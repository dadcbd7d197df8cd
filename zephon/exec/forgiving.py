"""Operators on rows of which some are bad: these are named, and left out where they may be.

Rows that nothing is wrong with run together, as if there were no others: a block in which an
operator fails is run again without the rows that are to blame, and these are found by halves where
the operator does not say which they are. A draw that became several rows is left out as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from zephon.errors import DataError, ExecutionError, ShardError, TokenizerError, ZephonError
from zephon.exec.block import NULL, Lost, Why
from zephon.exec.morsel import Morsel
from zephon.exec.operator import Operator, RowError
from zephon.exec.row_policies import RowPolicies
from zephon.io.faults import WAY_OUT
from zephon.work.refs import Refs

_PART_ROWS = 64
_NOT_OF_SHARDS = "on_error is about single rows: it does not apply to a shard that cannot be read"
NOT_OF_GROUPS = "on_error is about single rows: it does not apply here, where several came together"


class Forgiving:
    """Runs operators of a segment.

    Args:
        locate: names the first of some rows.
        policies: of the datasets that rows come from.
        of_records: rows are what an operator of the user made, of one row of a dataset or several.
    """

    def __init__(
        self,
        locate: Callable[[Refs], str],
        policies: RowPolicies,
        *,
        of_records: bool = False,
    ) -> None:
        self._locate = locate
        self._policies = policies
        self._of_records = of_records

    def run(self, operator: Operator, rows: Morsel, *, grouped: bool) -> Morsel:
        """Run an operator.

        Args:
            operator: which.
            rows: that it gets.
            grouped: it, or one before it, sees rows together: then none of them is to blame.

        Raises:
            Exception: what is wrong with the first bad row that ends the run, located; or with
                more than a row.
        """
        grouped |= self._of_records
        try:
            made = operator.run(rows)
        except Exception as exc:
            if grouped or not self._policies.forgive:
                raise self._located(operator.label, rows, exc, grouped=grouped) from _cause(exc)
            made = self._sifted(operator, rows, exc)
        return self._settled(made) if operator.settles and made.faults else made

    def without(self, rows: Morsel, errors: Sequence[RowError], *, grouped: bool) -> Morsel:
        """Leave out rows of which something is wrong.

        Args:
            rows: all of them.
            errors: what is, of which row; not empty.
            grouped: as for ``run``.

        Raises:
            Exception: what is wrong with the first of them that ends the run.
        """
        bad: dict[int, tuple[int, Why | None]] = {}
        for error in errors:
            reason = 0 if grouped or self._of_records else self._reason(rows, error.row)
            told = self._located("", rows, error, grouped=grouped or self._of_records)
            if not reason:
                raise told
            bad[error.row] = reason, Why(str(told), error.step)
        return _left(rows, bad)

    def _sifted(self, operator: Operator, rows: Morsel, error: Exception) -> Morsel:
        """Run an operator that raised on the rows for which it does not."""
        while True:
            bad: dict[int, tuple[int, Why | None]] = {}
            for first, stop in _parts(rows.refs):
                self._find(operator, rows, first, stop, bad)
            if not bad:  # it raises for no row by itself
                raise self._located(operator.label, rows, error) from _cause(error)
            rows = _left(rows, bad)
            try:
                return operator.run(rows)
            except Exception as exc:  # of one row it may find several things wrong, one by one
                error = exc

    def _find(
        self,
        operator: Operator,
        rows: Morsel,
        first: int,
        stop: int,
        bad: dict[int, tuple[int, Why | None]],
    ) -> None:
        """Find rows [first, stop) for which an operator raises; whole draws."""
        while first < stop:
            part = rows.part(first, stop)
            try:
                operator.run(part)
            except Exception as exc:
                told = self._located(operator.label, part, exc)
                middle = None if isinstance(exc, RowError) else _middle(part.refs)
                if middle is not None:
                    self._find(operator, rows, first, first + middle, bad)
                    first += middle
                    continue
                at = first + (exc.row if isinstance(exc, RowError) else 0)
                reason = self._reason(rows, at) if _is_of_a_row(exc) else 0
                if not reason:
                    raise told from _cause(exc)
                step = exc.step if isinstance(exc, RowError) else None
                bad[at] = reason, Why(str(told), step or operator.label)
                first = at + 1 + int(np.argmax(rows.refs.last_child[at:]))  # behind its draw
            else:
                return

    def _settled(self, rows: Morsel) -> Morsel:
        """Leave out bad rows that no filter dropped."""
        bad: dict[int, tuple[int, Why | None]] = {}
        for row, fault in sorted(rows.faults.items()):
            if fault.is_null:
                bad[row] = NULL, None
                continue
            told: Exception = DataError(fault.why)
            if fault.step is not None:
                error = RowError(row, fault.why, WAY_OUT, step=fault.step)
                told = self._located("", rows, error)
            reason = self._reason(rows, row)
            if not reason:
                raise told
            bad[row] = reason, Why(str(told), fault.step)
        return _left(rows, bad)

    def _reason(self, rows: Morsel, row: int) -> int:
        return self._policies.reason(int(rows.refs.component[row]))

    def _located(
        self, label: str, rows: Morsel, exc: Exception, *, grouped: bool = False
    ) -> Exception:
        """Make an error that says where it is, and what can be done about it."""
        if isinstance(exc, RowError):
            place = self._locate(rows.refs.slice(exc.row, exc.row + 1))
            kind = exc.kind if exc.__cause__ is None else ExecutionError
            text = f"{exc.step or label}: {exc.problem} on {place}; {exc.way_out}"
            if grouped:
                return kind(f"{text}{self._not_here()}")
            return kind(f"{text}{self._policies.advice(int(rows.refs.component[exc.row]))}")
        if isinstance(exc, ShardError):
            return type(exc)(f"{exc}; {_NOT_OF_SHARDS}") if self._policies.forgive else exc
        if isinstance(exc, DataError | ExecutionError):
            return exc
        kind = TokenizerError if isinstance(exc, TokenizerError) else ExecutionError
        return kind(f"{label} failed on {self._locate(rows.refs)}: {exc}")

    def _not_here(self) -> str:
        return f"; {NOT_OF_GROUPS}" if self._policies.forgive else ""


def _cause(exc: Exception) -> BaseException | None:
    return exc.__cause__ if isinstance(exc, RowError | DataError | ExecutionError) else exc


def _is_of_a_row(exc: Exception) -> bool:
    """Whether an error of an operator that had one draw is a fault of its row."""
    if isinstance(exc, RowError):
        return not isinstance(exc.__cause__, MemoryError)
    return isinstance(exc, DataError) or not isinstance(exc, ZephonError | MemoryError)


def _parts(refs: Refs) -> list[tuple[int, int]]:
    """Cut rows into parts of whole draws: in which a bad row makes few others run again."""
    ends = np.flatnonzero(refs.last_child) + 1
    stops = ends[np.searchsorted(ends, np.arange(_PART_ROWS, len(refs), _PART_ROWS))]
    edges = np.unique([0, *stops, len(refs)]).tolist()
    return list(pairwise(edges))


def _middle(refs: Refs) -> int | None:
    """Say where to halve rows, between two draws; None where they are of one."""
    edges = np.flatnonzero(refs.last_child[:-1]) + 1
    return int(edges[np.abs(edges - len(refs) // 2).argmin()]) if len(edges) else None


def _left(rows: Morsel, bad: Mapping[int, tuple[int, Why | None]]) -> Morsel:
    """Leave out draws of which a row is bad; the first reason counts."""
    refs = rows.refs
    begins = np.concatenate([[True], refs.last_child[:-1]])
    draw, firsts = np.cumsum(begins) - 1, np.flatnonzero(begins)
    gone: dict[int, tuple[int, Why | None]] = {}
    for row in sorted(bad):
        gone.setdefault(int(draw[row]), bad[row])
    draws = [*gone]
    why = {place: each[1] for place, each in enumerate(gone.values()) if each[1] is not None}
    reasons = np.array([reason for reason, _ in gone.values()], np.int8)
    lost = Lost(refs.take(firsts[draws]), reasons, why)
    kept = np.flatnonzero(~np.isin(draw, draws))
    return replace(rows.keep(kept, NULL), lost=rows.lost.joined(lost))
