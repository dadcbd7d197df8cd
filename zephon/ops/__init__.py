"""Operators of the user: what they derive from, what they say of records, and words of steps.

Read ``base`` first, then ``traits``, ``context``, ``accumulators`` and ``lineage``; ``arguments``
checks what ``Pipeline.add_op`` and ``Pipeline.stateful_transform`` are given. Nothing here runs a
plan.
"""

from zephon.ops.accumulators import (
    Accumulator,
    CountingAccumulator,
    PassthroughAccumulator,
    ReadyBatch,
)
from zephon.ops.base import BaseOp
from zephon.ops.context import OpContext, StageInfo
from zephon.ops.domain_groups import DomainGroups
from zephon.ops.lineage import pack_meta, spawn_child, tombstone_meta, tombstones_for_record
from zephon.ops.traits import OpTraits
from zephon.ops.words import (
    LossScope,
    MissingFieldMode,
    PackingAlgorithm,
    SpanSource,
    SpecialTokensMode,
)

__all__ = [
    "Accumulator",
    "BaseOp",
    "CountingAccumulator",
    "DomainGroups",
    "LossScope",
    "MissingFieldMode",
    "OpContext",
    "OpTraits",
    "PackingAlgorithm",
    "PassthroughAccumulator",
    "ReadyBatch",
    "SpanSource",
    "SpecialTokensMode",
    "StageInfo",
    "pack_meta",
    "spawn_child",
    "tombstone_meta",
    "tombstones_for_record",
]
