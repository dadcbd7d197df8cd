"""Which coordinator the options of a run mean, if any."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import MutableMapping
from typing import Any

from zephon.coordination.c10d import SCHEME, C10dStore
from zephon.coordination.collectives import CollectiveRounds
from zephon.coordination.coordinator import LEADER, Coordinator, Participant
from zephon.coordination.directory import DirectoryStore
from zephon.coordination.objects import ObjectStore
from zephon.coordination.rounds import StoreRounds
from zephon.coordination.shared_mapping import MappingStore
from zephon.coordination.store import Store
from zephon.errors import PlanError
from zephon.io.storage.object_urls import is_object_url

_LAUNCHES = (
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT",
    "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
)  # fmt: skip
"""What tells one launch of a job from another; the same on all of its ranks."""


def meet(
    participant: Participant,
    *,
    aggregate_dir: str | None,
    aggregate_store: Any,
    run_id: str,
    seconds: float,
) -> Coordinator:
    """Let ranks meet in what options name, or by a running torch.distributed.

    Args:
        participant: who this is.
        aggregate_dir: a directory, or a prefix in an object store.
        aggregate_store: `torch://...`, a mapping, or a process group of torch.distributed.
        run_id: tells jobs apart that meet in one place.
        seconds: how long to wait for other ranks.

    Raises:
        PlanError: what is named is no place to meet.
        CoordinationError: ranks did not come.
    """
    if aggregate_dir is not None or isinstance(aggregate_store, str | MutableMapping):
        store = _store(aggregate_dir, aggregate_store, participant, seconds)
        return StoreRounds(store, participant, _space(run_id), seconds)
    if aggregate_store is not None:
        made = CollectiveRounds(aggregate_store, participant.names, seconds)
        _refuse_others(participant, made.participant, "the process group in aggregate_store")
        return made
    return CollectiveRounds(None, participant.names, seconds)


def host(aggregate_store: Any, participant: Participant, seconds: float) -> None:
    """Let this process host a store that is named by its address, if its rank is to; else nothing.

    Its children may end before others have read what is there.

    Raises:
        PlanError, CoordinationError: as ``meet``.
    """
    if isinstance(aggregate_store, str) and participant.rank == LEADER:
        _store(None, aggregate_store, participant, seconds)


def running_ranks() -> tuple[int, int] | None:
    """Give rank and world size of torch.distributed, if it runs in this process."""
    # Not imported here: where nobody has, nobody has started it.
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist.get_rank(), dist.get_world_size()


def _store(
    aggregate_dir: str | None, aggregate_store: Any, participant: Participant, seconds: float
) -> Store:
    if aggregate_dir is not None:
        url = os.fspath(aggregate_dir)
        return ObjectStore(url) if is_object_url(url) else DirectoryStore(url)
    if isinstance(aggregate_store, str):
        if not aggregate_store.startswith(SCHEME):
            raise PlanError(
                f"options: aggregate_store={aggregate_store!r} is unknown; write 'torch://' or "
                "'torch://host:port', or pass a mapping or a process group"
            )
        return C10dStore(aggregate_store, leads=participant.rank == LEADER, seconds=seconds)
    return MappingStore(aggregate_store)


def _space(run_id: str) -> str:
    """Say where a job meets: by its name, and by what launched it."""
    launch = "\n".join(f"{name}={os.environ.get(name, '')}" for name in _LAUNCHES)
    told = hashlib.sha256(f"{run_id}\n{launch}".encode()).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', run_id)[:64]}-{told}"


def _refuse_others(ours: Participant, theirs: Participant, what: str) -> None:
    if (ours.rank, ours.size) != (theirs.rank, theirs.size):
        raise PlanError(
            f"options: {what} has this process as rank {theirs.rank} of {theirs.size}, options say "
            f"global_rank={ours.rank} of world_size={ours.size}; let them name the same ranks"
        )
