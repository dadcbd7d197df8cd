"""Whether the records that a call returned say truly which records of the call they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from zephon.types import LaneId, LineagePath, SampleCursor, SampleId, SampleMeta, SampleRecord
from zephon.validation.report import Issue, issue

Source: TypeAlias = tuple[LaneId, tuple[int, int], SampleId]
"""The drawn row behind a cursor: its lane, its place, its sample."""


def check_identities(
    name: str, given: Sequence[SampleRecord], returned: Sequence[SampleRecord]
) -> Iterator[Issue]:
    """Compare what a call returned with what it was given; yields one issue of a code at most."""
    known: dict[Source, list[LineagePath]] = {}
    for record in given:
        for cursor in (record.meta.cursor, *record.meta.contribution_cursors()):
            known.setdefault(_source(record.meta, cursor), []).append(cursor.lineage)
    made_up = [(r.meta, c) for r in returned for c in _named(r) if _source(r.meta, c) not in known]
    if made_up:
        meta, cursor = made_up[0]
        yield issue(
            "OP_FABRICATES_SAMPLE_ID",
            name,
            f"a returned record must belong to one that process_many was given, got one of sample "
            f"{cursor.sample_id} at {cursor.base_offset} in lane {meta.lane_id}; keep the meta, or "
            "make it with spawn_child or pack_meta",
        )
        return
    for record in returned:
        for cursor in _named(record):
            if not any(_is_below(cursor.lineage, p) for p in known[_source(record.meta, cursor)]):
                yield issue(
                    "OP_LINEAGE_NOT_VIA_CHILD",
                    name,
                    f"a lineage must be that of a given record, or a child's of it, got "
                    f"{cursor.lineage} for sample {cursor.sample_id}; make it with spawn_child",
                )
                return
    double = _double(known, returned)
    if double is not None:
        yield issue(
            "OP_FANOUT_DUPLICATE_LINEAGE",
            name,
            f"records made of one must have lineages of their own, got {double.lineage} twice for "
            f"sample {double.sample_id}; number them with spawn_child",
        )
        return
    yield from _check_ends(name, known, given, returned)


def order_issue(
    name: str, given: Sequence[SampleRecord], returned: Sequence[SampleRecord]
) -> Issue | None:
    """Say if returned records do not stand in the order of those whose place they take.

    Args:
        name: of the operator, which promises it.
        given: to a call. returned: what it gave, made of these.
    """
    places: dict[Source, int] = {}
    for place, record in enumerate(given):
        for cursor in (record.meta.cursor, *record.meta.contribution_cursors()):
            places.setdefault(_source(record.meta, cursor), place)
    latest = -1
    for record in returned:
        if record.meta.tombstone or record.meta.is_sentinel:
            continue
        place = places.get(_source(record.meta, record.meta.cursor), latest)
        if place < latest:
            return issue(
                "OP_CALIBRATION_REPLAY_MISMATCH",
                name,
                "with preserves_cursor_order=True records must leave in the order in which they "
                f"came, as they do one at a time, got sample {record.meta.sample_id} after a later "
                "one; pass preserves_cursor_order=False",
            )
        latest = place
    return None


def _check_ends(
    name: str,
    known: Mapping[Source, Sequence[LineagePath]],
    given: Sequence[SampleRecord],
    returned: Sequence[SampleRecord],
) -> Iterator[Issue]:
    """Look whether exactly one part of each record says to be the last; all of it is one, too."""
    whole = {_source(r.meta, r.meta.cursor) for r in given if r.meta.contributors is None}
    ends: dict[Source, int] = {}
    for record in returned:
        own = _source(record.meta, record.meta.cursor)
        if record.meta.contributors is None and not _is_child(known, own, record.meta):
            ends[own] = ends.get(own, 0) + 1  # all of it
        for ref in record.meta.contributors or ():
            source = _source(record.meta, ref.cursor)
            ends[source] = ends.get(source, 0) + ref.is_last_child
    for source, count in ends.items():
        if source in whole and count != 1:
            yield issue(
                "OP_LINEAGE_NOT_VIA_CHILD",
                name,
                f"one part of a record must be its last, got {count} for sample {source[2]}; pass "
                "is_last_child=True for the last part and no other, and no parts beside the record "
                "itself",
            )
            return


def _named(record: SampleRecord) -> Iterator[SampleCursor]:
    """Yield the cursors that a record claims."""
    yield record.meta.cursor
    yield from record.meta.contribution_cursors()


def sources_of(record: SampleRecord) -> list[Source]:
    """List the drawn rows that are in a record."""
    return [_source(record.meta, cursor) for cursor in record.meta.contribution_cursors()]


def _source(meta: SampleMeta, cursor: SampleCursor) -> Source:
    return (meta.lane_id, cursor.base_offset, cursor.sample_id)


def _is_below(path: LineagePath, parent: LineagePath) -> bool:
    return path[: len(parent)] == parent


def _is_child(
    known: Mapping[Source, Sequence[LineagePath]], source: Source, meta: SampleMeta
) -> bool:
    """Tell whether a record has a lineage below that of the given one."""
    return meta.lineage not in known[source]


def _double(
    known: Mapping[Source, Sequence[LineagePath]], returned: Sequence[SampleRecord]
) -> SampleCursor | None:
    """Find a record that cannot be told from one before it.

    A child goes by its lineage alone. A given record may lie in several, by its contributors.
    """
    seen: set[Any] = set()
    for record in returned:
        meta = record.meta
        who: tuple[Any, ...] = (meta.lane_id, meta.cursor)
        if not _is_child(known, _source(meta, meta.cursor), meta):
            who = (*who, meta.contribution_refs(), meta.tombstone)
        if who in seen:
            return meta.cursor
        seen.add(who)
    return None
