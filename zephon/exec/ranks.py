"""The ranks of one job: who they are, and what they do together.

A rank is told apart from others by two numbers: which group's data it delivers, and which of all
that meet it is. Several ranks may deliver the data of one group.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import msgspec

from zephon.coordination import Coordinator, Participant, host, meet, running_ranks
from zephon.errors import CheckpointError, CoordinationError
from zephon.exec.checkpoint import from_any, from_bytes, to_bytes
from zephon.exec.ends import Ends
from zephon.exec.fingerprint import digest
from zephon.exec.introductions import introduce, name_of
from zephon.exec.lanes import Topology
from zephon.exec.manifest import without_times
from zephon.exec.saved_values import told
from zephon.exec.state_parts import merged
from zephon.options import RuntimeOptions

_LARGE = ("recipe", "manifest")
"""What each rank knows of the whole run: the leader's is taken, if the others' digests agree."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a job that have met.

    Args:
        coordinator: by which they meet.
        iterations: numbers those in which they end together, so that what is left of one that was
            given up is not taken for a part of the next.
    """

    coordinator: Coordinator
    iterations: Iterator[int] = field(default_factory=partial(count, 1))

    @contextmanager
    def ending(self) -> Iterator[Ends]:
        """Let the ranks end an iteration together, from where they stand now."""
        who = self.coordinator.participant
        ask = partial(self.coordinator.ask, f"the next batch (iteration {next(self.iterations)})")
        ends = Ends(who.rank, who.size, ask, who.name)
        try:
            yield ends
        finally:
            self.coordinator.linger(ended=ends.are_known)

    def united(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Unite the states of all ranks; every one of them calls this, and gets the same.

        Args:
            state: of this rank.

        Raises:
            CheckpointError: ranks stand at different places; names them.
            CoordinationError: a rank is missing, or failed.
        """

        def unite(parts: Sequence[bytes]) -> bytes:
            return _united(state, parts, self.coordinator.participant)

        part = partial(_part, state)
        return from_any(self.coordinator.round("checkpoint", part, unite))

    def close(self) -> None:
        """Leave."""
        self.coordinator.close()


def can_meet(options: RuntimeOptions) -> bool:
    """Say whether there are several ranks, and something by which they could meet."""
    world, rank = options.coordination_identity()
    named = options.aggregate_dir is not None or options.aggregate_store is not None
    return world > 1 and (named or running_ranks() == (rank, world))


def host_ranks(options: RuntimeOptions) -> None:
    """Host the store where ranks will meet, if that is this rank's to do."""
    world, rank = options.coordination_identity()
    if world > 1:
        host(options.aggregate_store, Participant(rank, world), options.aggregate_timeout_s)


def open_ranks(options: RuntimeOptions, topology: Topology, recipe: Mapping[str, Any]) -> Ranks:
    """Let the ranks of a job meet, by what options say or by a running torch.distributed.

    Args:
        options: of the run.
        topology: which rows of which lanes this rank delivers.
        recipe: what it runs.

    Raises:
        PlanError: their settings do not go together, or their recipes differ; says what to set.
        CoordinationError: a rank is missing, or failed.
    """
    world, rank = options.coordination_identity()
    coordinator = meet(
        who_takes_part(world, rank, topology),
        aggregate_dir=options.aggregate_dir,
        aggregate_store=options.aggregate_store,
        run_id=options.run_id,
        seconds=options.aggregate_timeout_s,
    )
    introduce(coordinator, topology, recipe, world=world, rank=rank)
    return Ranks(coordinator)


def who_takes_part(world: int, rank: int, topology: Topology) -> Participant:
    """Say who a rank is among those that meet, and how messages call each of them."""
    if world != topology.dp_degree:
        return Participant(rank, world)
    groups = [replace(topology, dp_group_id=group) for group in range(world)]
    names = tuple(name_of(group, each.own_lanes()) for group, each in enumerate(groups))
    return Participant(rank, world, names)


