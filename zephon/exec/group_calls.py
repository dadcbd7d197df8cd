"""An operator that ``add_op`` added, as a call on groups of records: a copy for each worker."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from zephon.errors import ExecutionError, told
from zephon.exec.user_calls import called, records_of
from zephon.ops import Accumulator, BaseOp, OpContext, StageInfo
from zephon.ops.context import OpServices
from zephon.planner.logical.custom import CustomOp
from zephon.types import SampleRecord


class Worker:
    """One copy of an operator; called by one thread at a time.

    instance: the copy; None: the operator is functions. ready: it is set up, so it may be called.
    """

    def __init__(self, op: CustomOp, context: OpContext, *, ready: bool = True) -> None:
        self._context = context
        self._label = label_of(op)
        self.instance: BaseOp | None = None
        if op.instance is not None:
            instance: BaseOp = self._own(op.instance)
            self.instance = self._begun(instance) if ready else instance
            self._many, self._forms = instance.process_many, instance.accumulator
        else:
            # A function is its own copy; an object that is called like one is not.
            copied = op.requires_serial_state
            many = op.process_many
            self._many: Any = self._own(many) if copied else many
            self._forms: Any = op.accumulator

    def process(self, records: Sequence[SampleRecord]) -> list[SampleRecord]:
        """Give what the operator makes of a group; it keeps neither.

        Args:
            records: the operator's own.

        Raises:
            RowError: it failed, or gave something else than records.
        """
        count = len(records)
        made = called("process_many", count, self._many, list(records))
        return records_of("process_many", count, made)

    def accumulator(self) -> Accumulator[SampleRecord]:
        """Make what forms the groups of a lane.

        Raises:
            ExecutionError: the factory failed, or gave something else.
        """
        wanted = {"deterministic": True, "ctx": self._context}
        try:
            made = self._forms(**{k: v for k, v in wanted.items() if k in _takes(self._forms)})
        except Exception as exc:
            raise ExecutionError(
                f"{self._label}: accumulator raised {told(exc)}, where a lane "
                "begins; mend the function"
            ) from exc
        if not all(callable(getattr(made, name, None)) for name in ("push_many", "flush")):
            raise ExecutionError(
                f"{self._label}: accumulator must return an Accumulator, got {made!r:.80}; derive "
                "a class from zephon.ops.Accumulator"
            )
        return made

    def close(self) -> None:
        """Let the operator let go of what it built."""
        if self.instance is not None:
            self.instance.teardown()

    def _own(self, value: Any) -> Any:
        try:
            return deepcopy(value)
        except Exception as exc:
            raise ExecutionError(
                f"{self._label}: every worker needs a copy of its own, and copying raised "
                f"{told(exc)}; build in setup() what cannot be copied"
            ) from exc

    def _begun(self, instance: BaseOp) -> BaseOp:
        instance.stage_info = self._context.stage_info
        try:
            instance.setup(self._context)
        except Exception as exc:
            raise ExecutionError(
                f"{self._label}: setup raised {told(exc)}, for a new worker; mend it"
            ) from exc
        return instance


class GroupCalls:
    """Hands out copies of one operator.

    label: how messages call it.
    """

    def __init__(
        self, op: CustomOp, services: OpServices, stage_info: StageInfo | None = None
    ) -> None:
        self.label = label_of(op)
        self._op = op
        self._context = services.context(stage_info)
        self._own = threading.local()
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._failure: ExecutionError | None = None

    def worker(self) -> Worker:
        """Give the copy of the thread that asks, ready for work."""
        found = getattr(self._own, "worker", None)
        if found is None:
            found = self._own.worker = self.new_worker()
        return found

    def new_worker(self) -> Worker:
        """Make a copy that nobody else has.

        Raises:
            ExecutionError: it cannot be copied, or ``setup`` failed; nothing is tried after that.
        """
        if self._failure is not None:
            raise ExecutionError(str(self._failure)) from self._failure.__cause__
        try:
            worker = Worker(self._op, self._context)
        except ExecutionError as exc:
            self._failure = exc
            raise
        with self._lock:
            self._workers.append(worker)
        return worker

    def idle_worker(self) -> Worker:
        """Make a copy that is not set up: to ask what its accumulator is."""
        return Worker(self._op, self._context, ready=False)

    def release(self, worker: Worker) -> None:
        """Take back a copy of ``new_worker``.

        Raises:
            ExecutionError: its ``teardown`` failed.
        """
        with self._lock:
            self._workers = [each for each in self._workers if each is not worker]
        self._close([worker])

    def close(self) -> None:
        """Take back all copies; new ones are made if somebody asks again.

        Raises:
            ExecutionError: a ``teardown`` failed; all were called.
        """
        with self._lock:
            workers, self._workers = self._workers, []
            self._own = threading.local()
        self._close(workers)

    def _close(self, workers: Sequence[Worker]) -> None:
        failures = []
        for worker in workers:
            try:
                worker.close()
            except Exception as exc:  # the others are still to be closed
                failures.append(exc)
        if failures:
            first = failures[0]
            raise ExecutionError(
                f"{self.label}: teardown raised {told(first)}, at the end of a worker; mend it"
            ) from first


def label_of(op: CustomOp) -> str:
    """Say how messages call an operator."""
    return f"add_op {op.name!r}"


def _takes(factory: Callable[..., Any]) -> tuple[str, ...]:
    """Give the names that a factory can be called with, of those that it may be told."""
    names = ("deterministic", "ctx")
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # one that says nothing of itself
        return ()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return names
    alone = inspect.Parameter.POSITIONAL_ONLY
    return tuple(n for n in names if n in parameters and parameters[n].kind is not alone)
