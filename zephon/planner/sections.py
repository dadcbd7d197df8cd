"""A plan as sections: in each, rows go through segments and policies; an operator stands between.

Stateless steps run below all policies of their section, wherever they were called. A step that must
see rows in the order of their lane cannot: it stands between two sections, takes the rows that the
one below finishes, and what it gives are the rows that the one above begins with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from zephon.planner.logical import (
    CustomOp,
    Fetch,
    Node,
    Stateful,
)
from zephon.planner.logical.batch import Batch, MapBatch, Take
from zephon.planner.logical.functions import RowStep
from zephon.planner.logical.pack import Pack

PythonStep: TypeAlias = CustomOp | Stateful | RowStep


@dataclass(frozen=True, slots=True)
class Section:
    """Consecutive steps of a plan.

    entry: the operator whose rows they begin with; None: the first of them is the source.
    """

    entry: PythonStep | None
    steps: tuple[Node, ...]

    @property
    def of_records(self) -> bool:
        """Whether an operator gives the rows."""
        return self.entry is not None


def sections_of(steps: Sequence[Node]) -> list[Section]:
    """Cut a plan, source first, where a step must see rows in order; steps on batches are left out.

    >>> [section.entry for section in sections_of([])]
    [None]
    """
    found: list[Section] = []
    entry: PythonStep | None = None
    here: list[Node] = []
    for node in steps:
        if isinstance(node, Batch | MapBatch | Take):
            break
        if isinstance(node, PythonStep) and sees_order(node, here, above=entry is not None):
            found.append(Section(entry, tuple(here)))
            entry, here = node, []
        else:
            here.append(node)
    return [*found, Section(entry, tuple(here))]


def sees_order(node: PythonStep, below: Sequence[Node], *, above: bool) -> bool:
    """Say whether a step must see rows in the order of their lane.

    Args:
        node: the step.
        below: those before it in its section.
        above: an operator gives that section its rows.
    """
    if isinstance(node, Stateful) or any(isinstance(other, Pack) for other in below):
        return True
    if not isinstance(node, CustomOp):
        return False
    drawn_anew = not any(isinstance(each, Fetch) and each.decided_by for each in below)
    reordered = any(other.reorders for other in below)
    # A window of 64 draws is read again for a row of it: its draws must be known, and in order; and
    # so must be what it gives.
    disorders = not node.preserves_cursor_order
    return node.remembers or disorders or reordered or above or not drawn_anew
