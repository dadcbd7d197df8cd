"""A segment that runs in worker processes: references go out, blocks come back as they would here.

Draws are made here, and everything after them there; so a task costs its references, and its
blocks, which come back in memory that both sides map. A block that comes back holds its own rows
and tokens alone, not the row groups around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from zephon.errors import ExecutionError, told
from zephon.exec.block import Block, Buffer
from zephon.exec.runners import Handle, ProcessesRunner, Runner, WorkerPool
from zephon.exec.runners.bodies import pack_alone
from zephon.exec.runners.crossing import SentError
from zephon.exec.runners.transport import Parcel, pack
from zephon.exec.segment import Drawn, Segment, refs_of
from zephon.io.payload import Payload
from zephon.work.refs import Refs


class RemoteSegment:
    """What ``Segment`` is to an engine, over a pool of workers that each build the segment.

    Args:
        factory: builds the segment, in a worker; cloudpickle must take it.
        workers: processes at most.
        locate: names the first of some rows for an error message.
        max_retries: how often a task is run again whose worker died.
        window: draws that must be run together; see ``Segment``.
        finishes: the segment builds what must be let go of; workers get some seconds for it.
    """

    def __init__(
        self,
        factory: Callable[[], Segment],
        workers: int,
        locate: Callable[[Refs], str],
        max_retries: int = 3,
        *,
        window: int = 1,
        finishes: bool = False,
    ) -> None:
        self.window = window
        self.pool = WorkerPool(partial(_Answers, factory), workers, max_retries, finishes=finishes)
        self._locate = locate

    def make_runner(self) -> ProcessesRunner:
        """Make the runner that tasks are submitted to; closing it ends the workers.

        Raises:
            ExecutionError: what the workers need cannot be pickled.
        """
        return ProcessesRunner(self.pool)

    def submit(self, runner: Runner, draw: Callable[[], Drawn]) -> Handle[Sequence[Block]]:
        """Start the task that makes blocks of some draws; the arguments are those of ``Segment``.

        Args:
            runner: what ``make_runner`` made; its threads draw, and wait for a worker.
            draw: gives consecutive draws, one entry a lane or strand.
        """
        return runner.submit(lambda: self.run(draw()))

    def run(self, lanes: Drawn) -> Sequence[Block]:
        """Let a worker make blocks of the draws of several lanes; wait for it.

        Raises:
            ExecutionError: the workers that tried it died.
            CancelledError: the runner was closed.
        """
        sent: Sequence[_SentBlock] = self.pool.ask(list(lanes), partial(self._place, lanes))
        return [self._received(each) for each in sent]

    def close(self) -> None:
        """End the workers; so does closing the runner.

        Raises:
            ExecutionError: what a segment raised in a worker when it was closed there.
        """
        self.pool.close()
        self.pool.raise_failure()

    def _received(self, sent: _SentBlock) -> Block:
        block = sent.block
        if sent.unpicklable is not None:
            row, problem = sent.unpicklable
            return replace(
                block,
                failure=ExecutionError(
                    "options: runner='process' needs rows that cloudpickle takes, on "
                    f"{self._locate(row)} got {problem}; keep such objects out of rows, or use "
                    "runner='threads'"
                ),
            )
        if sent.failure is None:
            return block
        failure = sent.failure.error()
        return replace(block, failure=failure)

    def _place(self, lanes: Drawn) -> str:
        """Name the first and the last row of a task."""
        refs = Refs.concat([refs_of(entry) for entry in lanes])
        first, last = self._locate(refs), self._locate(refs.slice(len(refs) - 1, len(refs)))
        return first if len(refs) < 2 else f"one of {len(refs)} rows from {first}, to {last}"


@dataclass(frozen=True, slots=True)
class _SentBlock:
    """A block that crosses.

    block: without its failure. failure: what it was. unpicklable: the reference to a row that
    cannot be pickled, and why; the block ends before it.
    """

    block: Block
    failure: SentError | None
    unpicklable: tuple[Refs, str] | None = None


class _Answers:
    """Makes blocks in a worker."""

    def __init__(self, factory: Callable[[], Segment]) -> None:
        self._segment = factory()

    def close(self) -> None:
        self._segment.close()

    def __call__(self, lanes: Drawn) -> Parcel:
        sent = [
            _SentBlock(
                replace(block, failure=None),
                None if block.failure is None else SentError.of(block.failure),
            )
            for block in _trimmed(self._segment.run(lanes))
        ]
        try:
            return pack(sent)
        except Exception:  # a row is the user's, and so is what its pickling raises
            return pack([_picklable(each) for each in sent])


def _trimmed(blocks: Sequence[Block]) -> list[Block]:
    """Cut what blocks hold beside their own rows; what they share stays shared."""
    payloads = [block.payload for block in blocks if block.payload is not None]
    whole = Payload.concat(payloads).copied() if payloads else None
    buffers: dict[int, list[Block]] = {}
    for block in blocks:
        buffers.setdefault(id(block.buffer), []).append(block)
    cut = {number: _cut(sharing) for number, sharing in buffers.items()}
    trimmed, first = [], 0
    for block in blocks:
        buffer, shift = cut[id(block.buffer)]
        payload = None
        if whole is not None and block.payload is not None:
            stop = first + len(block.payload)
            payload = whole if stop - first == len(whole) else whole.take(np.arange(first, stop))
            first = stop
        offsets = block.offsets - shift if shift else block.offsets
        trimmed.append(replace(block, buffer=buffer, offsets=offsets, payload=payload))
    return trimmed


def _cut(blocks: Sequence[Block]) -> tuple[Buffer, int]:
    """Cut a buffer down to the tokens of the blocks that share it; say where they began."""
    buffer = blocks[0].buffer
    first = int(min(block.offsets[0] for block in blocks))
    stop = int(max(block.offsets[-1] for block in blocks))
    columns = {name: values[first:stop] for name, values in buffer.columns.items()}
    return replace(buffer, columns=columns), first


def _picklable(sent: _SentBlock) -> _SentBlock:
    """Give a block up to its first row that cannot be pickled, with rows of its own."""
    payload = sent.block.payload
    if payload is None:
        return sent
    for row in range(len(payload)):
        try:
            pack_alone(payload.take(np.arange(row, row + 1)).copied())
        except Exception as exc:  # likewise
            problem = f"{told(exc)}"
            ref = sent.block.refs.slice(row, row + 1)
            return _SentBlock(_before(sent.block, payload, row), None, (ref, problem))
    return replace(sent, block=replace(sent.block, payload=payload.copied()))


def _before(block: Block, payload: Payload, row: int) -> Block:
    earlier = block.lost.refs.ordinal < block.refs.ordinal[row]
    return replace(
        block,
        refs=block.refs.slice(0, row),
        offsets=block.offsets[: row + 1],
        payload=payload.take(np.arange(row)).copied(),
        measures={name: values[:row] for name, values in block.measures.items()},
        lost=block.lost.take(np.flatnonzero(earlier)),
    )
