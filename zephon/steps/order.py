"""Calls that change the order of documents or rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from zephon.errors import PlanError, nearest
from zephon.planner import logical, resolve
from zephon.steps.description import Description, check_placement, real, whole
from zephon.work import MixtureSpec, WorkSource


class OrderSteps(Description):
    """Rows leave in another order than they come."""

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
        check_placement("shuffle", placement)
        self._refuse_after("shuffle", logical.Batch)
        node = logical.Shuffle(
            input=self._node,
            buffer_size=8192 if buffer_size is None else whole(buffer_size),
            seed=whole(seed),
            algorithm=algorithm,
            warmup_growth=real(warmup_growth),
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
        check_placement("ensure_mixture", placement)
        self._refuse_after("ensure_mixture", logical.Batch)
        node = logical.EnsureMixture(
            input=self._node,
            max_buffer_size=whole(max_buffer_size),
            drain_target_ratio=real(drain_target_ratio),
            obsolete_drain_rate=real(obsolete_drain_rate),
            **resolve.mixture_weights(self._looked_at()[0], weight_by),
            warn_tolerance=real(warn_tolerance),
            mixture=_target(mixture, self._source),
            parallelism=1 if parallelism is None else whole(parallelism),
        )
        return self._add(node)


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
