"""The public surface: a description of steps that compiles and runs when it is iterated.

The file is long because every documented call that runs something stands here.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zephon.errors import ExecutionError
from zephon.exec.batch_functions import mapped
from zephon.exec.tables import table_of
from zephon.io.options import StoreOptions
from zephon.options import RuntimeOptions
from zephon.planner import logical
from zephon.planner.logical.node import at_least
from zephon.planner.tree import source_first, top_first, transform_up
from zephon.steps import Steps, whole
from zephon.types import SampleBatch, StreamItem, record_of
from zephon.work import WorkSource

if TYPE_CHECKING:
    from zephon.exec.engine import Engine
    from zephon.planner.compiler import Plan
    from zephon.validation import ValidationReport


class Pipeline(Steps):
    """A recipe from a work source to training batches; calls add steps in place and return it.

    Iterating yields ``SampleBatch`` after ``batch()`` and ``SampleRecord`` without it, from the
    beginning each time unless ``restore()`` was called.

    It can be copied, and sent to other processes by pickle, or by cloudpickle where functions have
    no name that could be imported there. Rows in memory and a restored state that waits go along;
    an iterator and what runs stay behind. A copy has the same fingerprint wherever it is.
    """

    def __init__(self, work_source: WorkSource) -> None:
        super().__init__(work_source)
        self._options = RuntimeOptions()
        self._plan: Plan | None = None
        self._engine: Engine | None = None
        self._running: Engine | None = None
        self._ready: Engine | None = None  # which the next run begins with
        self._restored: dict[str, Any] | None = None
        self._allowed: frozenset[str] = frozenset()
        self._changes = 0  # calls and restores, of which an iterator must have seen all

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
        self._runs().run_auto_validation(self._node, self._options.auto_validation)
        engine, self._ready = self._next_engine(), None
        if self._running is None:
            self._engine = engine
        return self._items(engine, self._changes)

    def _items(self, engine: Engine, changes: int) -> Generator[StreamItem, None, None]:
        if changes != self._changes:
            raise ExecutionError(
                "the pipeline was changed or restored after this iterator was made; iterate it anew"
            )
        if self._running is not None:
            raise ExecutionError(
                "Pipeline is already being iterated; close the first iterator, or build a second "
                "pipeline"
            )
        rows = engine.items()
        batched = self._has(logical.Batch)
        calls = [n for n in source_first(self._node) if isinstance(n, logical.MapBatch)]
        self._running = self._engine = engine
        self._restored = self._ready = None
        try:
            for batch in rows:
                if not batched:
                    yield record_of(batch, 0)
                    continue
                made = mapped(SampleBatch.from_rows(batch), calls)
                if made is not None:
                    yield made
        finally:
            rows.close()
            if self._running is engine:
                self._running = None

    def head(self, n: int = 8) -> pa.Table:
        """Run now, from the beginning, and give the first rows as an Arrow table.

        The pipeline, and an iteration of it that goes on, stay as they are.

        Args:
            n: rows, as ``take`` counts them.

        Raises:
            DataError: the values of a field have no one type.
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

    # State

    def checkpoint(self, *, as_bytes: bool = False) -> dict[str, Any] | bytes:
        """Return the state right after the last item that was handed out.

        Items made ahead are not part of it. Works before the first item, inside the loop, and
        after the end; after ``restore()`` and before iterating it is the restored state. That may
        tell of other ranks, too; among parts that are restored together it tells of this one alone.

        Args:
            as_bytes: compressed bytes instead of a dict of JSON values.
        """
        state = self._state()
        return self._runs().to_bytes(state) if as_bytes else state

    def _state(self) -> dict[str, Any]:
        if self._restored is not None:
            plan, allowed = self._compiled(), self._allowed
            waits = self._runs().waiting_state(plan, self._options, self._restored, allowed)
            return copy.deepcopy(waits)
        engine = self._engine if self._engine is not None else self._launch(None)
        return self._runs().state_of(engine)

    def state_dict(self) -> dict[str, Any]:
        """Return ``checkpoint()``; the name by which torch's stateful loaders ask for it."""
        return self._state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do what ``restore(state)`` does, for torch's stateful loaders."""
        self.restore(state)

    def restore(
        self,
        state: Mapping[str, Any] | bytes | Sequence[Mapping[str, Any] | bytes],
        allow: Iterable[str] = (),
    ) -> Pipeline:
        """Go on from a checkpoint at the next iteration, with exactly the rows that follow it.

        Args:
            state: what ``checkpoint()`` returned, in either form; or a list of what it returned on
                several ranks, in any order. With ``global_batch_size`` any number of ranks goes on
                from that, each given the same list.
            allow: words of the changes to let through. ``"partial_step"``: of a checkpoint within a
                step, another number of ranks delivers the step again from its first row.
                ``"functions"``: filters, maps and other functions are others now: what was held
                is read and made again, and what is gone, or changed though delivered in part, is
                dropped and counted as ``edit``.

        Raises:
            PlanError: a word of ``allow`` names no change.
            TypeError: ``state`` is neither a dict nor bytes.
            CheckpointError: it is no checkpoint, is damaged, or comes from a newer version; or the
                parts are not of one checkpoint. When it belongs to another recipe, lacks lanes of
                this rank, or stands within a step of other ranks, the iteration raises it.
        """
        runs = self._runs()
        words = runs.checked_words(allow)
        if isinstance(state, list | tuple):
            self._restored = runs.from_parts([_plain(part) for part in state])
        else:
            self._restored = runs.from_any(_plain(state))
        self._allowed = words
        self._changes += 1
        self._close()
        return self

    def accounting(self) -> dict[str, Any]:
        """Count, per component, rows drawn and tokens made, delivered, held and dropped.

        Each component tells the same under ``"lanes"`` of every lane that this rank runs. Ranks may
        share lanes, and then say the same of them: whoever adds up ranks takes each lane once.

        With ``global_batch_size`` whole steps are counted: what this rank has handed out of the
        step in which it stands counts with the last of its rows.
        """
        engine = self._engine
        if engine is None:
            engine = self._ready = self._next_engine()
        return self._runs().account(engine)

    # Inside

    def _fresh(self) -> Pipeline:
        """Return a copy that runs from the beginning."""
        other = copy.copy(self)
        other._restored = None
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
        return {**self.__dict__, "_options": own, "_engine": None, "_running": None, "_ready": None}

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

    def _changed(self) -> Pipeline:
        self._plan = None
        self._changes += 1
        self._close()
        self._engine = None
        return self

    def _close(self) -> None:
        if self._engine is not None:
            self._engine.stop()
        self._engine = self._running = self._ready = None

    def _compiled(self) -> Plan:
        if self._plan is None:
            runs = self._runs()
            chunks = self._options.flush_every_k_chunks
            size = self._source.chunk_size_hint() or runs.CHUNK_SIZE
            rows = runs.BARRIER_ROWS if chunks is None else chunks * size
            self._plan = runs.compile_plan(self._node, barrier_rows=rows)
        return self._plan

    def _next_engine(self) -> Engine:
        """Give the engine of the next run: to make it may take reading all that lanes hold."""
        return self._launch(self._restored) if self._ready is None else self._ready

    def _launch(self, restored: dict[str, Any] | None) -> Engine:
        plan, runs = self._compiled(), self._runs()
        topology = runs.topology_of(plan, self._options, restored)
        return runs.open_engine(
            plan, self._source, self._options, topology, restored, self._allowed, self._told
        )


def _plain(state: object) -> object:
    return dict(state) if isinstance(state, Mapping) else state
