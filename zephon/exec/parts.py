"""The stateless parts of a plan, built: operators from physical steps, segments from operators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from zephon.exec.assemble import Naming
from zephon.exec.chat.struct_nulls import padded_components
from zephon.exec.floors import Floor, floors_of
from zephon.exec.operator import Operator
from zephon.exec.operators import (
    CallGroupsOp,
    CallRowsOp,
    ComputeColumnsOp,
    FetchRowsOp,
    MeasureRowsOp,
    TokenizeChatOp,
    TokenizeColumnOp,
    TypeColumnsOp,
)
from zephon.exec.row_metas import row_namer
from zephon.exec.row_policies import RowPolicies
from zephon.exec.segment import Segment
from zephon.exec.source_facts import SourceFacts
from zephon.exec.tokenizers import Tokenizer, load_tokenizer
from zephon.expressions import RowFilter
from zephon.io.far_reading import FarReading
from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.options import StoreOptions
from zephon.io.reader import RowReader
from zephon.io.spill.spill import Spill, SpillSettings
from zephon.ops import BaseOp
from zephon.ops.context import OpServices
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.logical.custom import GROUP
from zephon.work.refs import Refs
from zephon.work.source import WorkSource

CHUNK_SIZE = 16_384
"""Draws that a chunk id counts, where a work source does not say how large its chunks are."""


def _unknown(lane: int, chunk: int) -> None:
    """Say that nobody knows the mixture."""


@dataclass(frozen=True, slots=True)
class Materials:
    """What operators are made of, beside their steps.

    tokenizers: of all steps of the plan. cache: where readers keep decoded row groups. at_once:
    tasks that run at once. io_options, chunk_mixture: what operators of the user may ask for.
    """

    source: WorkSource | SourceFacts
    tokenizers: Mapping[physical.MakesTokens, Tokenizer]
    cache: GroupCache
    at_once: int = 1
    io_options: StoreOptions | None = None
    chunk_mixture: Callable[[int, int], Mapping[int, float] | None] = _unknown


def segment_of(
    plan: Plan,
    source: WorkSource | SourceFacts,
    tokenizers: Mapping[physical.MakesTokens, Tokenizer],
    cache: GroupCache,
    *,
    at_once: int = 1,
    io_options: StoreOptions | None = None,
) -> Segment:
    """Build the stateless steps that begin with reading; see ``Materials`` for the arguments."""
    return segment_on(floors_of(plan)[0], Materials(source, tokenizers, cache, at_once, io_options))


def segment_on(floor: Floor, materials: Materials) -> Segment:
    """Build the stateless steps of one floor; its readers keep decoded row groups in the cache."""
    return Segment(
        [[_operator(step, floor, materials) for step in s.steps] for s in floor.segments],
        floor.layout,
        functools.partial(locate, materials.source),
        window=window_of(floor),
        policies=RowPolicies.of(materials.source),
        of_records=floor.entry is not None,
    )


def window_of(floor: Floor) -> int:
    """Say how many draws must be run together."""
    groups = any(isinstance(step, physical.CallGroups) for step in floor.steps())
    return GROUP if groups else 1


def tears_down(floor: Floor) -> bool:
    """Tell whether an operator of the user wants to be told of the end of its worker."""
    ops = [step.op for step in floor.steps() if isinstance(step, physical.CallGroups)]
    return any(
        op.instance is not None and type(op.instance).teardown is not BaseOp.teardown for op in ops
    )


def load_tokenizers(plan: Plan, backend: str) -> dict[physical.MakesTokens, Tokenizer]:
    """Load the tokenizer of each step that needs one; loaded ones are shared in the process."""
    return {
        step: load_tokenizer(
            tokenizer_id=step.tokenizer_id,
            tokenizer=step.tokenizer,
            backend=backend,
            split_special_tokens=step.split_special_tokens,
            add_special_tokens=step.special_tokens == "tokenizer_default",
        )
        for floor in floors_of(plan)
        for step in floor.steps()
        if isinstance(step, physical.MakesTokens)
    }


def segment_in_worker(
    plan: Plan,
    source: SourceFacts,
    backend: str,
    cache_bytes: int,
    spill: SpillSettings | None,
    io_options: StoreOptions | None,
) -> Segment:
    """Build what a worker process runs, with tokenizers and a cache of its own."""
    cache = GroupCache(cache_bytes, None if spill is None else Spill(spill))
    tokenizers = load_tokenizers(plan, backend)
    materials = Materials(source, tokenizers, cache, io_options=io_options)
    return segment_on(floors_of(plan)[0], materials)


def _operator(step: physical.Step, floor: Floor, materials: Materials) -> Operator:
    """Build the operator of a physical step."""
    source = materials.source
    match step:
        case physical.FetchRows():
            return _fetch(step, materials)
        case physical.ComputeColumns():
            if not _may_lose_rows(step, floor, source) or step.late_faults:
                return ComputeColumnsOp(step)
            made = ComputeColumnsOp(replace(step, late_faults=True))
            made.settles = True
            return made
        case physical.TypeColumns():
            nulls = RowPolicies.of(source).nulls() if _may_lose_rows(step, floor, source) else ()
            return TypeColumnsOp(step, nulls)
        case physical.CallRows():
            at_once = min(step.parallelism, materials.at_once)
            return CallRowsOp(step, row_namer(naming_of(source)), at_once=at_once)
        case physical.CallGroups():
            return CallGroupsOp(
                step,
                services_of(materials, in_order=False),
                row_namer(naming_of(source)),
                at_once=min(step.parallelism, materials.at_once),
                by_component=source.mixture_unit == "tokens",
                stage_info=floor.op_place(step),
            )
        case physical.TokenizeColumn():
            return TokenizeColumnOp(step, materials.tokenizers[step])
        case physical.TokenizeConversation():
            padded = padded_components(source)
            return TokenizeChatOp(step.node, materials.tokenizers[step], padded)
        case physical.MeasureRows():
            return MeasureRowsOp(step)


def _may_lose_rows(step: physical.Step, floor: Floor, source: WorkSource | SourceFacts) -> bool:
    """Whether a step gets single rows of datasets, some of which let bad ones go."""
    steps = floor.steps()
    before = steps[: next(n for n, each in enumerate(steps) if each is step)]
    grouped = floor.entry is not None or any(isinstance(n, physical.CallGroups) for n in before)
    return not grouped and RowPolicies.of(source).lose_rows


def _fetch(step: physical.FetchRows, materials: Materials) -> FetchRowsOp:
    """Make one reader a dataset; all share the cache."""
    components = [(n, c) for n, c in enumerate(materials.source.components) if c.read]
    far = FarReading.of(StoreOptions.from_any(materials.io_options))
    readers = {
        c.dataset_id: RowReader(
            c.dataset,
            _with_nulls(step.columns, c.dataset.policy.null_text),
            payload=step.payload,
            cache=materials.cache,
            keep=RowFilter(step.predicates) if step.predicates else None,
            frame=step.frame,
            far=far,
        )
        for c in {c.dataset_id: c for _, c in components}.values()
    }
    found = {number: readers[c.dataset_id] for number, c in components}
    lose = RowPolicies.of(materials.source).lose_rows
    made = FetchRowsOp(found, late_faults=step.late_faults or lose)
    made.settles = lose and not step.late_faults
    return made


def _with_nulls(columns: Sequence[Column], null_text: str) -> tuple[Column, ...]:
    """Say of columns of text what a null in them means."""
    return tuple(replace(c, null=null_text) if c.kind == "text" else c for c in columns)


def services_of(materials: Materials, *, in_order: bool) -> OpServices:
    """Give what operators of the user may ask for.

    Args:
        materials: of the plan.
        in_order: the operator sees rows in the order of their lane; others may run anywhere, also
            where nobody knows the mixture.
    """
    source = materials.source
    return OpServices(
        datasets_by_id={c.dataset_id: c.dataset for c in source.components},
        io_options=materials.io_options,
        component_ids=source.component_ids(),
        chunk_mixture=materials.chunk_mixture if in_order else _unknown,
    )


def locate(source: WorkSource | SourceFacts, refs: Refs) -> str:
    """Name the first of some rows for an error message."""
    if not len(refs):
        return "no row"
    component = source.components[int(refs.component[0])]
    shard = component.dataset.shards[int(refs.shard[0])]
    return f"dataset {component.dataset.name!r}, shard {shard.name!r}, row {int(refs.row[0])}"


def naming_of(source: WorkSource | SourceFacts) -> Naming:
    """Say how references of a source become public ids."""
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
