"""Several ranks of one run, each a pipeline in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from zephon.pipeline import Pipeline
from zephon.verification.row_digests import RowDigest, digests_of

_POLL_SECONDS = 0.05


class RankFailed(Exception):
    """A rank raised ``error``, after all together had handed out some rows."""

    def __init__(self, rank: int, delivered: Sequence[Delivered], error: BaseException) -> None:
        super().__init__(f"rank {rank} of {len(delivered)}")
        self.delivered = delivered
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How some ranks deliver: what must not change a byte.

    ranks: D. microbatch: rows of a batch; None where the recipe makes no batches. runner,
    memory_budget: as ``Pipeline.options`` takes them; None for the recipe's own, but several ranks
    that would each start processes run threads. as_bytes: how checkpoints are taken. validated:
    operators of the user were tried on made-up records before.
    """

    ranks: int
    microbatch: int | None
    runner: str | None = None
    memory_budget: str | None = None
    as_bytes: bool = False
    validated: bool = True


@dataclass(slots=True)
class Delivered:
    """What a rank handed out: its rows in order, and the checkpoint behind the last of them."""

    rows: list[RowDigest]
    ended: bool = False
    state: Any = None


def run_ranks(
    make: Callable[[], Pipeline],
    manner: Manner,
    states: Sequence[Any] | None,
    rows: int | None,
    *,
    checkpoint: bool,
) -> list[Delivered]:
    """Run all ranks at the same time, and close them.

    Args:
        make: makes a new pipeline.
        manner: how.
        states: the parts of a checkpoint, with which each rank begins; None: the beginning.
        rows: how many each rank hands out at most; None: all that it has.
        checkpoint: take one of each rank, behind its last row.

    Raises:
        RankFailed: the first error of any rank; the others are stopped.
    """
    pipelines = [_on_rank(make(), manner, rank) for rank in range(manner.ranks)]
    stopped = threading.Event()
    delivered = [Delivered([]) for _ in pipelines]
    errors: dict[int, BaseException] = {}

    def run(rank: int) -> None:
        try:
            _deliver(pipelines[rank], delivered[rank], rows, stopped)
            if checkpoint:
                delivered[rank].state = pipelines[rank].checkpoint(
                    as_bytes=manner.as_bytes, scope="local"
                )
        except BaseException as error:  # of a thread: the caller raises it
            errors[rank] = error

    threads = [
        threading.Thread(target=run, args=(rank,), name=f"rank {rank}", daemon=True)
        for rank in range(manner.ranks)
    ]
    try:
        _restore(pipelines, states)
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not errors:
            next(thread for thread in threads if thread.is_alive()).join(_POLL_SECONDS)
        first = dict(errors)  # those that are stopped now raise, too
    finally:
        stopped.set()
        for pipeline, thread in zip(pipelines, threads, strict=True):
            if thread.is_alive():
                pipeline.options()  # whatever changes a pipeline ends its run
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if first:
        rank = min(first)
        raise RankFailed(rank, delivered, first[rank]) from first[rank]
    return delivered


def _on_rank(pipeline: Pipeline, manner: Manner, rank: int) -> Pipeline:
    """Make a rank of a pipeline: one that meets nobody, and runs its engine in its own thread."""
    pipeline._alone = True
    runner = manner.runner
    if runner is None and manner.ranks > 1 and starts_processes(pipeline):
        runner = "threads"
    settings: dict[str, Any] = {"runner": runner, "memory_budget": manner.memory_budget}
    if runner is not None:
        settings["per_stage_runner"] = {}
    if runner == "process" and manner.ranks > 1:
        settings["max_workers"] = 1
    if manner.validated or rank:
        settings["auto_validation"] = "off"
    pipeline.options(
        **{name: value for name, value in settings.items() if value is not None},
        world_size=manner.ranks,
        global_rank=rank,
        dp_degree=manner.ranks,
        dp_group_id=rank,
        mtp_mode=False,
    )
    return pipeline if manner.microbatch is None else pipeline._in_batches_of(manner.microbatch)


def starts_processes(pipeline: Pipeline) -> bool:
    """Say whether a recipe's own runners are processes, of which each rank would start some."""
    options = pipeline._options
    return "process" in (options.runner, *options.per_stage_runner.values())


def _restore(pipelines: Sequence[Pipeline], states: Sequence[Any] | None) -> None:
    """Let all go on from the parts of a checkpoint, which one of them puts together."""
    if states is not None:
        whole = pipelines[0].restore(states).checkpoint()
        for pipeline in pipelines[1:]:
            pipeline.restore(whole)


def _deliver(
    pipeline: Pipeline, delivered: Delivered, rows: int | None, stopped: threading.Event
) -> None:
    items = iter(pipeline)
    with contextlib.closing(items):
        while not stopped.is_set() and (rows is None or len(delivered.rows) < rows):
            item = next(items, None)
            if item is None:
                delivered.ended = True
                break
            delivered.rows += digests_of(item)
