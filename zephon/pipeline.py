"""The public surface: a description of steps that compiles and runs when it is iterated.

Steps are called in ``steps``, states in ``resuming``.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zephon.errors import ExecutionError
from zephon.exec.batch_functions import mapped
from zephon.exec.tables import table_of
from zephon.io.options import StoreOptions
from zephon.loading import Loading
from zephon.observability import MTPQueueStats
from zephon.planner import logical
from zephon.planner.logical.node import at_least
from zephon.planner.tree import source_first, top_first, transform_up
from zephon.steps import whole
from zephon.types import SampleBatch, StreamItem, record_of

if TYPE_CHECKING:
    from zephon.exec.engine import Engine
    from zephon.exec.hosting import HostedEngine
    from zephon.validation import ValidationReport


class Pipeline(Loading):
    """A recipe from a work source to training batches; calls add steps in place and return it.

    Iterating yields ``SampleBatch`` after ``batch()`` and ``SampleRecord`` without it, from the
    beginning each time unless ``restore()`` was called.

    It can be copied, and sent to other processes by pickle, or by cloudpickle where functions have
    no name that could be imported there. Rows in memory and a restored state that waits go along;
    an iterator and what runs stay behind. A copy has the same fingerprint wherever it is.
    """

    # Settings and looking at the plan

    def options(self, **settings: Any) -> Pipeline:
        """Set runtime options by name; see ``zephon.options.RuntimeOptions``.

        ``io_options`` are merged into those of earlier calls; see ``zephon.io.StoreOptions``.

        Raises:
            PlanError: an unknown option or value; names the nearest right one.
        """
        if "io_options" in settings:
            earlier = StoreOptions.from_any(self._options.io_options)
            settings["io_options"] = earlier.merge(settings["io_options"])
        self._options.update(**{name: whole(value) for name, value in settings.items()})
        return self._changed()

    def explain(self) -> str:
        """Return the plan as text: logical, optimized, physical, data, lanes, notes, stages."""
        plan, runs = self._compiled(), self._runs()
        topology = runs.topology_of(plan, self._options, self._restored)
        workers = runs.workers_of(plan, self._options)
        reading = runs.plan_reading(self._source, self._options, topology)
        return runs.explain_text(
            plan,
            runs.RunFacts(
                runner=workers.runner,
                workers=workers.count,
                queue=workers.queue,
                memory_budget=reading.budget,
                reading=reading.lines,
                mixture=(
                    *self._source.describe(
                        topology.lanes, runs.step_of(plan, topology.global_batch_size)
                    ),
                    *runs.cost_lines(self._source, self._restored),
                ),
                lanes=runs.lane_lines(topology, plan),
                notes=(
                    *runs.notes(
                        plan,
                        self._options,
                        topology,
                        reading.budget,
                        runs.mean_row_bytes(self._source),
                    ),
                    *([runs.worker_note(topology, reading.budget)] if self._loads else ()),
                    *runs.policy_notes(
                        self._source,
                        self._options,
                        None if self._engine is None else self.accounting,
                    ),
                    *runs.data_notes([c.dataset for c in self._source.components if c.read]),
                ),
            ),
        )

    def fingerprint(self) -> str:
        """Return the SHA-256 of everything that decides what is delivered.

        Raises:
            TokenizerError: the tokenizer, which is a part of it, cannot be loaded.
        """
        return self._runs().digest(self._launch(None).identity.recipe)

    # Running

    def __iter__(self) -> Generator[Any, None, None]:
        """Compile, check, and return an iterator; work begins with its first item."""
        engine, self._ready = self._next_engine(), None
        if self._running is None:
            self._engine = engine
        return self._items(engine, self._changes)

    def _items(
        self, engine: Engine | HostedEngine, changes: int
    ) -> Generator[StreamItem, None, None]:
        if changes != self._changes:
            raise ExecutionError(
                "the pipeline was changed or restored after this iterator was made; iterate it anew"
            )
        if self._running is not None:
            raise ExecutionError(
                "Pipeline is already being iterated; close the first iterator, or build a second "
                "pipeline"
            )
        if not self._alone:
            self._runs().warn_of_the_same_data(self._options)
        ranks = self._ranks_of(engine) if engine.may_part else None
        ending = contextlib.nullcontext() if ranks is None else ranks.ending()
        batched = self._has(logical.Batch)
        calls = [n for n in source_first(self._node) if isinstance(n, logical.MapBatch)]
        self._running = self._engine = engine
        self._restored = self._ready = None
        try:
            with ending as ends:
                rows = engine.items(ends)
                try:
                    for self._handed_out, batch in enumerate(rows, 1):
                        if not batched:
                            yield record_of(batch, 0)
                            continue
                        made = mapped(SampleBatch.from_rows(batch), calls)
                        if made is not None:
                            yield made
                        elif self._share is not None:
                            self._warn_of_dropped()
                finally:
                    rows.close()
        finally:
            if self._running is engine:
                self._running = None

    def head(self, n: int = 8) -> pa.Table:
        """Run now, from the beginning, and give the first rows as an Arrow table.

        The pipeline, and an iteration of it that goes on, stay as they are.

        Args:
            n: rows, as ``take`` counts them.

        Raises:
            DataError: the values of a field have no one type, or its name is no UTF-8.
        """
        at_least("head", "n", n, 1)
        fresh = self._fresh()
        if isinstance(self._node, logical.Take):
            fresh._node = replace(self._node, rows=min(n, self._node.rows))
        else:
            fresh.take(n)
        known = {f.name: f.type for f in self._node.fields() if f.type is not None}
        return table_of(fresh, known)

    def collect(self, n_batches: int | None = None) -> list[StreamItem]:
        """Run now, from the beginning, and give the first batches, or records, as a list.

        The pipeline, and an iteration of it that goes on, stay as they are.

        Args:
            n_batches: how many; None: all there are.
        """
        at_least("collect", "n_batches", 1 if n_batches is None else n_batches, 0)
        items = iter(self._fresh())
        with contextlib.closing(items):
            return list(itertools.islice(items, n_batches))

    def validate(self, *, strict: bool = False) -> ValidationReport:
        """Try the operators of the user on a few made-up records, and report what is wrong.

        Args:
            strict: raise ``ValidationError`` if anything is.
        """
        return self._runs().validate_pipeline(self._node, strict=strict)

    def preflight_tokenizers(self, *, strict: bool = True) -> ValidationReport:
        """Load every tokenizer now, and report those that cannot be.

        Args:
            strict: raise ``ValidationError`` if one cannot.
        """
        return self._runs().preflight_tokenizers(self._node, strict=strict, options=self._options)

    def mtp_queue_stats(self) -> MTPQueueStats | None:
        """Say how full the queue is between the engine's process and this one.

        None unless the pipeline is being iterated with ``mtp_mode``.
        """
        return self._runs().queue_stats(self._running)

    # Inside

    def _fresh(self) -> Pipeline:
        """Return a copy that runs from the beginning."""
        other = copy.copy(self)
        other._restored, other._alone = None, True
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Tell all that another process needs, also what the functions are: it may not know.

        It is as a copy is: what runs here stays here, its iterator and threads.
        """
        from zephon.exec.fingerprint import Told  # late: only who sends a pipeline away needs it

        told = Told.of(self._node, self._source, self._told)
        return {**self._description(), "_plan": None, "_told": told}

    def __copy__(self) -> Pipeline:
        other = object.__new__(type(self))
        vars(other).update(self._description())
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Pipeline:
        other = memo[id(self)] = object.__new__(type(self))
        vars(other).update(copy.deepcopy(self._description(), memo))
        return other

    def _description(self) -> dict[str, Any]:
        """Give what a copy has: the recipe, and a restored state that waits; it runs anew.

        Its options are its own: ranks may be copies of one description.
        """
        own = copy.copy(self._options)
        here = dict.fromkeys(("_engine", "_running", "_ready", "_ranks", "_elsewhere"))
        return {**self.__dict__, "_options": own, **here}

    def _batching(self) -> tuple[int | None, bool]:
        """Give the rows of a batch, None where rows come alone, and whether functions see it."""
        sizes = [n.microbatch_size for n in top_first(self._node) if isinstance(n, logical.Batch)]
        return (sizes[0] if sizes else None), self._has(logical.MapBatch)

    def _in_batches_of(self, size: int) -> Pipeline:
        """Put other numbers of rows together, and leave out functions of batches."""

        def change(node: logical.Node) -> logical.Node:
            match node:
                case logical.Batch():
                    return replace(node, microbatch_size=size)
                case logical.MapBatch(input=logical.Node() as below):
                    return below
                case _:
                    return node

        self._node = transform_up(self._node, change)
        return self._changed()
