"""Figures of a run, as they were when somebody asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MTPQueueStats:
    """How full the queue is between an engine in a child process and the caller.

    depth: batches that are ready for the caller. capacity: batches that may be. staged_bytes: of
    shared memory that they take. prefetch_depth: batches that the engine has made besides, and that
    wait for room.
    """

    depth: int
    capacity: int
    staged_bytes: int
    prefetch_depth: int
