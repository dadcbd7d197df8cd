"""What ``explain`` says of a run besides its plan: lanes, ranks, back ends, what is ignored."""

from __future__ import annotations

from zephon.errors import ZephonError
from zephon.exec.lanes import Topology
from zephon.exec.launch import assembly_of, tokenizers_of
from zephon.io.options import StoreOptions
from zephon.options import RuntimeOptions
from zephon.planner.compiler import Plan
from zephon.planner.logical import PackFlat, Prefetch
from zephon.planner.tree import top_first

_RANK_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def lane_lines(topology: Topology, plan: Plan) -> tuple[str, ...]:
    """Say in words who delivers what."""
    own = topology.own_lanes()
    microbatch_size = assembly_of(plan).microbatch_size
    size = topology.global_batch_size
    if size is None:
        return (
            f"lanes: {topology.lanes}; rank {topology.dp_group_id} of {topology.dp_degree} owns "
            f"{len(own)} and takes turns among them",
            "set global_batch_size for the same steps on any number of ranks",
        )
    fits = [d for d in _RANK_COUNTS if size % d == 0]
    lines = [
        f"lanes: {topology.lanes}; a step is {size} rows, {topology.rows_per_lane} of each lane",
        f"rank {topology.dp_group_id} of {topology.dp_degree} delivers "
        f"{topology.rows_per_group} rows a step; lanes it runs: {len(own)}",
        f"rank counts that fit: {', '.join(map(str, fits))}",
    ]
    if microbatch_size is not None:
        lines.append(f"microbatches a step: {topology.rows_per_group / microbatch_size:g}")
    return tuple(lines)


def notes(plan: Plan, options: RuntimeOptions, topology: Topology, budget: int) -> tuple[str, ...]:
    """Say what a trainer should know: tokenizer back end, what has no effect, how it resumes."""
    lines = ["resumes by reference: a checkpoint holds references to held documents, no tokens"]
    try:
        lines += [
            f"tokenizer {t.name}: back end {t.backend} ({t.reason})"
            for t in tokenizers_of(plan, options).values()
        ]
    except ZephonError as exc:
        lines.append(f"tokenizer: {exc}")
    lines += _step_notes(plan, options, topology, budget)
    if options.without_effect:
        lines.append(f"options without effect here: {', '.join(options.without_effect)}")
    if ignored := StoreOptions.from_any(options.io_options).without_effect:
        lines.append(f"io_options without effect here: {', '.join(ignored)}")
    if any(isinstance(node, Prefetch) for node in top_first(plan.logical)):
        lines.append("prefetch has no effect: local shards need no warming")
    return tuple(lines)


def _step_notes(plan: Plan, options: RuntimeOptions, topology: Topology, budget: int) -> list[str]:
    if topology.global_batch_size is None:
        return []
    lines = []
    if options.mapping_strategy is not None:
        lines.append("mapping_strategy has no effect with global_batch_size: ranks share lanes")
    packs = [n for n in top_first(plan.logical) if isinstance(n, PackFlat)]
    held = sum(4 * n.max_length for n in packs)
    held *= topology.rows_per_lane * len(topology.own_lanes())
    if 2 * held > budget:
        lines.append(
            f"two steps hold {2 * held / (1 << 20):,.0f} MiB of tokens, more than the memory "
            "budget: a step is handed out once all of it is there"
        )
    return lines
