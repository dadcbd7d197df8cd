"""From a compiled plan to an engine that stands at a position: where all parts are built."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from zephon.exec.assemble import Assembler, Naming
from zephon.exec.delivery import Position
from zephon.exec.engine import Engine, Settings
from zephon.exec.history import LaneState
from zephon.exec.lanes import Topology, check_microbatch
from zephon.exec.operator import Operator
from zephon.exec.operators import FetchRows, TokenizeColumn
from zephon.exec.policies import Each, Policy, Wrap
from zephon.exec.runners import InlineRunner, Runner, ThreadsRunner, usable_cores
from zephon.exec.runners.threads import MOST_THREADS
from zephon.exec.segment import Segment
from zephon.exec.tokenizers import Tokenizer, load_tokenizer
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader
from zephon.options import RuntimeOptions
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.logical import Batch, PackFlat
from zephon.planner.tree import source_first
from zephon.work.refs import Refs
from zephon.work.static_mixture import StaticMixtureWorkSource

CACHE_SHARE = 0.6
_ROW_TOKENS_UNKNOWN = 1024


@dataclass(frozen=True, slots=True)
class Workers:
    """Who runs tasks: the runner's name, threads, and batches ready ahead of the caller."""

    runner: str
    count: int
    queue: int


def workers_of(plan: Plan, options: RuntimeOptions) -> Workers:
    """Say which runner runs a plan, with how many workers."""
    runner = options.runner if options.runner not in (None, "auto") else "threads"
    wanted = max((s.parallelism for s in plan.stages if s.is_segment), default=1)
    count = min(wanted, options.max_workers or MOST_THREADS, usable_cores())
    if runner == "inline":
        return Workers("inline", 1, 0)
    if options.prefetch_batches is not None:
        return Workers(runner, count, options.prefetch_batches)
    return Workers(runner, count, 0)


def batch_of(plan: Plan) -> Batch | None:
    """Return the batch call of a plan, if there is one."""
    return plan.logical if isinstance(plan.logical, Batch) else None


def tokenizers_of(plan: Plan, options: RuntimeOptions) -> dict[physical.TokenizeColumn, Tokenizer]:
    """Load the tokenizer of each step that needs one; loaded ones are shared in the process."""
    segments = [n for n in source_first(plan.physical) if isinstance(n, physical.Segment)]
    return {
        step: load_tokenizer(
            tokenizer_id=step.tokenizer_id,
            tokenizer=step.tokenizer,
            backend=options.tokenizer_backend,
            split_special_tokens=step.split_special_tokens,
            add_special_tokens=step.special_tokens == "tokenizer_default",
        )
        for segment in segments
        for step in segment.steps
        if isinstance(step, physical.TokenizeColumn)
    }


def launch(
    plan: Plan,
    source: StaticMixtureWorkSource,
    options: RuntimeOptions,
    topology: Topology,
    start: Position,
    states: Mapping[int, LaneState] | None,
) -> Engine:
    """Build the engine of one rank; nothing is read and no thread starts before its first batch.

    Args:
        states: each lane's state at ``start``; None at the beginning of the data.

    Raises:
        PlanError: the microbatch does not divide the rank's share of a step.
        DatasetError: a shard lacks a column that the plan reads, or has it with another type.
        TokenizerError: the tokenizer cannot be loaded, or lacks an id that the plan needs.
    """
    batch = batch_of(plan)
    batch_rows = 1 if batch is None else batch.microbatch_size
    check_microbatch(topology, batch_rows, start.delivered)
    workers = workers_of(plan, options)
    nodes = source_first(plan.physical)
    layout = next(
        n.layout for n in nodes if isinstance(n, physical.AssembleRows | physical.AssembleBatch)
    )
    pack = next((n for n in source_first(plan.logical) if isinstance(n, PackFlat)), None)
    tokenizers = tokenizers_of(plan, options)
    pad = pack.pad_token_id if pack is not None else None
    if pad is None and tokenizers:
        pad = next(iter(tokenizers.values())).pad_token_id
    resources = _Resources(source, tokenizers, int(options.budget_bytes * CACHE_SHARE))
    stages = [
        [resources.operator(step) for step in node.steps]
        for node in nodes
        if isinstance(node, physical.Segment)
    ]

    def make_runner() -> Runner:
        return InlineRunner() if workers.runner == "inline" else ThreadsRunner(workers.count)

    return Engine(
        topology=topology,
        streams=functools.cache(lambda lane: source.lane_stream(lane, topology.lanes)),
        segment=Segment(stages, layout, functools.partial(locate, source)),
        policy=_policy(nodes),
        assembler=Assembler(layout, _naming(source), packed=pack is not None, pad_token_id=pad),
        make_runner=make_runner,
        settings=Settings(
            batch_rows=batch_rows,
            drop_last=batch is None or batch.drop_last,
            gather_apart=any(isinstance(n, physical.AssembleRows) for n in nodes),
            keeps_rows=all(n.keeps_rows() for n in source_first(plan.logical)),
            queue=workers.queue,
            budget=int(options.budget_bytes * (1 - CACHE_SHARE)),
            row_bytes=_mean_row_bytes(source),
            row_tokens=_row_tokens(plan),
        ),
        components=len(source.components),
        start=start,
        states=None if states is None else dict(states),
    )


def locate(source: StaticMixtureWorkSource, refs: Refs) -> str:
    """Name the first of some rows for an error message."""
    if not len(refs):
        return "no row"
    component = source.components[int(refs.component[0])]
    shard = component.dataset.shards[int(refs.shard[0])]
    return f"dataset {component.name!r}, shard {shard.name!r}, row {int(refs.row[0])}"


class _Resources:
    """Readers and tokenizers that the operators of one engine share."""

    def __init__(
        self,
        source: StaticMixtureWorkSource,
        tokenizers: Mapping[physical.TokenizeColumn, Tokenizer],
        cache_bytes: int,
    ) -> None:
        self._source = source
        self._tokenizers = tokenizers
        self._cache = GroupCache(max(1, cache_bytes))

    def operator(self, step: physical.Step) -> Operator:
        """Build the operator of a physical step."""
        match step:
            case physical.FetchRows():
                readers = {
                    number: RowReader(
                        c.dataset, step.columns, payload=step.payload, cache=self._cache
                    )
                    for number, c in enumerate(self._source.components)
                    if c.weight > 0
                }
                return FetchRows(readers)
            case physical.TokenizeColumn():
                return TokenizeColumn(step, self._tokenizers[step])


def _policy(nodes: list[physical.PhysicalNode]) -> Policy:
    for node in nodes:
        if isinstance(node, physical.PlaceWrap):
            return Wrap(node.max_length)
    return Each()


def _naming(source: StaticMixtureWorkSource) -> Naming:
    shard_ids = [c.dataset.ids() for c in source.components]
    sizes = np.array([len(ids) for ids in shard_ids], np.int64)
    return Naming(
        dataset_id=np.array([c.dataset_id for c in source.components], np.int64),
        shard_id=np.concatenate(shard_ids).astype(np.int64),
        first_shard=np.cumsum(sizes) - sizes,
        chunk_size=source.chunk_size,
    )


def _mean_row_bytes(source: StaticMixtureWorkSource) -> float:
    return sum(c.weight * c.dataset.mean_row_bytes() for c in source.components if c.weight > 0)


def _row_tokens(plan: Plan) -> int:
    pack = next((n for n in source_first(plan.logical) if isinstance(n, PackFlat)), None)
    return _ROW_TOKENS_UNKNOWN if pack is None else pack.max_length
