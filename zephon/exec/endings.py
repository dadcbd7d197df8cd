"""What is said when a run ends: data too short for a step, ranks that part, documents dropped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection

from zephon.errors import ExecutionError, PlanError
from zephon.exec.lane_run import LaneRun
from zephon.exec.lanes import Topology


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


def barren(run: LaneRun) -> ExecutionError:
    """Say that a lane without end gives no row any more."""
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
            stacklevel=4,
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
        stacklevel=4,
    )


def _dropped(lanes: Collection[LaneRun]) -> tuple[int, int]:
    """Count documents and tokens that were too long for a row."""
    documents = sum(run.dropped_documents() for run in lanes)
    return documents, sum(int(p.sum()) for run in lanes for p in run.dropped_tokens().values())
