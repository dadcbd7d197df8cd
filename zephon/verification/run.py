"""One run of a recipe, on one topology after another, as hashes of its global steps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from zephon.errors import ZephonError, told
from zephon.pipeline import Pipeline
from zephon.verification.cuts import Place, Stretch
from zephon.verification.ranks import Delivered, RankFailed, run_ranks
from zephon.verification.row_digests import RowDigest


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a run first is not what another is.

    step: which. row: in the canonical order of the step; None: one of the runs has no such step.
    parts: what differs in the row.
    """

    step: int
    row: int | None = None
    parts: tuple[str, ...] = ()


@dataclass(slots=True)
class Run:
    """What a run came to.

    ranks: D at its beginning. stretches: how it was cut. hashes: SHA-256 of each whole step, hex.
    ended: the data ended before more steps were there. failure: why it broke off.
    """

    ranks: int
    stretches: Sequence[Stretch]
    hashes: list[str] = field(default_factory=list)
    ended: bool = False
    difference: Difference | None = None
    failure: str | None = None


class Recorder:
    """Puts the rows that ranks hand out in the canonical order, and hashes whole steps.

    Args:
        rows: R.
        run: is told of the hashes.
        reference: the rows of each step that they must be; None: keep them.
    """

    def __init__(
        self, rows: int, run: Run, reference: Sequence[Sequence[RowDigest]] | None
    ) -> None:
        self.steps: list[list[RowDigest]] = []
        self._rows = rows
        self._run = run
        self._reference = reference
        self._open: dict[int, list[RowDigest | None]] = {}

    def add(self, start: Place, delivered: Sequence[Delivered]) -> None:
        """Take what each rank handed out from a place on."""
        share = self._rows // len(delivered)
        for rank, each in enumerate(delivered):
            for number, row in enumerate(each.rows, start.rows):
                step, place = start.step + number // share, number % share
                rows = self._open.setdefault(step, [None] * self._rows)
                rows[rank * share + place] = row
        for step in sorted(self._open):
            if step != len(self._run.hashes) or None in self._open[step]:
                break
            self._close(step, [row for row in self._open.pop(step) if row is not None])

    def _close(self, step: int, rows: list[RowDigest]) -> None:
        whole = hashlib.sha256()
        for row in rows:
            whole.update(row.sha256)
        self._run.hashes.append(whole.hexdigest())
        if self._reference is None:
            self.steps.append(rows)
        elif self._run.difference is None:
            self._run.difference = _difference(step, rows, self._reference)


def _difference(
    step: int, rows: Sequence[RowDigest], reference: Sequence[Sequence[RowDigest]]
) -> Difference | None:
    if step >= len(reference):
        return Difference(step)
    for number, (row, wanted) in enumerate(zip(rows, reference[step], strict=True)):
        if row.sha256 != wanted.sha256:
            return Difference(step, number, tuple(row.differing(wanted)))
    return None


def run_reference(
    make: Callable[[], Pipeline], stretch: Stretch, rows: int, steps: int | None
) -> tuple[Run, list[list[RowDigest]], int]:
    """Run without a cut.

    Args:
        make: makes a new pipeline.
        stretch: in which manner.
        rows: R.
        steps: how many at most; None: to the end of the data.

    Returns:
        The run, the rows of its steps, and the number of lanes.

    Raises:
        Exception: what the first rank raised.
    """
    run = Run(stretch.manner.ranks, (stretch,))
    recorder = Recorder(rows, run, None)
    count = None if steps is None else steps * (rows // run.ranks)
    try:
        delivered = run_ranks(make, stretch.manner, None, count, checkpoint=True)
    except RankFailed as failed:
        raise failed.error from None
    recorder.add(Place(), delivered)
    run.ended = any(each.ended for each in delivered)
    return run, recorder.steps, int(delivered[0].state["lane_count"])


def run_cut(
    make: Callable[[], Pipeline],
    stretches: Sequence[Stretch],
    rows: int,
    reference: Sequence[Sequence[RowDigest]],
    *,
    ended: bool,
) -> Run:
    """Run in stretches, each of which goes on from the checkpoints of all ranks of the last.

    Args:
        make: makes a new pipeline.
        stretches: one after the other.
        rows: R.
        reference: the rows of each step that are to come.
        ended: that nothing may follow them.
    """
    run = Run(stretches[0].manner.ranks, stretches)
    recorder = Recorder(rows, run, reference)
    states: list[Any] | None = None
    for stretch in stretches:
        share = rows // stretch.manner.ranks
        stop = stretch.stop or Place(len(reference) + ended)
        count = (stop.step - stretch.start.step) * share + stop.rows - stretch.start.rows
        try:
            delivered = run_ranks(
                make, stretch.manner, states, count, checkpoint=stretch.stop is not None
            )
        except (RankFailed, ZephonError) as failed:
            if isinstance(failed, RankFailed):
                recorder.add(stretch.start, failed.delivered)
            run.failure = f"step {len(run.hashes)}: {_told(failed)}"
            return run
        recorder.add(stretch.start, delivered)
        states = [each.state for each in delivered]
        run.ended = any(each.ended for each in delivered)
        if run.ended:
            break
    if run.difference is None and len(run.hashes) != len(reference):
        run.difference = Difference(min(len(run.hashes), len(reference)))
    return run


def _told(error: Exception) -> str:
    return f"{error}: {told(error.error)}" if isinstance(error, RankFailed) else told(error)
