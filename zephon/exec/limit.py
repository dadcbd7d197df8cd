"""Stops a rank's groups after some rows, counted over all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zephon.errors import PlanError
from zephon.exec.delivery import Group, Position
from zephon.exec.lanes import LaneRows, Topology


def check_limit(topology: Topology, rows: int) -> None:
    """Refuse a number of rows that ranks cannot stop after together.

    Raises:
        PlanError: there are several ranks, and they share no steps; or it is no number of steps.
    """
    if topology.dp_degree == 1:
        return
    size = topology.global_batch_size
    if size is None:
        raise PlanError(
            f"take: {topology.dp_degree} ranks that do not share steps cannot stop after {rows} "
            "rows together; set global_batch_size"
        )
    first = topology.lanes * topology.since[1]  # rows before steps had this size
    if (rows - first) % size:
        behind = f" behind the first {first}, before it changed" if first else ""
        raise PlanError(
            f"take: with several ranks, rows must be a multiple of global_batch_size={size}"
            f"{behind}, got {rows}; take {first + max((rows - first) // size, 1) * size}"
        )


def all_out(position: Position, topology: Topology, rows: int | None) -> bool:
    """Say whether all rows before the limit were handed out; None: there is no limit."""
    if rows is None:
        return False
    if topology.global_batch_size is None:
        return sum(position.rows.values()) >= rows
    before = topology.lanes * topology.rows_before(position.step)
    return before + position.delivered * topology.dp_degree >= rows


def at_most(
    groups: Iterator[Group], start: Position, topology: Topology, rows: int
) -> Iterator[Group]:
    """Yield groups until so many rows are out, the last one cut short.

    Args:
        groups: of this rank, from ``start`` on.
        start: what was handed out before.
        topology: of one rank, or of ranks that share steps: then whole steps are left.
        rows: of the whole run, over all ranks.
    """
    size = topology.global_batch_size
    if size is None:
        left = rows - sum(start.rows.values())
    else:
        before = topology.lanes * topology.rows_before(start.step)
        left = (rows - before) // topology.dp_degree - start.delivered
    if left <= 0:
        return
    for group in groups:
        count = sum(part.stop - part.first for part in group.rows)
        if count > left:
            yield _cut(group, count - left, topology)
            return
        yield group
        left -= count
        if not left:
            return


def _cut(group: Group, excess: int, topology: Topology) -> Group:
    """Leave out the last rows of a group."""
    parts = list(group.rows)
    after = group.after
    if topology.global_batch_size is not None:
        whole = after.delivered == 0
        delivered = (topology.rows_per_group if whole else after.delivered) - excess
        after = replace(after, step=after.step - whole, delivered=delivered)
    else:
        lane = parts[-1].lane
        after = replace(after, rows={**after.rows, lane: after.rows[lane] - excess}, turn=lane)
    while excess:
        last = parts.pop()
        keep = max(last.stop - last.first - excess, 0)
        excess -= last.stop - last.first - keep
        if keep:
            parts.append(LaneRows(last.lane, last.first, last.first + keep))
    return Group(tuple(parts), after)
