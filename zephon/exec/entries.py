"""From the floors of a plan to what stands between them when it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from zephon.exec.assemble import Assembler
from zephon.exec.custom_steps import custom_step
from zephon.exec.entry import Entry
from zephon.exec.floors import Floor
from zephon.exec.parts import Materials, naming_of, segment_on, services_of
from zephon.exec.policy_chain import chain_of, measures_of
from zephon.exec.relay_rows import RowsOfRecords
from zephon.planner.physical import RowLayout


def entries_of(
    floors: Sequence[Floor],
    materials: Materials,
    pad_token_id: Callable[[RowLayout], int | None],
) -> list[Entry]:
    """Build the ways into all floors but the first, lowest first.

    Args:
        floors: of a plan, lowest first.
        materials: what operators are made of.
        pad_token_id: says which id pads rows of a layout.
    """
    source, entries = materials.source, []
    naming = naming_of(source)
    for number, (below, floor) in enumerate(pairwise(floors)):
        if floor.entry is None:
            continue
        services = services_of(materials, in_order=True)
        step = custom_step(floor.entry.op, services, floor.op_place(floor.entry))
        pad = pad_token_id(below.layout)
        above = any(each.layout.tokens_field is not None for each in floors[number + 1 :])
        under = any(each.layout.tokens_field is not None for each in floors[: number + 1])
        entries.append(
            Entry(
                step=step,
                every=0 if step.snapshots else floor.entry.every,
                assembler=Assembler(below.layout, naming, pad_token_id=pad),
                rows=RowsOfRecords(naming, step.label),
                segment=segment_on(floor, materials),
                chain=chain_of(floor, [each.name for each in source.components]),
                measures=measures_of(floor),
                carries_tokens=under and not above,
            )
        )
    return entries


def token_floor(assembler: Assembler, entries: Sequence[Entry]) -> int:
    """Say on which floor tokens are counted, from the top: the first whose rows have any."""
    assemblers = [assembler, *(entry.assembler for entry in reversed(entries))]
    return next((n for n, each in enumerate(assemblers) if each.has_tokens), 0)
