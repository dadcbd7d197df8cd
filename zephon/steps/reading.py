"""Calls about reading, and about the batches that come out."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from zephon.errors import RepeatedCallError
from zephon.planner import logical
from zephon.planner.tree import top_first
from zephon.steps.description import Description, check_placement, whole, with_source


class ReadingSteps(Description):
    """Where rows come from, and how they leave."""

    def fetch_parallelism(self, parallelism: int, max_batch: int | None = None) -> Self:
        """Say how many reading tasks may run at once; ``max_batch`` changes nothing."""
        self._refuse_after("fetch_parallelism", logical.Take)
        changes = {} if max_batch is None else {"max_batch": whole(max_batch)}
        fetch = replace(self._fetch_node(), parallelism=whole(parallelism), **changes)
        return self._add(with_source(self._node, fetch))

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
        """Ask to warm the shard cache ahead of reading; moves no row, and has no effect yet."""
        check_placement("prefetch", placement)
        self._refuse_after("prefetch", logical.Take)
        if any(isinstance(node, logical.Prefetch) for node in top_first(self._node)):
            raise RepeatedCallError("prefetch: it was called before; call it once")
        node = logical.Prefetch(
            input=self._fetch_node(),
            buffer_size=whole(buffer_size),
            parallelism=4 if parallelism is None else whole(parallelism),
        )
        return self._add(with_source(self._node, node))

    def batch(
        self, microbatch_size: int, *, drop_last: bool = True, placement: str = "auto"
    ) -> Self:
        """Put ``microbatch_size`` rows into a ``SampleBatch``.

        Args:
            microbatch_size: rows of a batch.
            drop_last: drop a lane's last rows if they do not fill a batch; they are counted.
            placement: "auto" or "local".
        """
        check_placement("batch", placement)
        self._refuse_after("batch", logical.Batch)
        node = logical.Batch(
            input=self._node, microbatch_size=whole(microbatch_size), drop_last=drop_last
        )
        return self._add(node)

    def take(self, n: int) -> Self:
        """Stop after so many rows, counted over all ranks; the last call of a pipeline.

        On one rank these are the first rows in the order of delivery, and the last batch may be
        short. Ranks that share steps of ``global_batch_size`` rows stop after whole ones.

        Args:
            n: rows; with several ranks a multiple of ``global_batch_size``.

        Raises:
            PlanError: it is no number of rows. The run raises it where ranks do not share steps.
        """
        return self._add(logical.Take(input=self._node, rows=whole(n)))
