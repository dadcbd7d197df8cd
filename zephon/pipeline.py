"""The public surface: each call builds one node of the plan; iterating compiles and runs it."""

from __future__ import annotations

import copy
import os
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

from zephon.errors import ExecutionError, NotYetError, PlanError, RepeatedCallError, nearest
from zephon.exec import described, priming, session
from zephon.exec.accounting import account
from zephon.exec.checkpoint import from_any, to_bytes
from zephon.exec.engine import Engine
from zephon.exec.fingerprint import digest
from zephon.exec.launch import step_of, workers_of
from zephon.exec.reading import plan_reading
from zephon.io.options import StoreOptions
from zephon.options import RuntimeOptions
from zephon.planner import checks, logical
from zephon.planner.compiler import Plan, compile_plan
from zephon.planner.explain import RunFacts, explain_text
from zephon.planner.tree import top_first, transform_up
from zephon.types import SampleBatch, StreamItem, record_of
from zephon.work import WorkSource
from zephon.work.cut_chunks import CutChunks

_PLACEMENTS = ("auto", "local")
_ALLOWED_EDITS = (
    "weights", "datasets", "data", "functions", "global_batch_size", "partial_step",
)  # fmt: skip


class Pipeline:
    """A recipe from a work source to training batches; calls add steps in place and return it.

    Iterating yields ``SampleBatch`` after ``batch()`` and ``SampleRecord`` without it, from the
    beginning each time unless ``restore()`` was called.
    """

    def __init__(self, work_source: WorkSource) -> None:
        if not isinstance(work_source, WorkSource):
            raise PlanError(
                f"Pipeline: expected a work source, got {type(work_source).__name__}; make a "
                "StaticMixtureWorkSource of datasets and a mixture, or derive one from WorkSource"
            )
        if work_source.lane_id is not None:
            raise PlanError(
                f"Pipeline: expected a work source of no lane, got the copy of a "
                f"{type(work_source).__name__} for lane {work_source.lane_id}; pass the source "
                "that it was made of"
            )
        if isinstance(work_source, CutChunks) and (
            type(work_source).next_chunk is not CutChunks.next_chunk
        ):
            raise PlanError(
                f"Pipeline: {type(work_source).__name__} overrides next_chunk(), and a mixture is "
                "drawn by position, so it would not be asked; derive from WorkSource instead"
            )
        self._source = work_source
        self._node: logical.Node = session.fetch_node(work_source)
        self._options = RuntimeOptions()
        self._plan: Plan | None = None
        self._engine: Engine | None = None
        self._running: Engine | None = None
        self._restored: dict[str, Any] | None = None

    # Steps

    def fetch_parallelism(self, parallelism: int, max_batch: int | None = None) -> Pipeline:
        """Say how many reading tasks may run at once; ``max_batch`` changes nothing."""
        changes = {} if max_batch is None else {"max_batch": max_batch}
        fetch = replace(self._fetch_node(), parallelism=parallelism, **changes)
        return self._add(_with_source(self._node, fetch))

    def fetch(self, parallelism: int | None = None, max_batch: int | None = None) -> Pipeline:
        """Do as ``fetch_parallelism``."""
        return self.fetch_parallelism(4 if parallelism is None else parallelism, max_batch)

    def prefetch(
        self,
        buffer_size: int = 1024,
        parallelism: int | None = None,
        *,
        placement: str = "local",
    ) -> Pipeline:
        """Warm the shard cache ahead of reading; moves no row. Local shards need no warming."""
        _check_placement("prefetch", placement)
        if any(isinstance(node, logical.Prefetch) for node in top_first(self._node)):
            raise RepeatedCallError("prefetch: it was called before; call it once")
        node = logical.Prefetch(
            input=self._fetch_node(),
            buffer_size=buffer_size,
            parallelism=4 if parallelism is None else parallelism,
        )
        return self._add(_with_source(self._node, node))

    def tokenize(
        self,
        tokenizer: object | None = None,
        tokenizer_id: str | None = None,
        *,
        field: str,
        missing_field: str = "error",
        add_attention_mask: bool = True,
        max_length: int | None = None,
        padding: bool | str = False,
        truncation: bool = False,
        return_tensors: str | None = None,
        split_long_samples: bool = False,
        split_special_tokens: bool = False,
        use_fast: bool = True,
        preserve_upstream_payload: bool = False,
        special_tokens: str = "bos_eos",
        bos_token_id: int | None = None,
        eos_token_id: int | None = None,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Pipeline:
        """Encode a text field into ``input_ids``.

        Args:
            tokenizer: a tokenizer object of ``tokenizers`` or ``transformers``.
            tokenizer_id: a tokenizer.json, or the directory that holds one.
            field: the text column; a dotted path reaches into nested rows.
            missing_field: "error", or "empty" to read a row without the field as "".
            add_attention_mask: also give ``attention_mask``.
            max_length: bound for truncation, splitting and padding; cuts nothing by itself.
            padding: True or "longest" (of the batch, in ``to_training``), "max_length", or False.
            truncation: cut what is longer than ``max_length``.
            return_tensors: what records hold: None for lists, "np", "pt".
            split_long_samples: make several rows of what is longer than ``max_length``.
            split_special_tokens: read special tokens in the text as plain characters.
            use_fast: accepted; there are only fast tokenizers here.
            preserve_upstream_payload: keep the row's other fields.
            special_tokens: "bos_eos", "bos", "eos", "none", or "tokenizer_default".
            bos_token_id: instead of the tokenizer's own.
            eos_token_id: instead of the tokenizer's own.
            placement: "auto" or "local".
            parallelism: tasks that may run at once.

        Raises:
            PlanError: an argument cannot be, or a dataset is known not to have the field.
        """
        _check_placement("tokenize", placement)
        self._refuse_after("tokenize", logical.Tokenize, logical.PackFlat, logical.Batch)
        node = logical.Tokenize(
            input=self._node,
            tokenizer=tokenizer,
            tokenizer_id=None if tokenizer is not None else _path_text(tokenizer_id),
            field=field,
            missing_field=missing_field,
            add_attention_mask=add_attention_mask,
            max_length=_whole(max_length),
            padding=_padding(padding),
            truncation=truncation,
            return_tensors=return_tensors,
            split_long_samples=split_long_samples,
            split_special_tokens=split_special_tokens,
            use_fast=use_fast,
            preserve_upstream_payload=preserve_upstream_payload,
            special_tokens=special_tokens,
            bos_token_id=_whole(bos_token_id),
            eos_token_id=_whole(eos_token_id),
            parallelism=4 if parallelism is None else parallelism,
        )
        checks.check_reads(node.reads(), self._node, "tokenize")
        return self._add(node)

    def pack_flat(
        self,
        max_length: int,
        *,
        num_bins: int | None = None,
        max_sequences_per_bin: int | None = None,
        algorithm: str = "first_fit",
        tokens_field: str = "auto",
        drop_oversized: bool | None = None,
        min_sequence_length: int = 1,
        shuffle_strategy: str | None = None,
        shuffle_seed: int | None = None,
        flush_strategy: str = "fifo",
        candidate_pool_size: int | None = None,
        max_candidate_age: int | None = None,
        homogeneity: str = "none",
        groups: object | None = None,
        pad_token_id: int | None = None,
        emit_positions: bool = True,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Pipeline:
        """Lay documents end to end into rows of exactly ``max_length`` tokens.

        ``algorithm="wrap"`` makes one stream of all documents and cuts it every ``max_length``
        tokens: no padding, nothing lost but the unfinished row at the end of the data.

        Args:
            max_length: tokens of a row; one more than the model's, since labels shift by one.
            algorithm: "wrap".
            tokens_field: the field that holds the tokens; "auto" finds it. Fields of the source
                named ``loss_mask``, ``attention_mask``, ``labels``, ``token_type_ids`` or
                ``segment_ids``, one integer a token, are packed with it.
            pad_token_id: accepted; wrap never pads.
            emit_positions: also give ``positions``, which restart at 0 with each document and row.
            placement: "auto" or "local".
            parallelism: accepted; packing is one thread's work.
            num_bins, max_sequences_per_bin, drop_oversized, min_sequence_length, shuffle_strategy,
                shuffle_seed, flush_strategy, candidate_pool_size, max_candidate_age, homogeneity,
                groups: have no meaning under "wrap"; those that would change rows are refused.

        Raises:
            PlanError: an argument cannot be, or there is no token field.
        """
        _check_placement("pack_flat", placement)
        self._refuse_after("pack_flat", logical.PackFlat, logical.Batch)
        tokens_field = checks.find_token_field(self._node, tokens_field)
        node = logical.PackFlat(
            input=self._node,
            max_length=_whole(max_length),
            algorithm=algorithm,
            tokens_field=tokens_field,
            aligned=checks.find_aligned(self._node, tokens_field),
            num_bins=num_bins,
            max_sequences_per_bin=max_sequences_per_bin,
            drop_oversized=drop_oversized,
            min_sequence_length=min_sequence_length,
            shuffle_strategy=shuffle_strategy,
            shuffle_seed=shuffle_seed,
            flush_strategy=flush_strategy,
            candidate_pool_size=candidate_pool_size,
            max_candidate_age=max_candidate_age,
            homogeneity=homogeneity,
            groups=groups,
            pad_token_id=_whole(pad_token_id),
            emit_positions=emit_positions,
            parallelism=4 if parallelism is None else parallelism,
        )
        return self._add(node)

    def batch(
        self, microbatch_size: int, *, drop_last: bool = True, placement: str = "auto"
    ) -> Pipeline:
        """Put ``microbatch_size`` rows into a ``SampleBatch``.

        Args:
            microbatch_size: rows of a batch.
            drop_last: drop a lane's last rows if they do not fill a batch; they are counted.
            placement: "auto" or "local".
        """
        _check_placement("batch", placement)
        self._refuse_after("batch", logical.Batch)
        node = logical.Batch(
            input=self._node, microbatch_size=_whole(microbatch_size), drop_last=drop_last
        )
        return self._add(node)

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
        self._options.update(**{name: _whole(value) for name, value in settings.items()})
        return self._changed()

    def explain(self) -> str:
        """Return the plan as text: logical, optimized, physical, data, lanes, notes, stages."""
        plan = self._compiled()
        topology = session.topology_of(plan, self._options, self._restored)
        workers = workers_of(plan, self._options)
        reading = plan_reading(self._source, self._options, topology)
        return explain_text(
            plan,
            RunFacts(
                runner=workers.runner,
                workers=workers.count,
                queue=workers.queue,
                memory_budget=reading.budget,
                reading=reading.lines,
                mixture=(
                    *self._source.describe(topology.lanes, step_of(plan, topology)),
                    *priming.cost_lines(self._source, self._restored),
                ),
                lanes=described.lane_lines(topology, plan),
                notes=described.notes(plan, self._options, topology, reading.budget),
            ),
        )

    def fingerprint(self) -> str:
        """Return the SHA-256 of everything that decides what is delivered.

        Raises:
            TokenizerError: the tokenizer, which is a part of it, cannot be loaded.
        """
        return digest(self._launch(None).identity.recipe)

    # Running

    def __iter__(self) -> Generator[Any, None, None]:
        """Compile, check, and return an iterator; work begins with its first item."""
        engine = self._launch(self._restored)
        if self._running is None:
            self._engine = engine
        return self._items(engine)

    def _items(self, engine: Engine) -> Generator[StreamItem, None, None]:
        if self._running is not None:
            raise ExecutionError(
                "Pipeline is already being iterated; close the first iterator, or build a second "
                "pipeline"
            )
        rows = engine.items()
        batched = isinstance(self._node, logical.Batch)
        self._running = self._engine = engine
        self._restored = None
        try:
            for batch in rows:
                yield SampleBatch.from_rows(batch) if batched else record_of(batch, 0)
        finally:
            rows.close()
            if self._running is engine:
                self._running = None

    # State

    def checkpoint(self, *, as_bytes: bool = False) -> dict[str, Any] | bytes:
        """Return the state right after the last item that was handed out.

        Items made ahead are not part of it. Works before the first item, inside the loop, and
        after the end; after ``restore()`` and before iterating it is the restored state.

        Args:
            as_bytes: compressed bytes instead of a dict of JSON values.
        """
        if self._restored is not None:
            state = copy.deepcopy(self._restored)
        else:
            engine = self._engine if self._engine is not None else self._launch(None)
            state = session.state_of(engine)
        return to_bytes(state) if as_bytes else state

    def restore(self, state: Mapping[str, Any] | bytes, allow: Iterable[str] = ()) -> Pipeline:
        """Go on from a checkpoint at the next iteration, with exactly the rows that follow it.

        Args:
            state: what ``checkpoint()`` returned, in either form.
            allow: changes to let through; none is there yet.

        Raises:
            TypeError: ``state`` is neither a dict nor bytes.
            CheckpointError: it is no checkpoint, is damaged, or comes from a newer version. When
                it belongs to another recipe, the iteration raises it and names what differs.
        """
        if isinstance(allow, str):
            allow = (allow,)
        for word in allow:
            if word not in _ALLOWED_EDITS:
                closest = nearest(str(word), _ALLOWED_EDITS)
                raise PlanError(f"restore: allow={word!r} names no change; {closest}")
            raise NotYetError(f"restore: allow={word!r} is not there yet; leave it out")
        self._restored = from_any(dict(state) if isinstance(state, Mapping) else state)
        self._close()
        return self

    def accounting(self) -> dict[str, Any]:
        """Count, per component, rows drawn and tokens made, delivered, held and dropped."""
        engine = self._engine
        if engine is None or self._restored is not None:
            engine = self._launch(self._restored)
        return account(engine, [c.name for c in self._source.components])

    # Inside

    def __getstate__(self) -> dict[str, Any]:
        """A copy, or a pipeline in another process, has the recipe and runs anew."""
        return {**self.__dict__, "_engine": None, "_running": None}

    def _add(self, node: logical.Node) -> Pipeline:
        self._node = node
        return self._changed()

    def _changed(self) -> Pipeline:
        self._plan = None
        self._close()
        self._engine = None
        return self

    def _close(self) -> None:
        if self._engine is not None:
            self._engine.stop()
        self._engine = self._running = None

    def _compiled(self) -> Plan:
        if self._plan is None:
            self._plan = compile_plan(self._node)
        return self._plan

    def _launch(self, restored: dict[str, Any] | None) -> Engine:
        plan = self._compiled()
        topology = session.topology_of(plan, self._options, restored)
        return session.open_engine(plan, self._source, self._options, topology, restored)

    def _fetch_node(self) -> logical.Fetch:
        return next(node for node in top_first(self._node) if isinstance(node, logical.Fetch))

    def _refuse_after(self, call: str, *kinds: type[logical.Node]) -> None:
        for node in top_first(self._node):
            if isinstance(node, kinds):
                raise PlanError(
                    f"{call}: it cannot come after {node.call}; call {call} earlier"
                    if node.call != call
                    else f"{call}: it was called before; call it once"
                )


def _with_source(plan: logical.Node, source: logical.Node) -> logical.Node:
    """Put ``source`` in the place of the chain's Fetch."""
    return transform_up(plan, lambda node: source if isinstance(node, logical.Fetch) else node)


def _check_placement(call: str, placement: str) -> None:
    if placement == "remote":
        raise NotYetError(f"{call}: placement='remote' is not there yet; use 'auto'")
    if placement not in _PLACEMENTS:
        closest = nearest(str(placement), _PLACEMENTS)
        raise PlanError(f"{call}: placement={placement!r} is unknown; {closest}")


def _padding(padding: bool | str) -> str:
    if isinstance(padding, str):
        return "none" if padding == "do_not_pad" else padding
    if isinstance(padding, bool):
        return "longest" if padding else "none"
    return repr(padding)


def _whole(value: Any) -> Any:
    """Turn an integer of NumPy's into Python's; leave everything else to the checks."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _path_text(path: Any) -> str | None:
    if path is None or isinstance(path, str | os.PathLike):
        return None if path is None else os.fspath(path)
    raise PlanError(
        f"tokenize: tokenizer_id must be a path, got {type(path).__name__}; pass a tokenizer "
        "object as tokenizer="
    )
