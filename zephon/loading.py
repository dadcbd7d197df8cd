"""What torch asks of a pipeline: a dataset for loaders, and a state that its checkpoints can hold.

No torch is needed here. A loader may run a pipeline in workers, each of which hands out its share
of the rank's batches, and knows its own state only. That is asked for after each item: so it is a
base, the state of the worker's engine as text, and how many batches have followed it. The base is
renewed once a second at most, and seldom enough to take two hundredths of the time; a snapshot is a
few plain values otherwise, and who goes on from one makes about a second's batches again.
"""

from __future__ import annotations

import copy
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from zephon.errors import (
    CheckpointError,
    ExecutionError,
    MissingTorchError,
    StateElsewhereError,
)
from zephon.planner import logical
from zephon.resuming import Resuming
from zephon.types import StreamItem
from zephon.work import WorkSource

if TYPE_CHECKING:
    from zephon.exec.engine import Engine
    from zephon.exec.hosting import HostedEngine
    from zephon.exec.lanes import Share, Topology
    from zephon.torch_dataset import PipelineDataset

_KEYS = {"engine", "passed", "worker", "workers"}
RENEW_SECONDS = 1.0
RENEW_COSTS = 50
"""How many times as long as a worker's base takes to write it stays, at least."""


class Loading(Resuming):
    """The side of a pipeline that torch sees; ``Pipeline`` runs it."""

    def __init__(self, work_source: WorkSource) -> None:
        super().__init__(work_source)
        self._loads = False  # whether a loader may run it
        self._handed_out = 0  # batches of the run
        self._share: Share | None = None  # of a process that does not hand out all of its rank's
        self._elsewhere: Callable[[int], bool] | None = None  # whether other processes run it

    def to_torch_dataset(self, *, stateful: bool = True) -> PipelineDataset:
        """Return this pipeline as an ``IterableDataset``; its items are batches already.

        For ``DataLoader(dataset, batch_size=None)`` and torchdata's ``StatefulDataLoader``, with
        any ``num_workers``. 0 is the fastest as a rule: the pipeline has threads of its own, and
        nothing is sent between processes. 1 keeps the trainer's interpreter free. More make
        everything but batches as many times with ``global_batch_size``, and without it share the
        rank's lanes; each has a ``memory_budget`` of its own. What comes is the same, in the same
        order; without ``global_batch_size`` until the first lane ends.

        Args:
            stateful: give it ``state_dict`` and ``load_state_dict``.

        Raises:
            MissingTorchError: torch is not installed.
            PlanError, CoordinationError: this rank is to host the store where ranks meet, for all
                of its workers, and cannot.
        """
        # Imported late: torch is optional, and takes a second.
        try:
            from zephon.torch_dataset import dataset_of
        except ModuleNotFoundError as exc:
            if not (exc.name or "").startswith("torch"):
                raise
            raise MissingTorchError(
                "to_torch_dataset: torch is needed and is not installed; pip install "
                "'zephon[torch]', or iterate over the pipeline"
            ) from exc
        # Loaded now: workers that are forked need not do it again.
        self._runs().host_ranks(self._options)
        self._loads = True
        return dataset_of(self, stateful=stateful)

    @property
    def is_indexable(self) -> bool:
        """Whether single items can be asked for by number: they never can."""
        return False

    def to_indexable_torch_dataset(self) -> NoReturn:
        """Refuse: no work source gives single samples by number.

        Raises:
            ExecutionError: always; says why.
        """
        raise ExecutionError(
            f"to_indexable_torch_dataset: {type(self._source).__name__} gives streams of samples, "
            "of which none can be asked for by number; use to_torch_dataset()"
        )

    def state_dict(self) -> dict[str, Any]:
        """Return ``checkpoint()`` as one text under ``"engine"``; all ranks call it together.

        So ``torch.distributed.checkpoint``, ``torch.save`` and JSON can hold it, whatever is in it.

        Raises:
            StateElsewhereError: workers of a ``DataLoader`` run the pipeline.
            CoordinationError, CheckpointError: as ``checkpoint``.
        """
        return self._told_state("global")

    def _told_state(self, scope: Literal["global", "local"]) -> dict[str, Any]:
        """Do what ``state_dict()`` does: of all ranks, or of this one without asking the others."""
        return {"engine": self._runs().to_text(self._state(scope))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do what ``restore(state)`` does, with what ``state_dict()`` or ``checkpoint()`` gave."""
        text = state.get("engine") if isinstance(state, Mapping) and "format" not in state else None
        self.restore(state if text is None else self._runs().from_text(text))

    def _in_worker(
        self, worker: int, workers: int, state: Mapping[str, Any] | None, *, waits: bool
    ) -> WorkerRun:
        """Begin to hand out one worker's share of this rank's batches, in a copy.

        Args:
            worker: which of the workers.
            workers: how many.
            state: what ``WorkerRun.state`` gave in an earlier iteration of this worker.
            waits: a state that was restored counts; otherwise this begins anew.
        """
        own = copy.copy(self)
        if not waits:
            own._restored = None
        own._meet_as_worker(worker, workers)
        return WorkerRun(own, worker, workers, state)

    @abstractmethod
    def __iter__(self) -> Iterator[StreamItem]: ...

    def _state(self, scope: str = "global") -> dict[str, Any]:
        self._refuse_elsewhere()
        return super()._state(scope)

    def _take_share(self, worker: int, workers: int, passed: int | None) -> Share | None:
        """Hand out one worker's share from here on; None: there is nothing for it.

        Args:
            worker: which of the workers.
            workers: how many.
            passed: of a worker that goes on from its own state, which was restored, the batches to
                pass over after it; None: the state, if there is one, is the rank's.
        """
        self._demote_processes()
        runs, restored = self._runs(), self._restored
        topology = self._topology(restored)
        # take() counts the rows of all lanes
        by_lanes = topology.global_batch_size is None and not self._has(logical.Take)
        if passed is not None and restored is not None:
            share = runs.resumed_share(workers, restored, passed, by_lanes=by_lanes)
        else:
            share = runs.share_of(topology, worker, workers, restored, by_lanes=by_lanes)
        self._share = share
        return share

    def _meet_as_worker(self, worker: int, workers: int) -> None:
        """Let workers of one number on all ranks end together; each of them has the same steps.

        A process group of torch is not in a worker, though a forked one seems to have it.
        """
        options = self._options
        place = options.aggregate_dir is not None or isinstance(
            options.aggregate_store, str | MutableMapping
        )
        self._alone = self._alone or not place
        options.run_id = f"{options.run_id}.worker-{worker}-of-{workers}"

    def _demote_processes(self) -> None:
        """Let threads run what processes would: workers of a loader start none."""
        options = self._options
        stages = {
            stage: "threads" if runner == "process" else runner
            for stage, runner in options.per_stage_runner.items()
        }
        if options.runner != "process" and stages == options.per_stage_runner:
            return
        warnings.warn(
            "options: runner='process' is 'threads' in a worker of a DataLoader, which starts no "
            "processes; leave runner out, or use num_workers=0",
            RuntimeWarning,
            stacklevel=5,
        )
        options.per_stage_runner = stages
        options.runner = "threads" if options.runner == "process" else options.runner

    def _topology(self, restored: dict[str, Any] | None) -> Topology:
        topology = super()._topology(restored)
        return topology if self._share is None else replace(topology, handed=self._share)

    def _text_of(self, engine: Engine | HostedEngine) -> str:
        """Write down where an engine of this pipeline stands: its own rank, and what it shares."""
        runs = self._runs()
        return runs.to_text(runs.state_of(engine))

    def _refuse_elsewhere(self) -> None:
        if self._elsewhere is not None and self._elsewhere(self._changes):
            raise StateElsewhereError(
                "state_dict: this pipeline runs in the workers of a DataLoader, which tell nobody "
                "where they stand; iterate over torchdata's StatefulDataLoader and take its "
                "state_dict(), or use num_workers=0"
            )

    def _warn_of_ranks_apart(self) -> None:
        if self._alone and self._engine is not None and self._engine.may_part:
            self._runs().warn_of_ranks_apart(self._options)

    def _warn_of_dropped(self) -> None:
        warnings.warn(
            "map_batch: a batch was dropped, and workers hand batches out in turn: those that "
            "follow come in another order than with num_workers=0",
            RuntimeWarning,
            stacklevel=3,
        )


class WorkerRun:
    """One iteration in one worker.

    Args:
        pipeline: this worker's own.
        worker: which of the workers.
        workers: how many.
        state: of this worker, from an earlier iteration; None: the pipeline knows where to begin.

    Raises:
        CheckpointError: the state is of another worker, or of one among another number.
    """

    def __init__(
        self, pipeline: Loading, worker: int, workers: int, state: Mapping[str, Any] | None
    ) -> None:
        self._pipeline = pipeline
        self._who = {"worker": worker, "workers": workers}
        self._base, self._taken, self._lasts = "", 0.0, RENEW_SECONDS
        self._passed = self._at = self._every = 0
        self._items: Iterator[StreamItem] = iter(())
        passed = None
        if state is not None:
            passed = self._checked(state)
            if not state["engine"]:  # it idles, as it did
                return
            pipeline.load_state_dict({"engine": state["engine"]})
        share = pipeline._take_share(worker, workers, passed)
        if share is not None:
            self._passed, self._every = share.passed, share.every
            self._items = iter(pipeline)
            pipeline._warn_of_ranks_apart()

    def items(self) -> Iterator[StreamItem]:
        """Give the items of this worker's share."""
        return self._items

    def state(self) -> dict[str, Any]:
        """Return where this worker stands: a base, and batches of the rank after it."""
        engine = self._pipeline._engine
        if not self._every or engine is None:
            return {"engine": "", "passed": 0, **self._who}
        out = self._pipeline._handed_out
        begin = time.perf_counter()
        if not self._base or (out > self._at and begin - self._taken > self._lasts):
            self._base = self._pipeline._text_of(engine)
            if out:
                self._passed, self._at = self._every - 1, out
            self._taken = time.perf_counter()
            self._lasts = max(RENEW_SECONDS, RENEW_COSTS * (self._taken - begin))
        since = (out - self._at) * self._every
        return {"engine": self._base, "passed": self._passed + since, **self._who}

    def _checked(self, state: Mapping[str, Any]) -> int:
        """Give the batches to pass over, if the state is this worker's."""
        if not state.keys() >= _KEYS or not isinstance(state["passed"], int):
            raise CheckpointError(
                f"load_state_dict: expected the state of a worker, with {sorted(_KEYS)}, got "
                f"{list(state)}; load what the loader's state_dict() gave"
            )
        if any(state[name] != own for name, own in self._who.items()):
            raise CheckpointError(
                f"load_state_dict: the state is of worker {state['worker']} of num_workers="
                f"{state['workers']}, this is worker {self._who['worker']} of num_workers="
                f"{self._who['workers']}; use as many workers as when it was taken: only a state "
                "of num_workers=0 fits any number"
            )
        return state["passed"]
