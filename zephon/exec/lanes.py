"""Lane and step arithmetic: which rows of which lanes a rank delivers, and in which order.

With a global batch of R rows, step t is the next R / L rows of each lane, lane after lane, and
group g of D delivers rows [g R / D, (g + 1) R / D) of it. Without R, a rank owns whole lanes and
takes turns among them. Several processes may hand out one rank's batches in turn, each its share.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from zephon.errors import PlanError

MOST_DEFAULT_LANES = 64


@dataclass(frozen=True, slots=True)
class LaneRows:
    """Rows [first, stop) of one lane's stream."""

    lane: int
    first: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one of several processes hands out of the batches of their rank.

    lanes: without a global batch, those that it runs; None: all of the rank's. passed: batches that
    it passes over first. every: of those that follow, it hands out one in so many.
    """

    lanes: tuple[int, ...] | None = None
    passed: int = 0
    every: int = 1


WHOLE = Share()


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Who delivers what.

    lanes: L. dp_degree: D. dp_group_id: g. global_batch_size: R, or None. since: the step from
    which on it is this, and the rows of each lane before that: steps may have had another size.
    handed: what of the group's batches this process hands out.
    """

    lanes: int
    dp_degree: int
    dp_group_id: int
    global_batch_size: int | None
    mapping_strategy: str = "contiguous"
    since: tuple[int, int] = (0, 0)
    handed: Share = WHOLE

    def rows_before(self, step: int) -> int:
        """Count the rows of each lane before a step."""
        first, rows = self.since
        return rows + (step - first) * self.rows_per_lane

    @property
    def rows_per_lane(self) -> int:
        """Rows of a step in one lane, R / L."""
        return (self.global_batch_size or 0) // self.lanes

    @property
    def rows_per_group(self) -> int:
        """Rows of a step that one group delivers, R / D."""
        return (self.global_batch_size or 0) // self.dp_degree

    def own_lanes(self) -> tuple[int, ...]:
        """Return the lanes that this process runs of those of its group, ascending."""
        if self.global_batch_size is not None:
            return tuple(rows.lane for rows in self.share(0))
        some = self.handed.lanes
        return tuple(lane for lane in self._owned() if some is None or lane in some)

    def _owned(self) -> tuple[int, ...]:
        if self.mapping_strategy == "interleaved":
            return tuple(range(self.dp_group_id, self.lanes, self.dp_degree))
        size, extra = divmod(self.lanes, self.dp_degree)
        g = self.dp_group_id
        first = g * size + min(g, extra)
        return tuple(range(first, first + size + (g < extra)))

    def share(self, step: int, delivered: int = 0) -> list[LaneRows]:
        """Return this group's rows of a step, in the canonical order.

        Args:
            step: which step, from 0.
            delivered: rows at the start of the share that are left out.
        """
        height, size, before = self.rows_per_lane, self.rows_per_group, self.rows_before(step)
        first = self.dp_group_id * size + delivered
        stop = (self.dp_group_id + 1) * size
        rows = []
        for lane in range(first // height, -(-stop // height)):
            begin = max(first, lane * height) - lane * height
            end = min(stop, (lane + 1) * height) - lane * height
            if begin < end:
                rows.append(LaneRows(lane, before + begin, before + end))
        return rows


def make_topology(
    *,
    global_batch_size: int | None,
    canonical_replicas: int | None,
    dp_degree: int,
    dp_group_id: int,
    mapping_strategy: str,
) -> Topology:
    """Check the numbers against each other and fill in the number of lanes.

    Raises:
        PlanError: they do not fit; the message names the settings and what would.
    """
    if dp_degree < 1:
        raise PlanError(f"options: dp_degree must be at least 1, got {dp_degree}")
    if not 0 <= dp_group_id < dp_degree:
        raise PlanError(
            f"options: dp_group_id must be in [0, dp_degree={dp_degree}), got {dp_group_id}"
        )
    size = global_batch_size
    if size is None:
        lanes = dp_degree if canonical_replicas is None else canonical_replicas
        if lanes < dp_degree:
            raise PlanError(
                f"options: dp_degree={dp_degree} ranks need at least as many lanes, "
                f"canonical_replicas is {lanes}; set global_batch_size, then ranks share lanes"
            )
        if lanes % dp_degree:
            warnings.warn(
                f"canonical_replicas={lanes} lanes over dp_degree={dp_degree} ranks: some ranks "
                "own a lane more than others; set global_batch_size, then ranks share lanes",
                RuntimeWarning,
                stacklevel=2,
            )
    else:
        if size < 1:
            raise PlanError(f"options: global_batch_size must be at least 1, got {size}")
        lanes = (
            math.gcd(size, MOST_DEFAULT_LANES) if canonical_replicas is None else canonical_replicas
        )
        if lanes < 1 or size % lanes:
            raise PlanError(
                f"options: global_batch_size={size} must be a multiple of "
                f"canonical_replicas={lanes}; each lane gives as many rows to a step as any other"
            )
        if size % dp_degree:
            fits = [d for d in range(1, 2 * dp_degree) if size % d == 0]
            raise PlanError(
                f"options: global_batch_size={size} must be a multiple of dp_degree={dp_degree}; "
                f"near by, {', '.join(str(d) for d in fits[-4:])} ranks fit"
            )
    return Topology(
        lanes=lanes,
        dp_degree=dp_degree,
        dp_group_id=dp_group_id,
        global_batch_size=size,
        mapping_strategy=mapping_strategy,
    )


def check_microbatch(topology: Topology, microbatch_size: int, delivered: int = 0) -> None:
    """Refuse a microbatch that does not fill a rank's share of a step exactly.

    Args:
        topology: of the rank.
        microbatch_size: rows of a batch.
        delivered: rows of the share that a checkpoint stands behind.

    Raises:
        PlanError: names R, D, the microbatch, and sizes that fit.
    """
    if topology.global_batch_size is None:
        return
    rest = topology.rows_per_group - delivered
    if topology.rows_per_group % microbatch_size or rest % microbatch_size:
        fits = [b for b in range(1, rest + 1) if rest % b == 0 == topology.rows_per_group % b]
        behind = way_out = ""
        if delivered:
            behind = f" that are left {delivered} rows into it, where the checkpoint stands"
            way_out = ", or restore an earlier checkpoint; a take() may have ended the step there"
        raise PlanError(
            f"batch: microbatch_size={microbatch_size} must divide a rank's "
            f"{rest} rows of a step{behind} (global_batch_size={topology.global_batch_size}, "
            f"dp_degree={topology.dp_degree}); these do: {', '.join(map(str, fits[-8:]))}{way_out}"
        )
