"""Calls that put documents together into rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from zephon.io.fields import Column
from zephon.ops import DomainGroups
from zephon.planner import checks, logical, resolve
from zephon.planner.logical.pack import Pack
from zephon.steps.description import Description, check_placement, whole


class PackingSteps(Description):
    """Documents become rows."""

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
        find the fields that are packed with them. Functions, column steps and operators that were
        called before run on these rows then, within this call: what they print, write or raise
        comes here first.

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
        check_placement("pack_flat", placement)
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
        keeps its whole row. Arguments that are not listed are those of ``pack_flat``. As there, the
        first rows of token datasets are looked at, and functions, column steps and operators that
        were called before run on these rows within this call.

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
        check_placement("pack_sequences", placement)
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
        below, probes = self._looked_at()
        found = resolve.packed_fields(
            below,
            tokens_field,
            aligned_fields,
            node.call,
            probes,
            emit_positions=emit_positions,
            loses_fields=node.loses_fields,
            measured=measured,
            payloads=payloads,
        )
        if found.tokens_field is not None and not below.token_fields():
            tokens = Column(path=found.tokens_field, kind="tokens")
            checks.check_reads((tokens,), self._node, node.call)
        return {
            "tokens_field": found.tokens_field,
            "aligned": found.aligned,
            "passed_over": found.passed_over,
            "without": found.without,
            "container": found.container,
            "domains": domains,
        }
