"""The calls that describe a pipeline: each builds one node of the plan and returns the pipeline."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

from zephon.errors import NotYetError, PlanError, RepeatedCallError, nearest
from zephon.exec import session
from zephon.ops import DomainGroups
from zephon.planner import checks, logical, resolve, step_order
from zephon.planner.logical.pack import Pack
from zephon.planner.tree import top_first, transform_up
from zephon.work import MixtureSpec, WorkSource
from zephon.work.cut_chunks import CutChunks

_PLACEMENTS = ("auto", "local")


class Steps(ABC):
    """A description that grows: a work source, and the steps that were called so far."""

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

    def fetch_parallelism(self, parallelism: int, max_batch: int | None = None) -> Self:
        """Say how many reading tasks may run at once; ``max_batch`` changes nothing."""
        changes = {} if max_batch is None else {"max_batch": whole(max_batch)}
        fetch = replace(self._fetch_node(), parallelism=whole(parallelism), **changes)
        return self._add(_with_source(self._node, fetch))

    def fetch(self, parallelism: int | None = None, max_batch: int | None = None) -> Self:
        """Do as ``fetch_parallelism``."""
        return self.fetch_parallelism(4 if parallelism is None else parallelism, max_batch)

    def prefetch(
        self,
        buffer_size: int = 1024,
        parallelism: int | None = None,
        *,
        placement: str = "local",
    ) -> Self:
        """Warm the shard cache ahead of reading; moves no row. Local shards need no warming."""
        _check_placement("prefetch", placement)
        if any(isinstance(node, logical.Prefetch) for node in top_first(self._node)):
            raise RepeatedCallError("prefetch: it was called before; call it once")
        node = logical.Prefetch(
            input=self._fetch_node(),
            buffer_size=whole(buffer_size),
            parallelism=4 if parallelism is None else whole(parallelism),
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
    ) -> Self:
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
        self._refuse_after("tokenize", logical.Tokenize, Pack, logical.Batch)
        node = logical.Tokenize(
            input=self._node,
            tokenizer=tokenizer,
            tokenizer_id=None if tokenizer is not None else _path_text(tokenizer_id),
            field=field,
            missing_field=missing_field,
            add_attention_mask=add_attention_mask,
            max_length=whole(max_length),
            padding=_padding(padding),
            truncation=truncation,
            return_tensors=return_tensors,
            split_long_samples=split_long_samples,
            split_special_tokens=split_special_tokens,
            use_fast=use_fast,
            preserve_upstream_payload=preserve_upstream_payload,
            special_tokens=special_tokens,
            bos_token_id=whole(bos_token_id),
            eos_token_id=whole(eos_token_id),
            parallelism=4 if parallelism is None else whole(parallelism),
        )
        checks.check_reads(node.reads(), self._node, "tokenize")
        return self._add(node)

    def shuffle(
        self,
        buffer_size: int | None = None,
        *,
        seed: int = 0,
        algorithm: str = "streaming",
        warmup_growth: float = 1.5,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Put documents, or packed rows, of each lane in random order; nothing is ever dropped.

        Args:
            buffer_size: documents or rows of a lane that are held, 8,192 if not given. ``explain``
                says how much memory that is.
            seed: with the lane, and the step's place in the pipeline, it decides the order.
            algorithm: "streaming" keeps a buffer from which each arrival pushes one out at random;
                "block" permutes one full buffer after the other; "block_warmup" the same, with
                small blocks first, so that the first batch comes soon.
            warmup_growth: how much larger each block is than the one before, above 1.
            placement: "auto" or "local".
            parallelism: accepted; shuffling is one thread's work.

        Raises:
            PlanError: an argument cannot be, or batches are there already.
        """
        _check_placement("shuffle", placement)
        self._refuse_after("shuffle", logical.Batch)
        node = logical.Shuffle(
            input=self._node,
            buffer_size=8192 if buffer_size is None else whole(buffer_size),
            seed=whole(seed),
            algorithm=algorithm,
            warmup_growth=_real(warmup_growth),
            parallelism=1 if parallelism is None else whole(parallelism),
        )
        return self._add(node)

    def ensure_mixture(
        self,
        *,
        max_buffer_size: int | None = 1000,
        drain_target_ratio: float = 0.8,
        obsolete_drain_rate: float = 0.1,
        weight_by: str | Callable[[Any], Any] = "auto",
        warn_tolerance: float | None = None,
        mixture: MixtureSpec | Mapping[str, float] | None = None,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Reorder each lane so that it keeps to the mixture as closely as the buffer allows.

        Args:
            max_buffer_size: documents or rows held before the best of them are let go although
                they are off target; None: never, and what cannot be placed on target when the data
                end is dropped and counted.
            drain_target_ratio: how full a full buffer is after that, between 0 and 1.
            obsolete_drain_rate: of a component that has left the target, one document is let go
                in so many others: 0.1 is one in ten, 0 none before the data end.
            weight_by: "auto" counts tokens, "samples" source rows; else the name of a field whose
                length counts, or a function of the row that gives a number.
            warn_tolerance: warn when a component's share is off by more.
            mixture: the target, by component; None: the work source's weights in force.
            placement: "auto" or "local".
            parallelism: accepted; it is one thread's work.

        Raises:
            PlanError: an argument cannot be, or tokens are to be counted and there are none.
        """
        _check_placement("ensure_mixture", placement)
        self._refuse_after("ensure_mixture", logical.Batch)
        node = logical.EnsureMixture(
            input=self._node,
            max_buffer_size=whole(max_buffer_size),
            drain_target_ratio=_real(drain_target_ratio),
            obsolete_drain_rate=_real(obsolete_drain_rate),
            **resolve.mixture_weights(self._node, weight_by),
            warn_tolerance=_real(warn_tolerance),
            mixture=_target(mixture, self._source),
            parallelism=1 if parallelism is None else whole(parallelism),
        )
        return self._add(node)

    def pack_flat(
        self,
        max_length: int,
        *,
        num_bins: int | None = None,
        max_sequences_per_bin: int | None = None,
        algorithm: str = "first_fit",
        tokens_field: str = "auto",
        aligned_fields: str | Sequence[str] | Mapping[str, str] = "auto",
        drop_oversized: bool | None = None,
        min_sequence_length: int = 1,
        shuffle_strategy: str | None = None,
        shuffle_seed: int | None = None,
        flush_strategy: str = "fifo",
        candidate_pool_size: int | None = None,
        max_candidate_age: int | None = None,
        homogeneity: str = "none",
        groups: DomainGroups | None = None,
        pad_token_id: int | None = None,
        emit_positions: bool = True,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Lay documents end to end into rows of exactly ``max_length`` tokens.

        Where the data hold tokens already, this call looks at the first 64 rows of each dataset, to
        find the fields that are packed with them.

        Args:
            max_length: tokens of a row; one more than the model's, since labels shift by one.
            num_bins: rows open at a time, under "first_fit" and "best_fit".
            max_sequences_per_bin: pieces of a row at most; None: any number.
            algorithm: "wrap" cuts one stream of all documents every ``max_length`` tokens: no
                padding, and nothing is lost but the unfinished row at the end of the data.
                "first_fit" and "best_fit" keep documents whole. "best_fit_wrap" cuts a document
                only where none fits. "best_fit_decreasing" looks ahead for the fullest rows.
            tokens_field: the field that holds the tokens; "auto" finds it.
            aligned_fields: fields of the source that are packed with it, with one value a token;
                "auto" finds them in the first rows. A dict gives the type of each, as in
                ``{"loss_mask": "float32"}`` ("int64", "float32", "float64" or "bool"), which the
                first rows need not show. ``explain`` lists them, and what is left out. A
                ``loss_mask`` or ``labels`` that only later rows have is an error of its row.
            drop_oversized: a document longer than a row is dropped and counted (the default), or
                an error if False, where documents are kept whole.
            min_sequence_length: a row with less room than this is done.
            shuffle_strategy: "random" or "length" (longest first) reorders windows of 1,024
                documents before they are packed.
            shuffle_seed: of "random".
            flush_strategy: the row that makes room for a new one: "fifo" the oldest, "fullest" the
                fullest.
            candidate_pool_size: documents looked at together, 1,024 if not given, under
                "best_fit_wrap" and "best_fit_decreasing".
            max_candidate_age: documents that may come before one that waits is used.
            homogeneity: "none"; "full", a row holds one component; "group", those of one group.
            groups: which components may share a row under "group".
            pad_token_id: fills short rows; may equal the end-of-sequence id. Needed wherever rows
                may be short, which is everywhere but under "wrap" without a cap.
            emit_positions: also give ``positions``, which restart at 0 with each document and row.
            placement: "auto" or "local".
            parallelism: accepted; packing is one thread's work.

        Raises:
            PlanError: an argument cannot be; there is no token field; or a field such as
                ``loss_mask`` would be lost, since not all datasets have it as lists of numbers.
            ShardError: the first rows cannot be read.
        """
        _check_placement("pack_flat", placement)
        self._refuse_after("pack_flat", Pack, logical.Batch)
        node = logical.PackFlat(
            input=self._node,
            max_length=whole(max_length),
            algorithm=algorithm,
            tokens_field=None,
            num_bins=whole(num_bins),
            max_sequences_per_bin=whole(max_sequences_per_bin),
            drop_oversized=drop_oversized,
            min_sequence_length=whole(min_sequence_length),
            shuffle_strategy=shuffle_strategy,
            shuffle_seed=whole(shuffle_seed),
            flush_strategy=flush_strategy,
            candidate_pool_size=whole(candidate_pool_size),
            max_candidate_age=whole(max_candidate_age),
            homogeneity=homogeneity,
            pad_token_id=whole(pad_token_id),
            emit_positions=emit_positions,
            parallelism=4 if parallelism is None else whole(parallelism),
        )
        common = self._packing(
            node, tokens_field, aligned_fields, groups, emit_positions=emit_positions
        )
        return self._add(replace(node, **common))

    def pack_sequences(
        self,
        max_length: int,
        *,
        num_bins: int | None = None,
        max_sequences_per_bin: int | None = None,
        algorithm: str = "first_fit",
        tokens_field: str = "auto",
        aligned_fields: str | Sequence[str] | Mapping[str, str] = "auto",
        length_fn: Callable[[Any], int] | None = None,
        drop_oversized: bool | None = None,
        min_sequence_length: int = 1,
        shuffle_strategy: str | None = None,
        shuffle_seed: int | None = None,
        flush_strategy: str = "fifo",
        pack_payloads: str | Callable[[list[Any]], Any] = "keep_list",
        candidate_pool_size: int | None = None,
        max_candidate_age: int | None = None,
        homogeneity: str = "none",
        groups: DomainGroups | None = None,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Put documents side by side into rows of at most ``max_length`` tokens.

        A row is ``{"packed_samples": pack_payloads(documents)}``; a document that was not cut
        keeps its whole row. Arguments that are not listed are those of ``pack_flat``, and the first
        rows of token datasets are looked at as they are there.

        Args:
            length_fn: gives a row's length instead of its tokens, a whole number; for algorithms
                that keep documents whole.
            pack_payloads: "keep_list"; "numpy_array" or "torch_tensor", which join the values of
                each field and need that type in all of them; or a function of the list.
            max_length, num_bins, max_sequences_per_bin, algorithm, tokens_field, aligned_fields,
                drop_oversized, min_sequence_length, shuffle_strategy, shuffle_seed,
                flush_strategy, candidate_pool_size, max_candidate_age, homogeneity, groups,
                placement, parallelism: as for ``pack_flat``.

        Raises:
            PlanError: an argument cannot be; there is no token field; a field such as
                ``loss_mask`` would be lost; or ``pack_payloads`` joins arrays of a type that the
                tokens are known not to be.
            ShardError: the first rows cannot be read.
        """
        _check_placement("pack_sequences", placement)
        self._refuse_after("pack_sequences", Pack, logical.Batch)
        node = logical.PackSequences(
            input=self._node,
            max_length=whole(max_length),
            algorithm=algorithm,
            tokens_field=None,
            num_bins=whole(num_bins),
            max_sequences_per_bin=whole(max_sequences_per_bin),
            length_fn=length_fn,
            drop_oversized=drop_oversized,
            min_sequence_length=whole(min_sequence_length),
            shuffle_strategy=shuffle_strategy,
            shuffle_seed=whole(shuffle_seed),
            flush_strategy=flush_strategy,
            pack_payloads=pack_payloads,
            candidate_pool_size=whole(candidate_pool_size),
            max_candidate_age=whole(max_candidate_age),
            homogeneity=homogeneity,
            parallelism=4 if parallelism is None else whole(parallelism),
        )
        common = self._packing(
            node,
            tokens_field,
            aligned_fields,
            groups,
            measured=length_fn is not None,
            payloads=pack_payloads,
        )
        return self._add(replace(node, **common))

    def batch(
        self, microbatch_size: int, *, drop_last: bool = True, placement: str = "auto"
    ) -> Self:
        """Put ``microbatch_size`` rows into a ``SampleBatch``.

        Args:
            microbatch_size: rows of a batch.
            drop_last: drop a lane's last rows if they do not fill a batch; they are counted.
            placement: "auto" or "local".
        """
        _check_placement("batch", placement)
        self._refuse_after("batch", logical.Batch)
        node = logical.Batch(
            input=self._node, microbatch_size=whole(microbatch_size), drop_last=drop_last
        )
        return self._add(node)

    @abstractmethod
    def _changed(self) -> Self:
        """Forget what was made of the description as it was."""

    def _add(self, node: logical.Node) -> Self:
        step_order.check_mixing(node, self._source)
        step_order.check_measures(node)
        self._node = node
        return self._changed()

    def _fetch_node(self) -> logical.Fetch:
        return next(node for node in top_first(self._node) if isinstance(node, logical.Fetch))

    def _packing(
        self,
        node: Pack,
        tokens_field: str,
        aligned_fields: str | Sequence[str] | Mapping[str, str],
        groups: DomainGroups | None,
        *,
        emit_positions: bool = False,
        measured: bool = False,
        payloads: object = None,
    ) -> dict[str, Any]:
        """Resolve what both packing calls take: fields, and sets of components that share rows.

        ``node`` has everything else, and was checked: this may look at files.
        """
        names = [c.name for c in self._source.components]
        domains = resolve.domains_of(node.call, node.homogeneity, groups, names)
        found = resolve.packed_fields(
            self._node,
            tokens_field,
            aligned_fields,
            node.call,
            {c.dataset.name: c.dataset for c in self._source.components},
            emit_positions=emit_positions,
            measured=measured,
            payloads=payloads,
        )
        return {
            "tokens_field": found.tokens_field,
            "aligned": found.aligned,
            "passed_over": found.passed_over,
            "without": found.without,
            "container": found.container,
            "domains": domains,
        }

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


def _target(
    mixture: MixtureSpec | Mapping[str, float] | None, source: WorkSource
) -> tuple[tuple[str, float], ...] | None:
    """Give a mixture's normalized weights, of components that the source has."""
    if mixture is None:
        return None
    spec = mixture if isinstance(mixture, MixtureSpec) else MixtureSpec(mixture)
    known = {c.name for c in source.components}
    for name in spec.weights:
        if name not in known:
            raise PlanError(
                f"ensure_mixture: mixture has no component {name!r}; {nearest(name, known)}"
            )
    return tuple(sorted(spec.normalized.items()))


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


def whole(value: Any) -> Any:
    """Turn an integer of NumPy's into Python's; leave everything else to the checks."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _real(value: Any) -> Any:
    """Turn a number of NumPy's into Python's; leave everything else to the checks."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value


def _path_text(path: Any) -> str | None:
    if path is None or isinstance(path, str | os.PathLike):
        return None if path is None else os.fspath(path)
    raise PlanError(
        f"tokenize: tokenizer_id must be a path, got {type(path).__name__}; pass a tokenizer "
        "object as tokenizer="
    )
