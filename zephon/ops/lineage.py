"""Who the records are that an operator makes: parts of one, several in one, or none any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from zephon.batches.identity import CONTRIBUTORS, PLACEMENT, TOMBSTONE
from zephon.errors import LineageError
from zephon.types import ContributorRef, SampleCursor, SampleMeta, SampleRecord


def spawn_child(
    parent_meta: SampleMeta,
    child_idx: int,
    *,
    is_last_child: bool = False,
    tags: Mapping[str, Any] | None = None,
) -> SampleMeta:
    """Give the meta of a record that is made out of another, one of several.

    Exactly the last of a parent's children must be marked: with it the parent is used up, and it
    alone counts as a sample of the parent's components.

    Args:
        parent_meta: of the record that it is made of.
        child_idx: which child, from 0; each once.
        is_last_child: no further child follows.
        tags: to be added to those of the parent.

    Raises:
        LineageError: the number is no integer of at least 0; or the child of a tombstone, whose
            sample is used up already, is marked as the last.
    """
    if isinstance(child_idx, bool) or not isinstance(child_idx, int) or child_idx < 0:
        raise LineageError(
            f"spawn_child: child_idx must be an integer of at least 0, got {child_idx!r}; number "
            "the children of a record 0, 1, 2, ..."
        )
    if is_last_child and parent_meta.tombstone:
        raise LineageError(
            f"spawn_child: a tombstone has no last child, got is_last_child=True for that of "
            f"sample {parent_meta.sample_id}; use the tombstone or the children, not both"
        )
    child = parent_meta.child(child_idx)
    if parent_meta.contributors is None:
        refs = (ContributorRef(child.cursor, is_last_child),)
    else:
        refs = tuple(
            replace(ref, is_last_child=ref.is_last_child and is_last_child)
            for ref in parent_meta.contributors
        )
    kept = {key: value for key, value in child.tags.items() if key not in (TOMBSTONE, PLACEMENT)}
    counts = child.component_sample_counts
    return replace(
        child,
        component_sample_counts=counts if is_last_child else dict.fromkeys(counts, 0),
        component_token_counts=None,
        tags={**kept, **(tags or {}), CONTRIBUTORS: refs},
    )


def pack_meta(
    primary_cursor: SampleCursor,
    contributors: Iterable[ContributorRef],
    *,
    lane_id: int,
    component_sample_counts: Mapping[int, int],
    component_token_counts: Mapping[int, int] | None = None,
    tags: Mapping[str, Any] | None = None,
) -> SampleMeta:
    """Give the meta of a record that is made of several.

    Args:
        primary_cursor: the record whose place and name it takes, the first as a rule.
        contributors: all records that are in it.
        lane_id: the lane of all of them.
        component_sample_counts: samples that it uses up, by component.
        component_token_counts: tokens in it, by component; None: it has none.
        tags: marks of the operator.
    """
    refs, tokens = tuple(contributors), component_token_counts
    return SampleMeta(
        sample_id=primary_cursor.sample_id,
        lane_id=lane_id,
        chunk_id=primary_cursor.chunk_id,
        chunk_offset=primary_cursor.chunk_offset,
        component_sample_counts=dict(component_sample_counts),
        component_token_counts=None if tokens is None else dict(tokens),
        lineage=primary_cursor.lineage,
        tags={**(tags or {}), **({CONTRIBUTORS: refs} if refs else {})},
    )


def tombstone_meta(ref: ContributorRef, lane_id: int) -> SampleMeta:
    """Give the meta of a record that stands for a dropped one.

    Raises:
        LineageError: more of the dropped record follows, so that it is not used up.
    """
    if not ref.is_last_child:
        raise LineageError(
            "tombstone_meta: the contributor must be the last of its sample, got "
            f"is_last_child=False for sample {ref.cursor.sample_id}; a part that is no last one "
            "needs no tombstone"
        )
    cursor = ref.cursor
    return SampleMeta(
        sample_id=cursor.sample_id,
        lane_id=lane_id,
        chunk_id=cursor.chunk_id,
        chunk_offset=cursor.chunk_offset,
        component_sample_counts={},
        lineage=cursor.lineage,
        tags={TOMBSTONE: True, CONTRIBUTORS: (ref,)},
    )


def tombstones_for_record(record: SampleRecord) -> list[SampleRecord]:
    """Give what an operator returns in place of a record that it drops.

    Returns:
        A record without payload for each source record that is used up by this one.
    """
    return [
        SampleRecord(tombstone_meta(ref, record.meta.lane_id), None)
        for ref in record.meta.contribution_refs()
        if ref.is_last_child
    ]
