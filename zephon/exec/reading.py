"""How a run reads: how much memory decoded row groups get, and whether a spill stands below it.

All from what is known before a row is read: how many row groups the order touches at a time, under
all lanes that this rank runs, and how many bytes they have. Nothing here changes a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zephon.exec.lanes import Topology
from zephon.io.formats.forward_files import PASSED_BYTES
from zephon.io.formats.parquet_parts import WAITING_READERS
from zephon.io.formats.parquet_units import HUGE_BYTES, UNIT_BYTES
from zephon.io.options import StoreOptions
from zephon.io.spill.spill import SpillSettings
from zephon.options import (
    DEFAULT_MEMORY_BUDGET,
    MOST_DEFAULT_BUDGET,
    RuntimeOptions,
    parse_size,
)

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

CACHE_SHARE = 0.75
"""Of the memory budget, what decoded row groups may take; the rest is for rows in flight."""

_TASK_BYTES = 4 << 20  # of rows that are read at a time, about
_LANE_BYTES = 256 << 10  # of which each lane gives so much
_DECODING = 3  # times what comes of it, that decoding holds for a moment
_COSTLY = 4.0  # rows decoded a row drawn, from which on explain() says what would help


@dataclass(frozen=True, slots=True)
class Reading:
    """How a run reads.

    budget: bytes for decoded row groups and rows in flight together.
    cache_bytes: what decoded row groups may take of it.
    spill: where groups go that leave memory; None: nowhere.
    amplification: rows that are decoded for each row drawn, as expected.
    lines: all of it in words, for ``explain``.
    """

    budget: int
    cache_bytes: int
    spill: SpillSettings | None
    amplification: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Touched:
    """What the order touches of one component at a time.

    share: of the draws. groups: row groups under all lanes. group_bytes, group_rows: of a mean
    group. visit_rows: rows that a task takes out of a group. lasts: whether the spill takes them.
    shuffled: "global", "block", "shard" or "": within which rows are permuted.
    returns: whether compressed files are wanted further back than what is held of them.
    huge_bytes: of the largest row group of a file, if it is decoded in parts; else 0.
    """

    name: str
    share: float
    groups: int
    group_bytes: float
    group_rows: float
    visit_rows: float
    lasts: bool
    shuffled: str
    returns: bool
    huge_bytes: int

    @property
    def passed(self) -> float:
        """Expect how many parts of a huge row group are decoded to reach one in any order."""
        if self.shuffled != "block":
            return 1.0  # a task goes through the parts that it touches in order
        return max(1.0, self.huge_bytes / self.group_bytes / (WAITING_READERS + 1))

    @property
    def bytes(self) -> float:
        """Bytes of all these groups."""
        return self.groups * self.group_bytes


def plan_reading(source: Any, options: RuntimeOptions, topology: Topology) -> Reading:
    """Decide how the rank of a topology reads.

    Args:
        source: a work source; one that does not say how it orders rows is taken to read forward.
        options: ``memory_budget`` and ``io_options`` count.
        topology: which lanes this rank runs.

    Raises:
        PlanError: the spill must be on, and has no place.
    """
    # Several components of a custom source may read one dataset: its groups are touched once.
    first: dict[int, tuple[int, Any]] = {}
    for number, component in enumerate(source.components):
        if getattr(component, "read", component.weight > 0):
            first.setdefault(getattr(component, "dataset_id", number), (number, component))
    touched = [
        _touched(source, number, component, topology)
        for number, component in first.values()
        if component.dataset.total()
    ]
    wanted = StoreOptions.from_any(options.io_options).resolved_parquet_rg_cache()
    budget = _budget(options, touched, spills=wanted.enabled is not False)
    cache = max(1, int(budget * CACHE_SHARE))
    size = sum(each.bytes for each in touched)
    spill = None
    if any(each.lasts for each in touched) and (
        wanted.enabled
        or (wanted.enabled is None and (size > cache or any(each.returns for each in touched)))
    ):
        spill = SpillSettings.of(wanted)
    factors = [_amplification(each, size, cache, spill) for each in touched]
    shares = sum(each.share for each in touched)
    weighted = sum(f * each.share for f, each in zip(factors, touched, strict=True))
    amplification = weighted / shares if shares else 1.0
    lines = _lines(touched, size, cache, spill, amplification)
    return Reading(budget, cache, spill, amplification, lines)


def _touched(source: Any, number: int, component: Any, topology: Topology) -> _Touched:
    """Count the groups of one component under all lanes that the rank runs."""
    dataset: Dataset = component.dataset
    rows, groups = dataset.total(), max(1, len(dataset.group_sizes()))
    shards = max(1, int(np.count_nonzero(dataset.counts())))
    group_rows = rows / groups
    block = getattr(source, "block_rows", lambda _: None)(number)
    within = bool(getattr(source, "shuffles_within_shard", False))
    # A unit is what a lane draws from at random, or steps through: so many groups, so many rows.
    if block is not None:
        parts, each = (shards, groups / shards) if within else (groups, 1.0)
        part_rows = rows / parts
        unit_rows = min(block, rows)
        unit_groups = min(groups, each * (unit_rows / part_rows + (unit_rows < rows)))
        shuffled = "global" if block >= rows else "block"
    elif within:
        unit_rows, unit_groups, shuffled = rows / shards, groups / shards, "shard"
    else:
        unit_rows, unit_groups, shuffled = group_rows, 1.0, ""
    # Lanes start side by side and drift apart: documents differ in length.
    under = min(len(topology.own_lanes()), math.ceil(rows / unit_rows))
    touched = int(min(groups, max(1, round(under * unit_groups))))
    row_bytes = max(dataset.mean_row_bytes(), 1.0)
    task_rows = _TASK_BYTES / row_bytes
    visit_rows = task_rows / touched if shuffled else min(task_rows, _LANE_BYTES / row_bytes)
    apart = float(dataset.shards.decoded_bytes.sum())
    if not shuffled:  # the default deal spreads lanes over one part in 16
        apart = apart / 16 if under > 1 else 0.0
    return _Touched(
        name=component.name,
        share=component.weight,
        groups=touched,
        group_bytes=dataset.mean_group_bytes(),
        group_rows=group_rows,
        visit_rows=float(np.clip(visit_rows, 1, group_rows)),
        lasts=dataset.path is not None,
        shuffled=shuffled,
        returns=apart > PASSED_BYTES and dataset.format.reads_forward(dataset.shards),
        huge_bytes=dataset.shards.huge_group_bytes(),
    )


def _budget(options: RuntimeOptions, touched: list[_Touched], *, spills: bool) -> int:
    """Return bytes for decoded row groups and rows in flight together.

    Where nobody set it, it grows with what the order touches at a time and the spill will not
    take, up to ``MOST_DEFAULT_BUDGET``: a group that leaves memory then is decoded again.
    """
    if options.memory_budget is not None:
        return parse_size(options.memory_budget)
    wanted = sum(each.bytes for each in touched if not (each.lasts and spills)) / CACHE_SHARE
    return int(max(DEFAULT_MEMORY_BUDGET, min(wanted, MOST_DEFAULT_BUDGET)))


def _amplification(
    touched: _Touched, size: float, cache: int, spill: SpillSettings | None
) -> float:
    """Expect how many rows of a component are decoded for each one drawn."""
    room = cache + (spill.limit_bytes if spill is not None and touched.lasts else 0)
    if size <= room:
        return touched.passed
    visited = max(1.0, (1 - room / size) * touched.group_rows / touched.visit_rows)
    return visited * touched.passed


def _lines(
    touched: list[_Touched],
    size: float,
    cache: int,
    spill: SpillSettings | None,
    amplification: float,
) -> tuple[str, ...]:
    groups = sum(each.groups for each in touched)
    plural = "" if groups == 1 else "s"
    what = f"the order touches {groups:,} row group{plural} at a time ({_mb(size)})"
    fits = size <= cache
    lines = [
        f"{what}; memory holds them, up to {_mb(cache)}"
        if fits
        else f"{what}, of which memory holds {_mb(cache)}"
    ]
    if spill is not None:
        lines.append(
            f"spill: groups that leave memory are mapped from {spill.root}, which may hold "
            f"{_mb(spill.limit_bytes)}"
        )
    huge = [each for each in touched if each.huge_bytes]
    if huge:
        lines.append(_of_huge(max(huge, key=lambda each: each.huge_bytes), cache))
    if not fits or amplification > 1:
        lines.append(f"rows decoded for each row drawn: about {amplification:.3g}")
    if amplification >= _COSTLY:
        lines.append(f"warning: {_advice(touched, size, spill)}")
    return tuple(lines)


def _of_huge(largest: _Touched, cache: int) -> str:
    return (
        f"warning: row groups of {largest.name} take up to {_mb(largest.huge_bytes)} once "
        f"decoded; they are read forwards, in parts of about {_mb(UNIT_BYTES)}, so the peak is "
        f"some {_mb(cache)} of these and {_mb(_DECODING * UNIT_BYTES)} for each worker that "
        f"decodes; a row at random costs what lies before it, so write row groups of less than "
        f"{_mb(HUGE_BYTES)}"
    )


def _advice(touched: list[_Touched], size: float, spill: SpillSettings | None) -> str:
    largest = max(touched, key=lambda each: each.bytes)
    if spill is None:
        room = "memory_budget, or let the spill be on (io_options.parquet.rg_cache)"
        if not largest.lasts:
            room = "memory_budget"
        what = f"{_mb(size)} of row groups do not fit into memory"
    else:
        room = "io_options.parquet.rg_cache.limit_bytes"
        what = f"{_mb(size)} of row groups fit neither into memory nor into the spill"
    if largest.shuffled in ("global", "block"):
        kind = "a global shuffle" if largest.shuffled == "global" else "blocks"
        return (
            f"{what}: {kind} of {largest.name} will decode a row group for some "
            f"{largest.visit_rows:,.0f} rows; use shuffle_within_shard with a shuffle buffer, or "
            f"a smaller shuffle_block_size, or raise {room}"
        )
    return f"{what}, and are decoded again and again; raise {room}"


def _mb(size: float) -> str:
    return f"{size / 1e6:,.1f} MB" if size < 1e10 else f"{size / 1e9:,.1f} GB"
