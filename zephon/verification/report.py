"""A verification as text: hashes side by side, how each run was cut, and the verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from zephon.verification.cuts import Stretch
from zephon.verification.run import Difference, Run

if TYPE_CHECKING:
    from zephon.verification.verify import Verification

_DIGITS = 8
_WIDTH = 100
_FIRST_STEPS, _LAST_STEPS, _MOST_STEPS = 24, 8, 40
_MOST_PARTS = 4


def report(found: Verification) -> str:
    """Write it down; the last line is the verdict."""
    return "\n".join(
        [
            f"Global steps of {found.rows} rows in {found.lanes} lanes: SHA-256 of all that each "
            "row holds",
            *_table(found.runs),
            "Restarts, by the number of ranks at the beginning:",
            *(line for run in found.runs[1:] for line in _how(run, found.rows)),
            *_notes(found),
            *_verdict(found),
        ]
    )


def _table(runs: Sequence[Run]) -> Iterator[str]:
    names = [_ranks(run.ranks) for run in runs]
    if len(runs) == 2 and names[0] == names[1]:
        names[1] = "cut"
    widths = [max(_DIGITS + 1, len(name)) for name in names]
    yield _line("step", names, widths)
    steps = max(len(run.hashes) for run in runs)
    shown = [step for step in range(steps) if _is_shown(step, steps)]
    for before, step in pairwise([-1, *shown]):
        if step != before + 1:
            yield _line("...", ["..."] * len(runs), widths)
        yield _line(str(step), [_cell(run, runs[0], step) for run in runs], widths)


def _is_shown(step: int, steps: int) -> bool:
    return steps <= _MOST_STEPS or step < _FIRST_STEPS or step >= steps - _LAST_STEPS


def _cell(run: Run, first: Run, step: int) -> str:
    if step >= len(run.hashes):
        return "failed" if run.failure else "none"
    differs = step >= len(first.hashes) or run.hashes[step] != first.hashes[step]
    return run.hashes[step][:_DIGITS] + ("*" if differs else "")


def _line(first: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"  {first:>4}  {' '.join(padded)}".rstrip()


def _how(run: Run, rows: int) -> Iterator[str]:
    """Say where a run was cut, and in which manner it went on."""
    parts = [_cut(one, other, rows) for one, other in pairwise(run.stretches)]
    told = f"{_ranks(run.ranks)}: {'; '.join(parts) or 'none'}"
    yield from textwrap.wrap(told, _WIDTH, initial_indent="  ", subsequent_indent="      ")


def _cut(before: Stretch, after: Stretch, rows: int) -> str:
    place, manner = after.start, after.manner
    share = rows // manner.ranks
    if place.rows:
        where = f"in step {place.step} after {place.rows} of {share} rows a rank"
    else:
        where = f"after step {place.step - 1}"
    how = [_ranks(manner.ranks)] if manner.ranks != before.manner.ranks else []
    if manner.microbatch != before.manner.microbatch:
        how.append(f"microbatch {manner.microbatch}")
    return f"{where}: {', '.join([*how, str(manner.runner), str(manner.memory_budget)])}"


def _notes(found: Verification) -> Iterator[str]:
    if found.skipped:
        named = ", ".join(map(str, found.skipped[:-1]))
        last = _ranks(found.skipped[-1])
        head = f"{named} and {last}" if named else last
        yield f"  {head}: skipped, {found.rows} rows of a step do not divide among them"
    if found.map_batch:
        yield "  map_batch is left out: it sees batches, whose size differs between topologies"
    if found.left_out:
        names = ", ".join(found.left_out)
        verb = "is" if len(found.left_out) == 1 else "are"
        yield f"  {names} {verb} left out: the ranks are threads of this process"
    first = found.runs[0]
    if first.ended and not found.to_end:
        yield f"  the data end after {_of(len(first.hashes), 'step')}"


def _verdict(found: Verification) -> Iterator[str]:
    first = found.runs[0]
    for run in found.runs[1:]:
        if run.failure is not None:
            yield f"FAILED on {_ranks(run.ranks)} in {run.failure}"
        elif run.difference is not None:
            yield _told_difference(run.difference, run, first, found)
    if found.same and not first.hashes:
        yield "NOTHING TO COMPARE: the data end before the first step is whole"
    elif found.same:
        count = len(first.hashes)
        whole = ", to the end of the data" if first.ended else ""
        cuts = sum(len(run.stretches) - 1 for run in found.runs)
        yield (
            f"same: {_of(count, 'step')} on {len(found.runs)} topologies with {_of(cuts, 'cut')}"
            f"{whole}"
        )


def _told_difference(found: Difference, run: Run, first: Run, whole: Verification) -> str:
    head = f"DIFFERENT at step {found.step}: {_ranks(run.ranks)} against {_ranks(first.ranks)}"
    if found.row is None:
        counts = f"{len(run.hashes)} steps against {len(first.hashes)}"
        return f"{head}, the data end after {counts}"
    shown = list(found.parts[:_MOST_PARTS])
    if len(found.parts) > _MOST_PARTS:
        shown.append(f"and {len(found.parts) - _MOST_PARTS} more")
    lane = found.row * whole.lanes // whole.rows
    return f"{head}, first in row {found.row}, of lane {lane}: {', '.join(shown)}"


def _ranks(count: int) -> str:
    return _of(count, "rank")


def _of(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
