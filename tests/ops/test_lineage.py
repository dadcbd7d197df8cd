"""Who records are that an operator makes: children, packed ones, tombstones."""

import pytest

from tests.ops.records import record
from zephon.batches.identity import PLACEMENT
from zephon.errors import LineageError
from zephon.ops import pack_meta, spawn_child, tombstone_meta, tombstones_for_record
from zephon.types import ContributorRef, SampleCursor, SampleMeta, SampleRecord

PARENT = SampleMeta((2, 1, 5), 3, 1, 7, {4: 1}, {4: 9}, tags={"seen": True, PLACEMENT: {}})


def test_a_child_has_the_name_and_place_of_its_parent_and_a_number():
    child = spawn_child(PARENT, 0, tags={"part": "a"})
    assert (child.sample_id, child.lane_id, child.cursor.base_offset) == ((2, 1, 5), 3, (1, 7))
    assert child.lineage == (0,)
    assert child.contributors == (ContributorRef(SampleCursor(1, 7, (2, 1, 5), (0,)), False),)
    assert child.tags["seen"] is True
    assert child.tags["part"] == "a"


def test_the_last_child_alone_uses_the_parent_up():
    first, last = spawn_child(PARENT, 0), spawn_child(PARENT, 1, is_last_child=True)
    assert not first.contribution_refs()[0].is_last_child
    assert last.contribution_refs()[0].is_last_child
    assert first.component_sample_counts == {4: 0}
    assert last.component_sample_counts == {4: 1}


def test_a_child_has_other_tokens_and_another_layout_than_its_parent():
    child = spawn_child(PARENT, 0, is_last_child=True)
    assert child.component_token_counts is None
    assert PLACEMENT not in child.tags


def test_a_grandchild_ends_the_row_only_if_its_parent_did():
    first, last = spawn_child(PARENT, 0), spawn_child(PARENT, 1, is_last_child=True)
    assert spawn_child(last, 0, is_last_child=True).lineage == (1, 0)
    assert spawn_child(last, 0, is_last_child=True).contribution_refs()[0].is_last_child
    assert not spawn_child(first, 0, is_last_child=True).contribution_refs()[0].is_last_child
    assert not spawn_child(last, 0).contribution_refs()[0].is_last_child


def test_a_child_shares_no_dict_with_its_parent():
    child = spawn_child(PARENT, 0, is_last_child=True)
    child.component_sample_counts[9] = 1
    child.tags["more"] = 1
    assert PARENT.component_sample_counts == {4: 1}
    assert "more" not in PARENT.tags


@pytest.mark.parametrize("number", [-1, True, 1.0, None])
def test_children_are_numbered_from_zero(number):
    with pytest.raises(LineageError, match=r"^spawn_child: child_idx must be an integer of at lea"):
        spawn_child(PARENT, number)


def test_a_tombstone_has_no_last_child():
    tombstone = tombstone_meta(ContributorRef(PARENT.cursor), 3)
    with pytest.raises(ValueError, match=r"^spawn_child: a tombstone has no last child, got .*5\)"):
        spawn_child(tombstone, 0, is_last_child=True)
    child = spawn_child(tombstone, 0)
    assert not child.tombstone
    assert not child.contribution_refs()[0].is_last_child


def test_a_packed_record_stands_at_its_first_and_names_all():
    first, second = record(3).meta, record(4).meta
    refs = [ContributorRef(first.cursor), ContributorRef(second.cursor, False)]
    counts, tokens = {0: 1}, {0: 12}
    meta = pack_meta(
        first.cursor,
        iter(refs),
        lane_id=0,
        component_sample_counts=counts,
        component_token_counts=tokens,
        tags={"kind": "pair"},
    )
    assert (meta.sample_id, meta.cursor, meta.lane_id) == (first.sample_id, first.cursor, 0)
    assert meta.contributors == tuple(refs)
    assert meta.tags["kind"] == "pair"
    counts[0] = tokens[0] = 99
    assert (meta.component_sample_counts, meta.component_token_counts) == ({0: 1}, {0: 12})


def test_what_packs_without_tokens_counts_none():
    cursor = record(3).meta.cursor
    meta = pack_meta(cursor, [ContributorRef(cursor)], lane_id=2, component_sample_counts={1: 1})
    assert meta.component_token_counts is None
    assert meta.lane_id == 2


def test_a_tombstone_stands_where_the_record_was():
    cursor = SampleCursor(1, 7, (2, 1, 5), (0,))
    meta = tombstone_meta(ContributorRef(cursor), 3)
    assert meta.tombstone
    assert (meta.cursor, meta.lane_id) == (cursor, 3)
    assert meta.contribution_refs() == (ContributorRef(cursor),)
    assert meta.component_sample_counts == {}


def test_a_part_that_is_no_last_one_needs_no_tombstone():
    with pytest.raises(ValueError, match=r"^tombstone_meta: the contributor must be the last of"):
        tombstone_meta(ContributorRef(PARENT.cursor, False), 3)
    assert tombstones_for_record(SampleRecord(spawn_child(PARENT, 0), {})) == []


def test_a_dropped_record_leaves_a_tombstone_for_each_source_that_it_uses_up():
    assert tombstones_for_record(record(3)) == [
        SampleRecord(tombstone_meta(ContributorRef(record(3).meta.cursor), 0), None)
    ]
    cursors = [record(offset).meta.cursor for offset in (3, 4, 5)]
    refs = [ContributorRef(cursor, cursor is not cursors[1]) for cursor in cursors]
    packed = pack_meta(cursors[0], refs, lane_id=0, component_sample_counts={0: 2})
    tombstones = tombstones_for_record(SampleRecord(packed, {}))
    assert [each.meta.chunk_offset for each in tombstones] == [3, 5]
    assert all(each.meta.tombstone for each in tombstones)
