"""The class that operators of the user derive from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from zephon.errors import PlanError
from zephon.ops.accumulators import Accumulator, PassthroughAccumulator
from zephon.ops.context import OpContext, StageInfo
from zephon.ops.traits import OpTraits
from zephon.qualified_names import qualified_name
from zephon.types import SampleRecord


class BaseOp(ABC):
    """An operator for ``Pipeline.add_op``: lists of records in, lists of records out.

    ``process_many`` remembers nothing between calls and gives the same for the same records; what
    must be remembered is in the accumulator. A record that is changed keeps its meta; one that is
    made has a meta of ``spawn_child`` or ``pack_meta``; in place of a dropped one come
    ``tombstones_for_record``, or nothing.

    ``__init__`` runs once, where the pipeline is described. Each worker gets a deep copy, and calls
    ``setup`` on it: build there what is large, or cannot be copied.

    stage_info: where the operator stands.
    """

    def __init__(self) -> None:
        self.stage_info = StageInfo()

    @abstractmethod
    def traits(self) -> OpTraits:
        """Say what the operator promises."""

    @abstractmethod
    def process_many(self, elems: list[Any]) -> list[Any]:
        """Make records of some records, which are the operator's own."""

    def process_one(self, elem: Any) -> list[Any]:
        """Make records of one record."""
        return self.process_many([elem])

    def accumulator(self, *, deterministic: bool, ctx: OpContext) -> Accumulator[Any]:
        """Make what forms the groups of one lane; without it they are formed by 64 rows.

        Args:
            deterministic: always True: nothing but records may decide about groups.
            ctx: services.
        """
        return PassthroughAccumulator()

    def setup(self, ctx: OpContext) -> None:
        """Get ready for work; called once a worker. Call ``super().setup(ctx)``."""
        self.stage_info = ctx.stage_info

    def teardown(self) -> None:
        """Let go of what ``setup`` built; called once a worker, at the end.

        A worker process has a few seconds for it, and for the task that it is at.
        """
        self.stage_info = StageInfo()

    def validation_samples(self) -> list[SampleRecord] | None:
        """Give records with which the operator may be tried out; None: it must not be."""
        return None

    @classmethod
    def plan_identity(cls) -> str:
        """Name the operator, the same in every process."""
        return qualified_name(cls)


def check_begun(op: BaseOp) -> None:
    """Refuse an operator whose own ``__init__`` left that of ``BaseOp`` out.

    Raises:
        PlanError: it did.
    """
    if not isinstance(getattr(op, "stage_info", None), StageInfo):
        kind = type(op).__name__
        raise PlanError(
            f"add_op: {kind}.__init__ must call super().__init__(), and did not; add the call as "
            "its first line"
        )


def remembers(op: BaseOp) -> bool:
    """Tell whether an operator must see the records of a lane in order."""
    return type(op).accumulator is not BaseOp.accumulator or op.traits().requires_serial_state
