"""Logical chain to physical chain, one case a node."""

from __future__ import annotations

from dataclasses import replace

from zephon.errors import OptimizerError
from zephon.planner.logical import (
    Batch,
    EnsureMixture,
    Fetch,
    Node,
    PackFlat,
    PackSequences,
    Prefetch,
    Shuffle,
    Tokenize,
)
from zephon.planner.logical.pack import Pack
from zephon.planner.physical import (
    AssembleRows,
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
    ShuffleUnits,
    StackRows,
    Step,
    TokenizeColumn,
)
from zephon.planner.tree import columns_read, source_first, whole_rows_needed


def lower(plan: Node) -> PhysicalNode:
    """Say how each step runs: segments, then policies, then one assembly, then batches.

    Stateless steps run before all policies, wherever they were called: they are pure row by row,
    so rows shuffled and then tokenized are rows tokenized and then shuffled.
    """
    steps = source_first(plan)
    layout = _layout(steps)
    physical = _segments(steps, layout)
    for policy in _policies(steps, layout):
        physical = replace(policy, input=physical)
    physical = AssembleRows(input=physical, layout=layout)
    match steps[-1]:
        case Batch() as node:
            return StackRows(
                input=physical, microbatch_size=node.microbatch_size, drop_last=node.drop_last
            )
        case _:
            return physical


def _segments(steps: list[Node], layout: RowLayout) -> PhysicalNode | None:
    physical: PhysicalNode | None = None
    for number, node in enumerate(steps):
        match node:
            case Fetch():
                columns = columns_read(steps) if node.columns is None else node.columns
                payload = node.payload if node.columns is not None else whole_rows_needed(steps[1:])
                fetch = FetchRows(columns=columns, payload=payload)
                physical = Segment(steps=(fetch,), parallelism=node.parallelism)
            case Tokenize():
                physical = Segment(
                    input=physical, steps=(_tokenize(node),), parallelism=node.parallelism
                )
            case Prefetch() | Batch():
                pass  # local shards need no warming
            case Shuffle() | EnsureMixture() | Pack():
                measure = _measure(number, steps, layout)
                if measure is not None:
                    physical = Segment(input=physical, steps=(measure,), parallelism=1)
            case _:
                raise OptimizerError(f"lower: no physical form for {type(node).__name__}")
    if physical is None:
        raise OptimizerError("lower: the plan is empty")
    return physical


def _measure(number: int, steps: list[Node], layout: RowLayout) -> Step | None:
    """Say what a policy must know of each row beside its tokens, and no step has measured yet."""
    measure = steps[number].measure()
    if measure is None or measure in [node.measure() for node in steps[:number]]:
        return None
    if measure.field is not None and measure.field == layout.tokens_field:
        return None  # the length of the tokens is known anyway
    tokenize = next((n for n in steps[:number] if isinstance(n, Tokenize)), None)
    return MeasureRows(
        name=measure.name,
        function=measure.function,
        field=measure.field,
        token_fields=() if tokenize is None else ("input_ids", *_kept_mask(tokenize)),
        masks=() if tokenize is None else _implied_mask(tokenize),
        container=layout.container,
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


def _tokenize(node: Tokenize) -> TokenizeColumn:
    return TokenizeColumn(
        tokenizer=node.tokenizer,
        tokenizer_id=node.tokenizer_id,
        split_special_tokens=node.split_special_tokens,
        field=node.field,
        special_tokens=node.special_tokens,
        bos_token_id=node.bos_token_id,
        eos_token_id=node.eos_token_id,
        max_length=node.max_length,
        truncation=node.truncation,
        split_long_samples=node.split_long_samples,
        padding=node.padding,
        keep_mask=bool(_kept_mask(node)),
        keep_payload=node.preserve_upstream_payload,
    )


def _kept_mask(node: Tokenize) -> tuple[str, ...]:
    return ("attention_mask",) if node.add_attention_mask and not node.mask_implied else ()


def _implied_mask(node: Tokenize) -> tuple[str, ...]:
    return ("attention_mask",) if node.add_attention_mask and node.mask_implied else ()


def _layout(steps: list[Node]) -> RowLayout:
    tokenize = next((n for n in steps if isinstance(n, Tokenize)), None)
    pack = next((n for n in steps if isinstance(n, Pack)), None)
    aligned = () if tokenize is None else _kept_mask(tokenize)
    kinds = ("int32",) * len(aligned)
    container = "list" if tokenize is None else tokenize.return_tensors or "list"
    tokens_field = None if tokenize is None else "input_ids"
    if pack is not None:
        tokens_field = pack.tokens_field
        aligned += tuple(column.path for column in pack.aligned)
        kinds += tuple(column.kind for column in pack.aligned)
        container = container if tokenize is not None else pack.container
    flat = pack if isinstance(pack, PackFlat) else None
    return RowLayout(
        tokens_field=tokens_field,
        aligned=aligned,
        aligned_kinds=kinds,
        masks=() if tokenize is None else _implied_mask(tokenize),
        positions=flat is not None and flat.emit_positions,
        packing="none" if pack is None else "sequences" if flat is None else "flat",
        max_length=None if pack is None or pack.measure() is not None else pack.max_length,
        pad_token_id=None if flat is None else flat.pad_token_id,
        pack_payloads=pack.pack_payloads if isinstance(pack, PackSequences) else None,
        max_document=pack.max_length if pack is not None and pack.refuses_oversized else None,
        max_document_call="pack_flat" if pack is None else pack.call,
        payload=all(node.keeps_payload() for node in steps),
        container=container,
        pad_to_longest=tokenize is not None and tokenize.padding == "longest" and pack is None,
    )
