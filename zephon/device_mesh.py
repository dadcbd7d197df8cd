"""Which data a process of a device mesh reads, and which of all ranks it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zephon.errors import PlanError, nearest


def from_device_mesh(mesh: Any, dims: str | Sequence[str]) -> dict[str, int]:
    """Derive the identities of this process from a ``torch.distributed`` device mesh.

    Ranks that differ in other dimensions alone, such as tensor, pipeline or context parallel ones,
    read the same data.

    Here of a mesh of one process; ``pipeline.options(**from_device_mesh(mesh, "data"))`` sets them:

    >>> from torch import distributed
    >>> distributed.init_process_group(
    ...     "gloo", store=distributed.HashStore(), rank=0, world_size=1
    ... )
    >>> mesh = distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "tensor"))
    >>> from_device_mesh(mesh, "data")
    {'world_size': 1, 'global_rank': 0, 'dp_degree': 1, 'dp_group_id': 0}
    >>> distributed.destroy_process_group()

    Args:
        mesh: a ``DeviceMesh`` with named dimensions that this process is part of.
        dims: those over which data is divided, the slowest first.

    Returns:
        world_size, global_rank, dp_degree and dp_group_id, for ``Pipeline.options``.

    Raises:
        PlanError: the mesh has no such dimension, or this process is not in it.
    """
    names = [str(name) for name in mesh.mesh_dim_names or ()]
    wanted = (dims,) if isinstance(dims, str) else tuple(dims)
    for name in wanted:
        if name not in names:
            raise PlanError(
                f"from_device_mesh: the mesh has no dimension {name!r}; {nearest(name, names)}"
            )
    place = mesh.get_coordinate()
    if place is None:
        raise PlanError(
            "from_device_mesh: this process is not in the mesh; build pipelines on its ranks alone"
        )
    sizes = {name: int(mesh.size(number)) for number, name in enumerate(names)}
    at = dict(zip(names, map(int, place), strict=True))
    world, rank = _number(names, sizes, at)
    degree, group = _number(wanted, sizes, at)
    return {"world_size": world, "global_rank": rank, "dp_degree": degree, "dp_group_id": group}


def _number(
    names: Sequence[str], sizes: Mapping[str, int], at: Mapping[str, int]
) -> tuple[int, int]:
    """Count the places along some dimensions, and number one of them, the last changing first."""
    count, number = 1, 0
    for name in names:
        count, number = count * sizes[name], number * sizes[name] + at[name]
    return count, number
