"""Logical chain to physical chain, one case a node.

The file is long because there are many nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from zephon.errors import OptimizerError
from zephon.planner.dataflow import Flow, flow_of
from zephon.planner.logical import (
    Batch,
    Columns,
    CustomOp,
    DecodeText,
    EnsureMixture,
    ExpandChat,
    Fetch,
    MakesTokens,
    MapTransform,
    Materialize,
    Node,
    NormalizeChat,
    PackFlat,
    PackSequences,
    Prefetch,
    Shuffle,
    Stateful,
    Tokenize,
    TokenizeChat,
)
from zephon.planner.logical.custom import GROUP
from zephon.planner.logical.pack import Pack
from zephon.planner.physical import (
    AssembleRows,
    CallGroups,
    CallInOrder,
    CallRows,
    ComputeColumns,
    FetchRows,
    JoinSplits,
    KeepMixture,
    MeasureRows,
    PackRows,
    PartSplits,
    PhysicalNode,
    ReorderWindows,
    RowLayout,
    Segment,
    Shape,
    ShuffleUnits,
    StackRows,
    Step,
    TokenizeColumn,
    TokenizeConversation,
    TypeColumns,
)
from zephon.planner.sections import PythonStep, Section, sections_of
from zephon.planner.shapes import shape_of
from zephon.planner.tree import source_first


def lower(plan: Node, *, barrier_rows: int = 0) -> PhysicalNode:
    """Say how each step runs: segments, then policies, then one assembly, then batches.

    Stateless steps run before all policies, wherever they were called: they are pure row by row,
    so rows shuffled and then tokenized are rows tokenized and then shuffled. An operator that must
    see rows in order stands between two such runs: see ``sections``.

    Args:
        plan: a chain of nodes.
        barrier_rows: rows after which an operator that remembers, and cannot write its memory down,
            begins anew.
    """
    steps = source_first(plan)
    sections = sections_of(steps)
    physical: PhysicalNode | None = None
    layout = RowLayout(tokens_field=None)
    for section in sections:
        if section.entry is not None:
            op = replace(section.entry, input=None)
            every = _every(section.entry, barrier_rows)
            physical = CallInOrder(input=physical, op=op, layout=layout, every=every)
        flow = flow_of(section.steps, of_records=section.of_records)
        layout = _layout(section, flow)
        for step, parallelism in _segment_steps(section, flow, layout):
            physical = Segment(input=physical, steps=(step,), parallelism=parallelism)
        for policy in _policies(list(section.steps), layout):
            physical = replace(policy, input=physical)
    physical = AssembleRows(input=physical, layout=layout)
    batch = next((node for node in steps if isinstance(node, Batch)), None)
    if batch is None:
        return physical
    return StackRows(
        input=physical, microbatch_size=batch.microbatch_size, drop_last=batch.drop_last
    )


def _every(op: PythonStep, barrier_rows: int) -> int:
    """Say after how many groups an operator begins anew; see ``physical.CallInOrder``."""
    if isinstance(op, Stateful):
        return 0 if op.snapshot is not None else max(1, -(-barrier_rows // GROUP))
    if isinstance(op, CustomOp) and op.remembers:
        return max(1, -(-barrier_rows // GROUP))
    return 1


def _segment_steps(section: Section, flow: Flow, layout: RowLayout) -> Iterator[tuple[Step, int]]:
    """Give the stateless steps of a section, each with the tasks that may run it at once."""
    steps = section.steps
    rows = _RowForm(section)
    for number, (node, given) in enumerate(zip(steps, flow.given, strict=True)):
        if given.made:
            keep = given.rows_after or not isinstance(node, MakesTokens | Pack)
            yield TypeColumns(columns=given.made, keep_payload=keep), 1
        match node:
            case Fetch():
                yield _fetch(node, flow, steps), node.parallelism
            case Columns():
                movable = not section.of_records
                movable &= not any(below.takes_rows for below in steps[:number])
                shape = shape_of(node.steps) if given.rows_after else None
                if shape == Shape(below=True):
                    shape = None
                yield (
                    ComputeColumns(
                        steps=node.steps,
                        keep=tuple(sorted(given.wanted)),
                        shape=shape,
                        tokens=tuple(name for name in node.token_fields() if _reads(node, name)),
                        moved=given.moved,
                        movable=movable,
                        late_faults=_filters(steps[number + 1 :]),
                    ),
                    1,
                )
            case MapTransform() | DecodeText() | NormalizeChat() | ExpandChat():
                call = replace(node, input=None)
                yield CallRows(calls=(call,), **rows.form()), node.parallelism
            case CustomOp():
                yield CallGroups(op=replace(node, input=None), **rows.form()), node.parallelism
            case Tokenize():
                yield _tokenize(node, node.field), node.parallelism
            case TokenizeChat():
                yield TokenizeConversation(node=replace(node, input=None)), node.parallelism
            case Shuffle() | EnsureMixture() | Pack():
                measure = _measure(number, steps, layout, rows)
                if measure is not None:
                    yield measure, 1
            case Prefetch() | Materialize():
                pass  # local shards need no warming
            case _:
                raise OptimizerError(f"lower: no physical form for {type(node).__name__}")
        rows.past(node)


class _RowForm:
    """What earlier steps made as columns, beside whole rows, as a row shows it."""

    def __init__(self, section: Section) -> None:
        self._tokens: MakesTokens | None = None

    def past(self, node: Node) -> None:
        """Go past a step."""
        if isinstance(node, MakesTokens):
            self._tokens = node
        elif node.takes_rows:
            self._tokens = None

    def form(self) -> dict[str, Any]:
        """Give the fields of a step that looks at whole rows."""
        node = self._tokens
        if node is None:
            return {"token_fields": (), "masks": (), "container": "list"}
        return {
            "token_fields": ("input_ids", *(name for name, _ in node.written())),
            "masks": node.implied(),
            "container": node.held_in(),
        }


def _reads(node: Columns, name: str) -> bool:
    return any(name in each.reads for step in node.steps for each in step.expressions)


def _fetch(node: Fetch, flow: Flow, steps: Sequence[Node]) -> FetchRows:
    """Read what the steps use."""
    return FetchRows(
        columns=flow.columns if node.columns is None else node.columns,
        payload=flow.rows if node.columns is None else node.payload,
        frame=flow.frame if node.columns is None else node.frame,
        predicates=node.predicates,
        late_faults=_filters(steps[1:]),
        limit=node.limit,
    )


def _filters(steps: Sequence[Node]) -> bool:
    """Say whether rows are filtered before another step than one on columns looks at them.

    Till then a bad row is no error: a filter may drop it, as it would while reading, where the
    optimizer puts it.
    """
    for node in steps:
        if isinstance(node, Columns):
            if not node.keeps_rows():
                return True
        elif node.reads() or node.takes_rows or node.measure() is not None:
            return False
    return False


def _measure(number: int, steps: Sequence[Node], layout: RowLayout, rows: _RowForm) -> Step | None:
    """Say what a policy must know of each row beside its tokens, and no step has measured yet."""
    measure = steps[number].measure()
    if measure is None or measure in [node.measure() for node in steps[:number]]:
        return None
    if measure.field is not None and measure.field == layout.tokens_field:
        return None  # the length of the tokens is known anyway
    form = rows.form()
    return MeasureRows(
        name=measure.name,
        function=measure.function,
        field=measure.field,
        **(form if form["token_fields"] else {**form, "container": layout.container}),
    )


def _policies(steps: list[Node], layout: RowLayout) -> list[PhysicalNode]:
    """List the policies, each without its input."""
    found: list[PhysicalNode] = []
    split = next((i for i, n in enumerate(steps) if isinstance(n, Tokenize)), -1)
    joins = split >= 0 and not steps[split].keeps_rows()
    joins &= any(isinstance(node, Shuffle | EnsureMixture) for node in steps[: split + 1])
    if joins:
        found.append(JoinSplits())
    for number, node in enumerate(steps):
        if joins and number == split:
            found.append(PartSplits())
        stage = sum(below.reorders for below in steps[:number])
        match node:
            case Shuffle():
                found.append(
                    ShuffleUnits(
                        algorithm=node.algorithm,
                        buffer_size=node.buffer_size,
                        seed=node.seed,
                        warmup_growth=node.warmup_growth,
                        stage=stage,
                    )
                )
            case EnsureMixture():
                found.append(_keep_mixture(node, layout))
            case PackFlat() | PackSequences():
                if node.shuffle_strategy is not None:
                    found.append(
                        ReorderWindows(
                            order=node.shuffle_strategy,
                            seed=node.shuffle_seed or 0,
                            by_length=node.measure() is not None,
                            stage=stage,
                        )
                    )
                found.append(_pack(node))
            case _:
                pass
    return found


def _keep_mixture(node: EnsureMixture, layout: RowLayout) -> KeepMixture:
    weight_by = node.weight_by
    if weight_by in ("field", "function"):
        weight_by = "weight"
        if node.weight_field is not None and node.weight_field == layout.tokens_field:
            weight_by = "tokens"
    return KeepMixture(
        max_buffer_size=node.max_buffer_size,
        drain_target_ratio=node.drain_target_ratio,
        obsolete_drain_rate=node.obsolete_drain_rate,
        weight_by=weight_by,
        warn_tolerance=node.warn_tolerance,
        mixture=node.mixture,
    )


def _pack(node: Pack) -> PackRows:
    return PackRows(
        algorithm=node.algorithm,
        max_length=node.max_length,
        num_bins=node.num_bins,
        max_sequences_per_bin=node.max_sequences_per_bin,
        min_sequence_length=node.min_sequence_length,
        flush_strategy=node.flush_strategy,
        candidate_pool_size=node.candidate_pool_size,
        max_candidate_age=node.max_candidate_age,
        by_length=node.measure() is not None,
        domains=node.domains,
    )


def _tokenize(node: Tokenize, field: str) -> TokenizeColumn:
    return TokenizeColumn(
        tokenizer=node.tokenizer,
        tokenizer_id=node.tokenizer_id,
        split_special_tokens=node.split_special_tokens,
        field=field,
        special_tokens=node.special_tokens,
        bos_token_id=node.bos_token_id,
        eos_token_id=node.eos_token_id,
        max_length=node.max_length,
        truncation=node.truncation,
        split_long_samples=node.split_long_samples,
        padding=node.padding,
        keep_mask=bool(node.written()),
        keep_payload=node.preserve_upstream_payload,
    )


def _layout(section: Section, flow: Flow) -> RowLayout:
    steps = list(section.steps)
    made = next((n for n in reversed(steps) if n.takes_rows or isinstance(n, MakesTokens)), None)
    made = made if isinstance(made, MakesTokens) else None
    pack = next((n for n in steps if isinstance(n, Pack)), None)
    written = () if made is None else made.written()
    aligned, kinds = tuple(name for name, _ in written), tuple(kind for _, kind in written)
    container = "list" if made is None else made.held_in()
    tokens_field = None if made is None else "input_ids"
    if pack is not None:
        tokens_field = pack.tokens_field
        aligned += tuple(column.path for column in pack.aligned)
        kinds += tuple(column.kind for column in pack.aligned)
        container = container if made is not None else pack.container
    flat = pack if isinstance(pack, PackFlat) else None
    return RowLayout(
        tokens_field=tokens_field,
        aligned=aligned,
        aligned_kinds=kinds,
        masks=() if made is None else made.implied(),
        positions=flat is not None and flat.emit_positions,
        packing="none" if pack is None else "sequences" if flat is None else "flat",
        max_length=None if pack is None or pack.measure() is not None else pack.max_length,
        pad_token_id=None if flat is None else flat.pad_token_id,
        pack_payloads=pack.pack_payloads if isinstance(pack, PackSequences) else None,
        max_document=pack.max_length if pack is not None and pack.refuses_oversized else None,
        max_document_call="pack_flat" if pack is None else pack.call,
        payload=(bool(flow.given) and flow.given[-1].rows_after) or not flow.given,
        metas=section.of_records or any(node.makes_metas for node in steps),
        container=container,
        pad_to_longest=isinstance(made, Tokenize) and made.padding == "longest" and pack is None,
    )
