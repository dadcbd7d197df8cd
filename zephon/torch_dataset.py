"""A pipeline as torch's ``IterableDataset``, in the trainer's process or in a loader's workers.

Loaders copy a dataset into each worker, and ask worker after worker for an item. So each hands out
its share of the rank's batches; see ``loading``.

Imported late: this module loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from multiprocessing.context import get_spawning_popen
from multiprocessing.sharedctypes import RawArray
from typing import Any, Literal, Protocol

import cloudpickle
from torch.utils.data import IterableDataset, get_worker_info

from zephon.errors import CheckpointError
from zephon.types import StreamItem


class WorkerRun(Protocol):
    """One iteration in one worker; see ``loading.WorkerRun``."""

    def items(self) -> Iterator[StreamItem]:
        """Give the items of this worker's share."""
        ...

    def state(self) -> dict[str, Any]:
        """Return where this worker stands."""
        ...


class Loadable(Protocol):
    """A pipeline, as far as a dataset knows it; see ``loading.Loading``."""

    _changes: int
    _elsewhere: Callable[[int], bool] | None

    def __iter__(self) -> Iterator[StreamItem]: ...

    def _told_state(self, scope: Literal["global", "local"]) -> dict[str, Any]:
        """Return its state, or this rank's part of it."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        ...

    def _in_worker(
        self, worker: int, workers: int, state: Mapping[str, Any] | None, *, waits: bool
    ) -> WorkerRun:
        """Begin to hand out a worker's share."""
        ...


class PipelineDataset(IterableDataset):
    """The items of a pipeline; ``Pipeline.to_torch_dataset`` makes it.

    Args:
        pipeline: runs in this process, or copies of it in workers; a state that was restored
            counts for one iteration, wherever it is.
    """

    def __init__(self, pipeline: Loadable) -> None:
        super().__init__()
        self._pipeline = pipeline
        self._worker: WorkerRun | None = None
        self._own_state: Mapping[str, Any] | None = None
        self._used = False
        self._note = _Note()
        self._follow()

    def __iter__(self) -> Iterator[StreamItem]:
        """Begin an iteration: of all that the rank hands out, or of this worker's share.

        Raises:
            CheckpointError: a state that was loaded does not fit; says why.
        """
        info = get_worker_info()
        if info is None:
            self._note.clear()
            return iter(self._pipeline)
        state, self._own_state = self._own_state, None
        # A state that waited where workers are made is in all that are made there, also in those of
        # later iterations; a seed tells the workers of one from those of another.
        first, self._used = not self._used, True
        first &= self._note.is_first(info.seed - info.id, self._pipeline._changes)
        waits = first or state is not None
        run = self._pipeline._in_worker(info.id, info.num_workers, state, waits=waits)
        self._worker = run
        return run.items()

    def _follow(self) -> None:
        note = self._note
        self._pipeline._elsewhere = lambda changes: (
            get_worker_info() is None and note.is_written(changes)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Tell what a worker needs; functions without a name go along, too."""
        note = None if get_spawning_popen() is None else self._note
        sent = cloudpickle.dumps(self._pipeline)
        return {**self.__dict__, "_pipeline": sent, "_worker": None, "_note": note}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pipeline = cloudpickle.loads(state["_pipeline"])
        self._note = state["_note"] or _Note()
        self._follow()


class StatefulPipelineDataset(PipelineDataset):
    """The same, with its state."""

    def state_dict(self) -> dict[str, Any]:
        """Return where the items stand that were handed out on this rank: in a worker, its own.

        Each rank keeps and loads its own; what all ranks share is the pipeline's ``checkpoint()``.

        Raises:
            StateElsewhereError: workers have them, and this is not one.
        """
        if self._worker is not None:
            return self._worker.state()
        return self._pipeline._told_state("local")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state in the next iteration.

        Args:
            state: what ``state_dict`` returned, here, of the pipeline, or in a worker; what a
                worker returned goes to that worker, of as many.

        Raises:
            CheckpointError: it is damaged, or the state of one worker and this is none.
        """
        if "worker" not in state:
            self._pipeline.load_state_dict(state)
        elif get_worker_info() is None:
            raise CheckpointError(
                f"load_state_dict: this is the state of worker {state['worker']} of "
                f"num_workers={state['workers']}; load the state_dict() of the whole "
                "StatefulDataLoader into one with as many workers"
            )
        else:
            self._own_state = state


def dataset_of(pipeline: Loadable, *, stateful: bool) -> PipelineDataset:
    """Make the dataset of a pipeline, with or without a state."""
    return (StatefulPipelineDataset if stateful else PipelineDataset)(pipeline)


class _Note:
    """What workers write for the process that made them, and for workers that it makes later.

    The seed of the first iteration by workers, and what the pipeline had gone through by then.
    """

    def __init__(self) -> None:
        self._memory = RawArray("q", [-1, -1])

    def is_first(self, seed: int, changes: int) -> bool:
        """Say whether no other iteration by workers began since the pipeline's last change."""
        if self._memory[1] != changes:
            self._memory[0] = seed
            self._memory[1] = changes  # last: other workers of this iteration may look meanwhile
        return self._memory[0] == seed

    def is_written(self, changes: int) -> bool:
        """Say whether an iteration by workers began since the pipeline's last change."""
        return self._memory[1] == changes

    def clear(self) -> None:
        """Begin anew: this process iterates itself."""
        self._memory[1] = -1
