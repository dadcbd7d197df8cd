"""Physical plan to physical plan, one rule a file: fewer copies, fewer tasks, the same bytes."""

from collections.abc import Callable

from zephon.planner.fusions.fuse_assembly import fuse_assembly
from zephon.planner.fusions.fuse_segment import fuse_segment
from zephon.planner.physical import PhysicalNode

Fusion = Callable[[PhysicalNode], PhysicalNode]

FUSIONS: tuple[Fusion, ...] = (
    fuse_segment,  # either order would do: the two look at different parts of the chain
    fuse_assembly,
)
