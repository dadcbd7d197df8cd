"""What ranks tell each other when they meet first, and whether it goes together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from zephon.coordination import Coordinator
from zephon.errors import PlanError
from zephon.exec.fingerprint import digest
from zephon.exec.lanes import Topology
from zephon.exec.saved_values import told


class _Rank(msgspec.Struct):
    """What a rank says of itself where ranks meet first.

    recipe: the digest of each part of the recipe.
    """

    dp_degree: int
    dp_group_id: int
    global_rank: int
    world_size: int
    lanes: list[int]
    recipe: dict[str, str]


def introduce(
    coordinator: Coordinator,
    topology: Topology,
    recipe: Mapping[str, Any],
    *,
    world: int,
    rank: int,
) -> None:
    """Let ranks that found each other compare what they are; from here on they know their names.

    Args:
        coordinator: by which they meet; of each, the same call.
        topology: which rows of which lanes this rank delivers.
        recipe: what it runs.
        world: how many ranks its options say there are.
        rank: which of them it is.

    Raises:
        PlanError: their settings do not go together, or their recipes differ; says what to set.
        CoordinationError: a rank is missing, or failed.
    """
    mine = _Rank(
        dp_degree=topology.dp_degree,
        dp_group_id=topology.dp_group_id,
        global_rank=rank,
        world_size=world,
        lanes=list(topology.own_lanes()),
        recipe={name: digest(value) for name, value in recipe.items()},
    )
    answer = coordinator.round("options", lambda: msgspec.msgpack.encode(mine), _introduced)
    names = tuple(msgspec.msgpack.decode(answer, type=list[str]))
    coordinator.participant = replace(coordinator.participant, names=names)


def name_of(rank: int, lanes: Sequence[int]) -> str:
    """Say how messages call a rank that runs some lanes."""
    return f"rank {rank} ({told('lane', lanes)})"


def _introduced(parts: Sequence[bytes]) -> bytes:
    """Compare what ranks said of themselves; give their names."""
    ranks = [msgspec.msgpack.decode(part, type=_Rank) for part in parts]
    first, size = ranks[0], len(ranks)
    for number, each in enumerate(ranks):
        for name in ("world_size", "dp_degree"):
            was, found = getattr(first, name), getattr(each, name)
            if found != was:
                raise PlanError(
                    f"options: {name} is {was} on rank 0 and {found} on rank {number}; set one "
                    "value on all ranks"
                )
        if each.recipe != first.recipe:
            names = sorted({*first.recipe, *each.recipe})
            differ = [n for n in names if first.recipe.get(n) != each.recipe.get(n)]
            raise PlanError(
                f"options: ranks 0 and {number} run different recipes, they differ in "
                f"{', '.join(differ)}; build the same pipeline on all ranks, with the same seed, "
                "data and tokenizer"
            )
    groups = Counter(each.dp_group_id for each in ranks)
    peers = size // first.dp_degree
    wrong = {group: groups[group] for group in range(first.dp_degree) if groups[group] != peers}
    if wrong:
        group, count = next(iter(wrong.items()))
        raise PlanError(
            f"options: {count} of {size} ranks have dp_group_id={group}, expected {peers}, since "
            f"dp_degree={first.dp_degree}; give ranks that read the same data one dp_group_id, "
            "and each group as many ranks as any other"
        )
    return msgspec.msgpack.encode([name_of(n, each.lanes) for n, each in enumerate(ranks)])
