"""What ``explain`` says of a run besides its plan: lanes, ranks, back ends, what is ignored."""

from __future__ import annotations

from zephon.errors import ZephonError
from zephon.exec.floors import floors_of
from zephon.exec.lanes import Topology
from zephon.exec.launch import assembly_of, tokenizers_of, workers_of
from zephon.exec.runners import usable_cores
from zephon.exec.towers import how_it_resumes
from zephon.io.options import StoreOptions
from zephon.options import RuntimeOptions
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.logical import Fetch, Prefetch
from zephon.planner.logical.pack import POOL, WITH_POOL
from zephon.planner.tree import source_first, top_first

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


def notes(
    plan: Plan, options: RuntimeOptions, topology: Topology, budget: int, row_bytes: float
) -> tuple[str, ...]:
    """Say what a trainer should know: tokenizer back end, what has no effect, how it resumes.

    Args:
        plan, options, topology: of the run.
        budget: bytes of the memory budget.
        row_bytes: mean bytes of a row of the data.
    """
    resumes = how_it_resumes(
        [n for n in source_first(plan.physical) if isinstance(n, physical.CallInOrder)]
    )
    lines = [f"{resumes}: a checkpoint holds references to held documents, no tokens"]
    lines += _held_lines(plan, len(topology.own_lanes()), row_bytes)
    lines += _share_lines(plan)
    lines += _function_lines(plan, options)
    try:
        lines += [
            f"tokenizer {t.name}: back end {t.backend} ({t.reason})"
            for t in tokenizers_of(plan, options).values()
        ]
    except ZephonError as exc:
        lines.append(f"tokenizer: {exc}")
    lines += _step_notes(plan, options, topology, budget)
    if options.mtp_mode:
        lines.append(
            f"mtp_mode: the engine runs in a child process, up to {options.hosted_room()} batches "
            f"or {options.mtp_buffer_bytes / (1 << 20):,.3g} MiB of them ahead; they come through "
            "shared memory, and functions of map_batch run in this process"
        )
    # one stage alone has a runner; the others run on the thread that takes the rows
    stages = [f"per_stage_runner[{stage}]" for stage in sorted(options.per_stage_runner) if stage]
    if ignored := (*options.without_effect, *stages):
        lines.append(f"options without effect here: {', '.join(ignored)}")
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
    held = 4 * (assembly_of(plan).layout.max_length or 0)
    held *= topology.rows_per_lane * len(topology.own_lanes())
    if 2 * held > budget:
        lines.append(
            f"two steps hold {2 * held / (1 << 20):,.0f} MiB of tokens, more than the memory "
            "budget: a step is handed out once all of it is there"
        )
    return lines


def _held_lines(plan: Plan, lanes: int, row_bytes: float) -> list[str]:
    """Say how many rows and bytes the policies hold, over all lanes that this rank runs."""
    lines, packed = [], False
    for node in source_first(plan.physical):
        match node:
            case physical.ShuffleUnits(buffer_size=size):
                name = "shuffle"
            case physical.KeepMixture(max_buffer_size=size):
                name = "ensure_mixture"
            case physical.PackRows(candidate_pool_size=size) if node.algorithm in WITH_POOL:
                name, size = node.algorithm, size or POOL
            case physical.PackRows(num_bins=int() as size):
                lines.append(_open_rows(node, lanes, size))
                packed = True
                continue
            case _:
                packed |= isinstance(node, physical.PackRows)
                continue
        what = "packed rows" if packed else "documents"
        if size is None:
            lines.append(
                f"{name} holds {what} without bound, until the mixture lets them go: pass "
                "max_buffer_size to bound them"
            )
        else:
            unit = 4 * (assembly_of(plan).layout.max_length or 0) if packed else row_bytes
            lines.append(
                f"{name} holds {size:,} {what} a lane: {lanes * size:,} on this rank, about "
                f"{lanes * size * unit / (1 << 20):,.0f} MiB, beside the memory budget"
            )
        packed |= isinstance(node, physical.PackRows)
    return lines


def _share_lines(plan: Plan) -> list[str]:
    """Say where what is delivered may have other shares than what is drawn."""
    nodes = source_first(plan.physical)
    packers = [n for n in nodes if isinstance(n, physical.PackRows) and n.algorithm in WITH_POOL]
    fetch = next(n for n in top_first(plan.logical) if isinstance(n, Fetch))
    last = nodes.index(packers[0]) if packers else 0
    kept = any(isinstance(n, physical.KeepMixture) for n in nodes[last:])
    if not packers or kept or len(fetch.components) < 2:
        return []
    return [
        f"{packers[0].algorithm} takes long documents first, so components of unlike lengths have "
        "other shares in the first rows: ensure_mixture() after packing keeps them"
    ]


def _function_lines(plan: Plan, options: RuntimeOptions) -> list[str]:
    """Say what would run functions of the user at once, where threads do not."""
    steps = floors_of(plan)[0].steps()
    calls = [s for s in steps if isinstance(s, physical.CallRows | physical.CallGroups)]
    workers = workers_of(plan, options)
    if not calls or workers.runner == "process":
        return []
    cores = min(usable_cores(), *(step.parallelism for step in calls))
    if cores < 2:
        return []
    return [
        "functions in Python run one at a time, whatever the number of threads: if they take most "
        f"of the time, options(runner='process') runs {cores} at once"
    ]


def _open_rows(node: physical.PackRows, lanes: int, bins: int) -> str:
    domains = 1 if node.domains is None else len(node.domains)
    rows = lanes * bins * domains
    each = "" if domains == 1 else f" of each of {domains} domains"
    return (
        f"{node.algorithm} keeps {bins:,} rows open{each} a lane: {rows:,} on this rank, up to "
        f"{4 * rows * node.max_length / (1 << 20):,.0f} MiB, beside the memory budget"
    )