def warn_of_the_same_data(options: RuntimeOptions) -> None:
    """Warn where processes train together, and nothing says which of them this one is."""
    running = running_ranks()
    if running is None or running[1] == 1 or options.names_ranks:
        return
    rank, world = running
    warnings.warn(
        f"options: torch.distributed runs with {world} ranks, and this pipeline knows of one, so "
        f"each of them is handed all the data; set world_size={world} and global_rank={rank}, or "
        "dp_degree and dp_group_id (from_device_mesh() gives them), or dp_degree=1 if all are to "
        "have the same",
        RuntimeWarning,
        stacklevel=3,  # whoever takes the first item
    )


def warn_of_ranks_apart(options: RuntimeOptions) -> None:
    """Warn where ranks would meet by torch.distributed, which a worker of a loader cannot."""
    if can_meet(options):
        warnings.warn(
            "to_torch_dataset: ranks that meet by torch.distributed cannot do so in workers of a "
            "DataLoader, and may end at different steps, since filters and packing make lanes "
            "uneven; set aggregate_dir or aggregate_store='torch://', or use num_workers=0",
            RuntimeWarning,
            stacklevel=5,
        )


def refuse_without_coordinator(state: Mapping[str, Any], topology: Topology) -> None:
    """Refuse a state that lacks what other ranks know, where nobody asks them.

    Raises:
        CoordinationError: it does.
    """
    lanes = topology.own_lanes()
    within = "delivered" in state["position"] and topology.dp_degree > 1
    if within or len(lanes) < topology.lanes:
        raise CoordinationError(
            f"checkpoint: rank {topology.dp_group_id} of {topology.dp_degree} runs "
            f"{told('lane', lanes)} of {topology.lanes}, and nothing is set by which ranks meet: "
            "set aggregate_dir or aggregate_store, start torch.distributed with as many ranks, or "
            "take a part on each rank with checkpoint(scope='local') and restore([part, part, ...])"
        )


def _with_large(part: Mapping[str, Any], leader: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is large into a part, in the order in which states are written."""
    names = [name for name in leader if name in part or name in _LARGE]
    whole = {name: leader[name] if name in _LARGE else part[name] for name in names}
    return {**whole, **{name: value for name, value in part.items() if name not in whole}}


def _plain(state: object) -> dict[str, Any]:
    if not isinstance(state, dict):
        raise CheckpointError("checkpoint: a rank's part is damaged; call checkpoint() again")
    return state


class _Part(msgspec.Struct):
    """A rank's part of a checkpoint.

    digests: of what is large and the same everywhere. state: all but that.
    """

    digests: dict[str, str]
    state: bytes


def _part(state: Mapping[str, Any]) -> bytes:
    manifest = digest(without_times(state["manifest"]))
    digests = {"recipe": state["fingerprint"], "manifest": manifest}
    slim = to_bytes({name: value for name, value in state.items() if name not in _LARGE})
    return msgspec.msgpack.encode(_Part(digests, slim))


def _united(state: Mapping[str, Any], parts: Sequence[bytes], who: Participant) -> bytes:
    found = [msgspec.msgpack.decode(part, type=_Part) for part in parts]
    for number, each in enumerate(found):
        for name, digested in found[0].digests.items():
            if each.digests[name] != digested:
                raise CheckpointError(
                    f"checkpoint: {who.name(0)} and {who.name(number)} differ in their {name}; "
                    "let all ranks read the same data, and restore the same checkpoint"
                )
    states = [_plain(from_bytes(each.state)) for each in found]
    try:
        return to_bytes(merged([_with_large(each, state) for each in states], "rank"))
    except CheckpointError as error:
        said = str(error).removeprefix("restore: ")
        raise CheckpointError(
            f"checkpoint: ranks do not stand at one place; {said}: call checkpoint() on "
            "all ranks after the same batch"
        ) from None
