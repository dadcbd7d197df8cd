"""What is said when a run ends: data too short for a step, ranks that part, documents dropped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from zephon.errors import ExecutionError, PlanError
from zephon.exec.arrivals import Counts
from zephon.exec.history import LaneState
from zephon.exec.lane_run import LaneRun
from zephon.exec.lanes import Topology
from zephon.exec.policies.whole_documents import OVERSIZED
from zephon.planner.logical.custom import GROUP

_LEAST_PASSES, _MOST_PASSES, _FEW_ROWS = 8, 32, 1 << 20
"""Passes over all data without a document before a lane is given up, more where rows are few: a
lane of many gets a share of each pass by chance, and may miss the few rows that are left."""


def short_data(
    topology: Topology, lanes: Collection[LaneRun], known_length: Callable[[int], int | None]
) -> PlanError:
    """Say that the data end before the first step, and which lane is the shortest.

    Args:
        topology: of the run; it has a global batch.
        lanes: those that this rank runs.
        known_length: rows of any lane, where the plan knows them beforehand.
    """
    found = [(known_length(lane), lane) for lane in range(topology.lanes)]
    ended = [(rows, lane) for rows, lane in found if rows is not None]
    ended = ended or [(run.rows_placed, run.lane) for run in lanes if run.ended]
    rows, lane = min(ended)
    return PlanError(
        f"the data end before the first step: global_batch_size={topology.global_batch_size} over "
        f"canonical_replicas={topology.lanes} lanes needs {topology.rows_per_lane} rows of each, "
        f"lane {lane} has {rows}; lower global_batch_size or canonical_replicas, or repeat the data"
    )


def nothing_whole(lanes: Collection[LaneRun], microbatch_size: int) -> str:
    """Say that the data end before the first batch, and why."""
    counts = [run.bottom.counts for run in lanes]
    drawn = sum(int(each.rows.sum()) for each in counts)
    lost = sum(int(each.lost().sum()) for each in counts)
    if drawn and lost == drawn:
        return (
            f"no row is left: filters and functions dropped all of the {drawn:,} that were drawn"
            f"{_bad_too(counts)}; let some through"
        )
    return (
        f"the data end before the first batch of {microbatch_size} rows: accounting() says where "
        "the rows and tokens are; lower the batch or max_length, or pass drop_last=False"
    )


def _bad_too(counts: Sequence[Counts]) -> str:
    """Say how many of the rows that gave nothing were bad, or had no text; "" where none was."""
    bad = sum(int((each.bad() + each.null).sum()) for each in counts)
    return f", but for {bad:,} that are bad or have a null for text" if bad else ""


def is_barren(run: LaneRun, rows: int) -> bool:
    """Say whether draws go into a floor of a lane without end and no row will ever come out.

    Args:
        run: the floor.
        rows: of all datasets. The lane has seen each of its own twice since a row was finished,
            and policies keep hardly any of them; or many times without a document.
    """
    if run.endless and run.idle > 2 * rows and 4 * run.held_documents() < run.idle:
        return True
    most = _FEW_ROWS
    if run.below is None:  # an operator of the user may hold many rows before it gives one
        most = min(_MOST_PASSES * rows, most)
    return rows_lost(run) > max(_LEAST_PASSES * rows, most)


def rows_lost(run: LaneRun) -> int:
    """Count draws since the last that gave a document, where they go on without end."""
    if run.strands is None:
        lost = run.lost * (1 if run.below is None else GROUP)
        return lost if run.endless else 0
    wanted = run.strands.wants
    if wanted is None or run.intakes[wanted].stream.length is not None:
        return 0
    return run.strands.read_in_vain(wanted)


def barren(run: LaneRun) -> ExecutionError:
    """Say that a lane without end gives no row any more."""
    if rows_lost(run):
        return ExecutionError(
            f"lane {run.lane}: the data repeat without end, and no row of many passes gave a "
            f"document: filters and functions left nothing of them{_bad_too([run.bottom.counts])}; "
            "let some rows through, or leave out the component that gives none"
        )
    documents, tokens = _dropped([run])
    return ExecutionError(
        f"lane {run.lane}: the data repeat without end, and no row was finished while all of them "
        f"passed twice; {documents:,} documents of {tokens:,} tokens were dropped as longer than a "
        "row: raise max_length, or tokenize with split_long_samples=True"
    )


def warn_of_uneven(topology: Topology, lanes: Collection[LaneRun], steps: int) -> None:
    """Say that other ranks may end elsewhere, where nobody knew the end beforehand."""
    if not topology.global_batch_size or topology.dp_degree == 1:
        return
    if not all(run.endless for run in lanes):
        warnings.warn(
            f"rank {topology.dp_group_id} of {topology.dp_degree} ends where its own lanes end, "
            f"after {steps} steps; other ranks may have more or fewer, since filters and packing "
            "make lanes uneven",
            RuntimeWarning,
            stacklevel=5,
        )


def warn_of_dropped(lanes: Collection[LaneRun], longest: int | None) -> None:
    """Say once, when a run ends or is left, what was too long for a row so far."""
    documents, tokens = _dropped(lanes)
    if not documents:
        return
    count = "1 document" if documents == 1 else f"{documents:,} documents"
    of = f" of {tokens:,} tokens" if tokens else ""  # a function measured what has none
    each = "" if documents == 1 else "each "
    counted = "accounting() counts them; " if tokens else ""
    warnings.warn(
        f"packing dropped {count}{of} so far, {each}longer than max_length={longest}: {counted}"
        "pass drop_oversized=False to make them an error, or tokenize with "
        "split_long_samples=True to keep them in parts",
        RuntimeWarning,
        stacklevel=5,
    )


def warn_of_bad(
    lanes: Collection[LaneRun],
    state: Callable[[], tuple[object, Mapping[int, LaneState]]],
    lines: Callable[[Sequence[Counts]], Iterable[str]],
) -> None:
    """Say, when a run ends or is left, what was left out of each dataset so far.

    Args:
        lanes: those of the rank.
        state: gives what was handed out, and the state of each there.
        lines: says it in words, given the counts of each lane.
    """
    if any(run.bottom.counts.bad().any() for run in lanes):
        _, states = state()
        for line in lines([each.bottom().counts() for each in states.values()]):
            warnings.warn(line, RuntimeWarning, stacklevel=5)


def _dropped(lanes: Collection[LaneRun]) -> tuple[int, int]:
    """Count documents and tokens that were too long for a row."""
    floors = [floor for run in lanes for floor in run.floors()]
    documents = sum(floor.dropped_documents() for floor in floors)
    parts = [floor.dropped_tokens().get(OVERSIZED) for floor in floors]
    return documents, sum(int(tokens.sum()) for tokens in parts if tokens is not None)
