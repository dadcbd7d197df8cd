"""From a compiled plan to an engine that stands at a position: where all parts are built."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zephon.errors import OptimizerError, PlanError
from zephon.exec.assemble import Assembler, Naming
from zephon.exec.delivery import Position
from zephon.exec.engine import Engine, Identity, Settings
from zephon.exec.history import LaneState
from zephon.exec.lanes import Topology, check_microbatch
from zephon.exec.operator import Operator
from zephon.exec.operators import FetchRowsOp, MeasureRowsOp, TokenizeColumnOp
from zephon.exec.policy_chain import chain_of, measures_of
from zephon.exec.reading import plan_reading
from zephon.exec.runners import InlineRunner, ThreadsRunner, usable_cores
from zephon.exec.runners.threads import MOST_THREADS
from zephon.exec.segment import Segment
from zephon.exec.tokenizers import Tokenizer, load_tokenizer
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader
from zephon.io.spill.spill import Spill
from zephon.options import RuntimeOptions
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.tree import source_first
from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs
from zephon.work.schedule import StepSize
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource
from zephon.work.token_lane import TokenLane

CHUNK_SIZE = 16_384
"""Draws that a chunk id counts, where a work source does not say how large its chunks are."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who runs tasks: the runner's name, threads, and batches ready ahead of the caller."""

    runner: str
    count: int
    queue: int


@dataclass(frozen=True, slots=True)
class Assembly:
    """How placed rows become items.

    microbatch_size: rows of a batch; None: each row is an item. apart: rows are gathered one by
    one and copied into the batch afterwards.
    """

    layout: physical.RowLayout
    microbatch_size: int | None
    drop_last: bool
    apart: bool


def assembly_of(plan: Plan) -> Assembly:
    """Return how a plan assembles its rows: the top of the physical chain."""
    match plan.physical:
        case physical.AssembleBatch() as node:
            return Assembly(node.layout, node.microbatch_size, node.drop_last, apart=False)
        case physical.StackRows(input=physical.AssembleRows() as below) as node:
            return Assembly(below.layout, node.microbatch_size, node.drop_last, apart=True)
        case physical.AssembleRows() as node:
            return Assembly(node.layout, None, drop_last=True, apart=False)
        case node:
            raise OptimizerError(f"launch: no plan ends in {type(node).__name__}")


def step_of(plan: Plan, topology: Topology) -> StepSize | None:
    """Say what a step of the run is: tokens where rows are packed, else rows; None without R."""
    rows = topology.global_batch_size
    if rows is None:
        return None
    length = assembly_of(plan).layout.max_length
    return StepSize(rows, "samples") if length is None else StepSize(rows * length, "tokens")


def workers_of(plan: Plan, options: RuntimeOptions) -> Workers:
    """Say which runner runs a plan, with how many workers."""
    runner = options.runner if options.runner not in (None, "auto") else "threads"
    if runner == "inline":
        return Workers("inline", 1, 0)
    wanted = max((s.parallelism for s in plan.stages if s.is_segment), default=1)
    count = min(wanted, options.max_workers or MOST_THREADS, usable_cores())
    return Workers(runner, count, options.prefetch_batches or 0)


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
    source: WorkSource,
    options: RuntimeOptions,
    tokenizers: Mapping[physical.TokenizeColumn, Tokenizer],
    identity: Identity,
    topology: Topology,
    start: Position,
    states: Mapping[int, LaneState] | None,
) -> Engine:
    """Build the engine of one rank; nothing is read and no thread starts before its first batch.

    Args:
        tokenizers: of the plan's steps, as ``identity`` describes them.
        states: each lane's state at ``start``; None at the beginning of the data.

    Raises:
        PlanError: the microbatch does not divide the rank's share of a step, or the mixture counts
            tokens and the plan has none.
        DatasetError: a shard lacks a column that the plan reads, or has it with another type.
        TokenizerError: the tokenizer cannot be loaded, or lacks an id that the plan needs.
    """
    assembly = assembly_of(plan)
    microbatch_size = assembly.microbatch_size or 1
    check_microbatch(topology, microbatch_size, start.delivered)
    workers = workers_of(plan, options)
    packers = [n for n in source_first(plan.physical) if isinstance(n, physical.PackRows)]
    reading = plan_reading(source, options, topology)
    spill = None if reading.spill is None else Spill(reading.spill)
    cache = GroupCache(reading.cache_bytes, spill)
    if source.mixture_unit == "tokens" and assembly.layout.tokens_field is None:
        raise PlanError(
            "Pipeline: mixture_unit='tokens' counts tokens, and nothing in this plan does: its "
            "rows have no token field; call tokenize() or pack_flat(), or let the mixture count "
            "samples"
        )
    return Engine(
        identity=identity,
        topology=topology,
        streams=streams_of(plan, source, topology),
        segment=segment_of(plan, source, tokenizers, cache),
        chain=chain_of(plan, source),
        measures=measures_of(plan),
        assembler=Assembler(
            assembly.layout, _naming(source), pad_token_id=_pad(assembly.layout, tokenizers)
        ),
        make_runner=lambda: (
            InlineRunner() if workers.runner == "inline" else ThreadsRunner(workers.count)
        ),
        release=cache.clear,
        settings=Settings(
            microbatch_size=microbatch_size,
            max_length=assembly.layout.max_length,
            longest=next((n.max_length for n in packers), None),
            drop_last=assembly.drop_last,
            gather_apart=assembly.apart,
            keeps_rows=all(n.keeps_rows() for n in source_first(plan.optimized)),
            queue=workers.queue,
            budget=reading.budget - reading.cache_bytes,
            rows=sum(c.dataset.total() for c in source.components if c.read),
            row_bytes=mean_row_bytes(source),
            group_bytes=_group_bytes(source),
            component_bytes=tuple(
                c.dataset.mean_row_bytes() if c.read else 0.0 for c in source.components
            )
            if source.mixture_unit == "tokens"
            else (),
        ),
        components=tuple(c.name for c in source.components),
        start=start,
        states=states,
    )


