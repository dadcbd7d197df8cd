"""A work source as the planner sees it: what is read, and how much there is of it."""

from __future__ import annotations

from zephon.planner.logical import Fetch, ReadComponent
from zephon.work.source import WorkSource


def fetch_node(source: WorkSource) -> Fetch:
    """Describe a work source to the planner: its components, or the datasets of a custom one."""
    custom = source.decided_by is not None
    read = {c.dataset_id if custom else number: c for number, c in enumerate(source.components)}
    return Fetch(
        decided_by=source.decided_by,
        components=tuple(
            ReadComponent(
                name=c.dataset.name if custom else c.name,
                dataset=c.dataset.name,
                share=None if custom else c.weight,
                shards=c.dataset.shard_count(),
                rows=c.dataset.total(),
                bytes=int(c.dataset.raw_bytes().sum()),
                fields=c.dataset.fields(),
                fields_complete=c.dataset.fields_complete,
                all_named=c.dataset.format.names_all_fields,
                passed_over=tuple(c.dataset.passed_over),
                told_by=c.dataset.shards.told_by(),
            )
            for c in read.values()
            if c.read
        ),
    )
