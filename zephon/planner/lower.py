"""Logical chain to physical chain, one case a node."""

from __future__ import annotations

from zephon.errors import OptimizerError
from zephon.io.fields import Column
from zephon.planner.logical import Batch, Fetch, Node, PackFlat, Prefetch, Tokenize
from zephon.planner.physical import (
    AssembleRows,
    FetchRows,
    PhysicalNode,
    PlaceEach,
    PlaceWrap,
    RowLayout,
    Segment,
    StackRows,
    TokenizeColumn,
)
from zephon.planner.tree import source_first


def lower(plan: Node) -> PhysicalNode:
    """Say how each step runs: segments, then one policy, then one assembly, then batches."""
    steps = source_first(plan)
    physical: PhysicalNode | None = None
    layout = _layout(steps)
    placed = False
    for node in steps:
        match node:
            case Fetch():
                columns = node.columns
                physical = Segment(
                    steps=(
                        FetchRows(
                            columns=_all_reads(steps) if columns is None else columns,
                            payload=node.payload,
                        ),
                    ),
                    parallelism=node.parallelism,
                )
            case Prefetch():
                pass  # local shards need no warming
            case Tokenize():
                physical = Segment(
                    input=physical, steps=(_tokenize(node),), parallelism=node.parallelism
                )
            case PackFlat():
                placed = True
                physical = PlaceWrap(input=physical, max_length=node.max_length)
                physical = AssembleRows(input=physical, layout=layout)
            case Batch():
                if not placed:
                    placed = True
                    physical = AssembleRows(input=PlaceEach(input=physical), layout=layout)
                physical = StackRows(
                    input=physical, microbatch_size=node.microbatch_size, drop_last=node.drop_last
                )
            case _:
                raise OptimizerError(f"lower: no physical form for {type(node).__name__}")
    if not placed:
        physical = AssembleRows(input=PlaceEach(input=physical), layout=layout)
    if physical is None:
        raise OptimizerError("lower: the plan is empty")
    return physical


def _all_reads(steps: list[Node]) -> tuple[Column, ...]:
    return tuple(dict.fromkeys(column for node in steps for column in node.reads()))


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
        keep_mask=node.add_attention_mask and not node.mask_implied,
        keep_payload=node.preserve_upstream_payload,
    )


def _layout(steps: list[Node]) -> RowLayout:
    tokenize = next((n for n in steps if isinstance(n, Tokenize)), None)
    pack = next((n for n in steps if isinstance(n, PackFlat)), None)
    aligned: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    if tokenize is not None and tokenize.add_attention_mask:
        if tokenize.mask_implied:
            masks = ("attention_mask",)
        else:
            aligned = ("attention_mask",)
    if pack is not None:
        tokens_field = pack.tokens_field
        aligned += pack.aligned
    else:
        tokens_field = None if tokenize is None else "input_ids"
    return RowLayout(
        tokens_field=tokens_field,
        aligned=aligned,
        masks=masks,
        positions=pack is not None and pack.emit_positions,
        packed=pack is not None,
        pad_token_id=None if pack is None else pack.pad_token_id,
        payload=all(node.keeps_payload() for node in steps),
        container=(tokenize.return_tensors if tokenize is not None else None) or "list",
        pad_to_longest=tokenize is not None and tokenize.padding == "longest" and pack is None,
    )