def streams_of(
    plan: Plan, source: WorkSource, topology: Topology
) -> Callable[[int, Any], LaneStream | TokenLane]:
    """Return what gives a lane's draws, or its strands; one object a lane at the beginning."""
    lanes, step = topology.lanes, step_of(plan, topology)

    @functools.cache
    def at_beginning(lane: int) -> LaneStream | TokenLane:
        if isinstance(source, StaticMixtureWorkSource) and source.mixture_unit == "tokens":
            return source.token_lane(lane, lanes, step=step)
        return source.lane_stream(lane, lanes, step=step)

    def streams(lane: int, state: Any) -> LaneStream | TokenLane:
        if state is None:
            return at_beginning(lane)
        return source.lane_stream(lane, lanes, step=step, state=state)

    return streams


def segment_of(
    plan: Plan,
    source: WorkSource,
    tokenizers: Mapping[physical.TokenizeColumn, Tokenizer],
    cache: GroupCache,
) -> Segment:
    """Build all stateless steps of a plan; its readers keep decoded row groups in the cache."""
    operator = functools.partial(_operator, source=source, tokenizers=tokenizers, cache=cache)
    segments = [n for n in source_first(plan.physical) if isinstance(n, physical.Segment)]
    return Segment(
        [[operator(step) for step in segment.steps] for segment in segments],
        assembly_of(plan).layout,
        functools.partial(locate, source),
    )


def _operator(
    step: physical.Step,
    *,
    source: WorkSource,
    tokenizers: Mapping[physical.TokenizeColumn, Tokenizer],
    cache: GroupCache,
) -> Operator:
    """Build the operator of a physical step; readers share the cache."""
    match step:
        case physical.FetchRows():
            components = [(number, c) for number, c in enumerate(source.components) if c.read]
            readers = {
                c.dataset_id: RowReader(c.dataset, step.columns, payload=step.payload, cache=cache)
                for c in {c.dataset_id: c for _, c in components}.values()
            }
            return FetchRowsOp({number: readers[c.dataset_id] for number, c in components})
        case physical.TokenizeColumn():
            return TokenizeColumnOp(step, tokenizers[step])
        case physical.MeasureRows():
            return MeasureRowsOp(step)


def _pad(
    layout: physical.RowLayout, tokenizers: Mapping[physical.TokenizeColumn, Tokenizer]
) -> int | None:
    """Say which id pads rows; a tokenizer without one lends its end-of-sequence id."""
    ids = [layout.pad_token_id]
    ids += [i for t in tokenizers.values() for i in (t.pad_token_id, t.eos_token_id)]
    return next((i for i in ids if i is not None), None)


def locate(source: WorkSource, refs: Refs) -> str:
    """Name the first of some rows for an error message."""
    if not len(refs):
        return "no row"
    component = source.components[int(refs.component[0])]
    shard = component.dataset.shards[int(refs.shard[0])]
    return f"dataset {component.dataset.name!r}, shard {shard.name!r}, row {int(refs.row[0])}"


def _naming(source: WorkSource) -> Naming:
    component_ids = source.component_ids()
    # Several components may read one dataset, whose shards are named once.
    shard_ids = {c.dataset_id: c.dataset.ids() for c in source.components}
    sizes = np.array([len(ids) for ids in shard_ids.values()], np.int64)
    first_shard = dict(zip(shard_ids, (np.cumsum(sizes) - sizes).tolist(), strict=True))
    return Naming(
        component_id=np.array([component_ids[c.name] for c in source.components], np.int32),
        dataset_id=np.array([c.dataset_id for c in source.components], np.int64),
        shard_id=np.concatenate(list(shard_ids.values())).astype(np.int64),
        first_shard=np.array([first_shard[c.dataset_id] for c in source.components], np.int64),
        chunk_size=source.chunk_size_hint() or CHUNK_SIZE,
    )


def _group_bytes(source: WorkSource) -> float:
    """Return the mean bytes of a decoded row group."""
    read = [c for c in source.components if c.read]
    return sum(c.weight * c.dataset.mean_group_bytes() for c in read)


def mean_row_bytes(source: WorkSource) -> float:
    """Return the mean bytes of a row of the data."""
    return sum(c.weight * c.dataset.mean_row_bytes() for c in source.components if c.read)
