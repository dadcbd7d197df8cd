"""From a compiled plan to an engine that stands at a position: where all parts are built.

The file is long because every part of an engine is named here, and put together nowhere else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zephon.errors import OptimizerError, PlanError
from zephon.exec.assemble import Assembler
from zephon.exec.delivery import Position
from zephon.exec.edited_source import EditedSource
from zephon.exec.edits import Edit, with_removed
from zephon.exec.engine import Engine, Identity, Settings
from zephon.exec.entries import entries_of
from zephon.exec.floors import floors_of
from zephon.exec.function_edit import FunctionEdit, made_anew
from zephon.exec.handed_out import HandedOut
from zephon.exec.history import LaneState
from zephon.exec.lanes import Topology, check_microbatch
from zephon.exec.limit import all_out, check_limit
from zephon.exec.parts import (
    CHUNK_SIZE,
    Materials,
    load_tokenizers,
    locate,
    naming_of,
    segment_in_worker,
    segment_on,
    tears_down,
)
from zephon.exec.policy_chain import chain_of, measures_of
from zephon.exec.reading import Reading, plan_reading
from zephon.exec.remote_segment import RemoteSegment
from zephon.exec.row_policies import RowPolicies
from zephon.exec.runners import InlineRunner, Runner, ThreadsRunner, usable_cores
from zephon.exec.runners.threads import MOST_THREADS
from zephon.exec.segment import Segment
from zephon.exec.source_facts import SourceFacts
from zephon.exec.tokenizers import Tokenizer
from zephon.exec.towers import Ground
from zephon.io.group_cache import GroupCache
from zephon.io.options import StoreOptions
from zephon.io.spill.spill import Spill
from zephon.options import RuntimeOptions
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.logical import Take
from zephon.planner.tree import source_first
from zephon.work.lane_stream import LaneStream
from zephon.work.schedule import StepSize
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource
from zephon.work.token_lane import TokenLane

REMOVED = "components were removed"
"""Why what lanes hold must be made again where functions see rows together."""


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


def step_of(plan: Plan, rows: int | None) -> StepSize | None:
    """Say what a step of R rows is: tokens where rows are packed, else rows; None without R."""
    if rows is None:
        return None
    length = assembly_of(plan).layout.max_length
    return StepSize(rows, "samples") if length is None else StepSize(rows * length, "tokens")


def workers_of(plan: Plan, options: RuntimeOptions) -> Workers:
    """Say which runner runs a plan, with how many workers."""
    for stage, name in options.per_stage_runner.items():
        if stage >= len(plan.stages):
            raise PlanError(
                f"options: per_stage_runner names stage {stage}, and {name!r} for it; the stages "
                f"are 0 to {len(plan.stages) - 1}, as explain() lists them"
            )
    runner = options.per_stage_runner.get(0, options.runner)
    runner = "threads" if runner in (None, "auto") else runner
    if runner == "inline":
        return Workers("inline", 1, 0)
    wanted = plan.stages[0].parallelism
    calls = [
        step.parallelism
        for step in floors_of(plan)[0].steps()
        if isinstance(step, physical.CallRows | physical.CallGroups)
    ]
    if runner == "process" and calls:  # as many processes as may be inside each function
        wanted = min(calls)
    count = min(wanted, options.max_workers or MOST_THREADS, usable_cores())
    return Workers(runner, count, options.prefetch_batches or 0)


def tokenizers_of(plan: Plan, options: RuntimeOptions) -> dict[physical.MakesTokens, Tokenizer]:
    """Load the tokenizer of each step that needs one; loaded ones are shared in the process."""
    return load_tokenizers(plan, options.tokenizer_backend)


def launch(
    plan: Plan,
    source: WorkSource,
    options: RuntimeOptions,
    tokenizers: Mapping[physical.MakesTokens, Tokenizer],
    identity: Identity,
    topology: Topology,
    start: Position,
    states: Mapping[int, LaneState] | None,
    edits: Sequence[Edit] = (),
    *,
    anew: str = "",
) -> Engine:
    """Build the engine of one rank; nothing is read and no thread starts before its first batch.

    Args:
        tokenizers: of the plan's steps, as ``identity`` describes them.
        states: each lane's state at ``start``; None at the beginning of the data.
        edits: of the run, until then.
        anew: why what lanes hold is to be read, and made again: functions changed since the states
            were taken; or ``REMOVED``.

    Raises:
        PlanError: the microbatch does not divide the rank's share of a step, or the mixture counts
            tokens and the plan has none.
        DatasetError: a shard lacks a column that the plan reads, or has it with another type.
        TokenizerError: the tokenizer cannot be loaded, or lacks an id that the plan needs.
    """
    assembly, floors = assembly_of(plan), floors_of(plan)
    microbatch_size = assembly.microbatch_size or 1
    limit = _limit(plan, topology)
    ended = all_out(start, topology, limit)  # in a step, where the last batch was cut short
    check_microbatch(topology, microbatch_size, 0 if ended else start.delivered)
    workers = workers_of(plan, options)
    packers = [n for n in source_first(plan.physical) if isinstance(n, physical.PackRows)]
    reading = plan_reading(source, options, topology)
    spill = None if reading.spill is None else Spill(reading.spill)
    cache = GroupCache(reading.cache_bytes, spill)
    if source.mixture_unit == "tokens" and floors[0].layout.tokens_field is None:
        raise PlanError(
            "Pipeline: mixture_unit='tokens' counts tokens, and nothing in this plan does: its "
            "rows have no token field; call tokenize() or pack_flat(), or let the mixture count "
            "samples"
        )
    streams = streams_of(plan, source, topology, edits)
    materials = Materials(
        source,
        tokenizers,
        cache,
        workers.count,
        StoreOptions.from_any(options.io_options),
        functools.partial(_chunk_mixture, source, streams),
    )
    names = with_removed((c.name for c in source.components), edits)
    segment, make_runner = _segment_and_runner(plan, materials, options, reading, workers)
    ground = Ground(segment, chain_of(floors[0], names), measures_of(floors[0]))
    # Without some of the rows a function of groups sees others together.
    if states is not None and (segment.window > 1 if anew == REMOVED else anew):
        states = made_anew(
            states,
            anew,
            FunctionEdit(
                # Workers of the run's own do not run yet.
                segment=segment
                if isinstance(segment, Segment)
                else segment_on(floors[0], materials),
                chain=ground.chain,
                measures=ground.measures,
                field=floors[0].layout.tokens_field,
                components=len(names),
                draws=streams,
                has_floors=len(floors) > 1,
            ),
        )
    return Engine(
        identity=identity,
        topology=topology,
        streams=streams,
        ground=ground,
        entries=entries_of(floors, materials, functools.partial(_pad, tokenizers=tokenizers)),
        assembler=Assembler(
            assembly.layout, naming_of(source), pad_token_id=_pad(assembly.layout, tokenizers)
        ),
        make_runner=make_runner,
        release=cache.clear,
        settings=Settings(
            microbatch_size=microbatch_size,
            max_length=assembly.layout.max_length,
            longest=next((n.max_length for n in packers), None),
            drop_last=assembly.drop_last,
            gather_apart=assembly.apart,
            has_tokens=assembly.layout.tokens_field is not None,
            # An edit may have dropped rows, or made others of those that were held.
            keeps_rows=not RowPolicies.of(source).lose_rows
            and all(n.keeps_rows() for n in source_first(plan.optimized))
            and all(state.carried is None for state in (states or {}).values()),
            queue=workers.queue,
            budget=reading.budget - reading.cache_bytes,
            rows=sum(c.dataset.total() for c in source.components if c.read),
            row_bytes=mean_row_bytes(source),
            group_bytes=_group_bytes(source),
            component_bytes=_component_bytes(source, len(names))
            if source.mixture_unit == "tokens"
            else (),
            limit=limit,
            ahead=None
            if RowPolicies.of(source).lose_rows
            else next(s.limit for s in floors[0].steps() if isinstance(s, physical.FetchRows)),
        ),
        handed_out=HandedOut.of(source, options),
        components=names,
        gone=len(names) - len(source.components),
        start=start,
        states=states,
    )


def _limit(plan: Plan, topology: Topology) -> int | None:
    """Say after how many rows of all ranks the run stops; None: at the end of the data."""
    take = next((n for n in source_first(plan.logical) if isinstance(n, Take)), None)
    if take is None:
        return None
    check_limit(topology, take.rows)
    return take.rows


def _segment_and_runner(
    plan: Plan, materials: Materials, options: RuntimeOptions, reading: Reading, workers: Workers
) -> tuple[Segment | RemoteSegment, Callable[[], Runner]]:
    """Build the steps that begin with reading, here or in worker processes, and who runs them."""
    segment = segment_on(floors_of(plan)[0], materials)
    if workers.runner == "inline":
        return segment, InlineRunner
    if workers.runner == "threads":
        return segment, functools.partial(ThreadsRunner, workers.count)
    # Building it here has said what is wrong with it; workers build their own.
    facts = SourceFacts.of(materials.source)
    share = reading.cache_bytes // workers.count
    factory = functools.partial(
        segment_in_worker,
        plan,
        facts,
        options.tokenizer_backend,
        share,
        reading.spill,
        materials.io_options,
    )
    remote = RemoteSegment(
        factory,
        workers.count,
        functools.partial(locate, facts),
        options.max_worker_retries,
        window=segment.window,
        finishes=tears_down(floors_of(plan)[0]),
    )
    return remote, remote.make_runner


def _chunk_mixture(
    source: WorkSource, streams: Callable[[int, Any], LaneStream | TokenLane], lane: int, chunk: int
) -> dict[int, float] | None:
    """Give the weights in force where a chunk of a lane begins, by the id of the component."""
    stream = streams(lane, None)
    if isinstance(stream, TokenLane):  # where it begins depends on tokens
        return None
    weights = stream.weights_at(chunk * (source.chunk_size_hint() or CHUNK_SIZE))
    if weights is None:
        return None
    ids = source.component_ids()
    # Those that are gone from the run, behind the others, have no weight.
    named = zip((c.name for c in source.components), weights.tolist(), strict=False)
    return {ids[name]: weight for name, weight in named if weight}


def streams_of(
    plan: Plan, source: WorkSource, topology: Topology, edits: Sequence[Edit] = ()
) -> Callable[[int, Any], LaneStream | TokenLane]:
    """Return what gives a lane's draws, or its strands; one object a lane for our own mixtures."""
    lanes, step = topology.lanes, step_of(plan, topology.global_batch_size)
    if isinstance(source, StaticMixtureWorkSource):
        draws = functools.cache(EditedSource(source, lanes, step, edits).draws)
        return lambda lane, state: draws(lane)

    @functools.cache
    def at_beginning(lane: int) -> LaneStream | TokenLane:
        return source.lane_stream(lane, lanes, step=step)

    def streams(lane: int, state: Any) -> LaneStream | TokenLane:
        if state is None:
            return at_beginning(lane)
        return source.lane_stream(lane, lanes, step=step, state=state)

    return streams


def _pad(
    layout: physical.RowLayout, tokenizers: Mapping[physical.MakesTokens, Tokenizer]
) -> int | None:
    """Say which id pads rows; a tokenizer without one lends its end-of-sequence id."""
    ids = [layout.pad_token_id]
    ids += [i for t in tokenizers.values() for i in (t.pad_token_id, t.eos_token_id)]
    return next((i for i in ids if i is not None), None)


def _group_bytes(source: WorkSource) -> float:
    """Return the mean bytes of a decoded row group."""
    read = [c for c in source.components if c.read]
    return sum(c.weight * c.dataset.mean_group_bytes() for c in read)


def _component_bytes(source: WorkSource, count: int) -> tuple[float, ...]:
    """Return the mean bytes of a row of each component, of so many; 0 for one that is not read."""
    found = [c.dataset.mean_row_bytes() if c.read else 0.0 for c in source.components]
    return (*found, *[0.0] * (count - len(found)))


def mean_row_bytes(source: WorkSource) -> float:
    """Return the mean bytes of a row of the data."""
    return sum(c.weight * c.dataset.mean_row_bytes() for c in source.components if c.read)
