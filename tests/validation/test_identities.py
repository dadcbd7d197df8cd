"""What comes back must be traceable to what was given."""

from dataclasses import replace

from zephon.ops import pack_meta, spawn_child, tombstone_meta
from zephon.types import ContributorRef, SampleRecord
from zephon.validation.identities import check_identities, order_issue
from zephon.validation.samples import generic_records

RECORDS = generic_records()[:2]
ONE, TWO = RECORDS


def found(*metas, given=RECORDS):
    returned = [SampleRecord(meta, None) for meta in metas]
    return [each.code for each in check_identities("op", given, returned)]


def packed(*refs, first=ONE):
    counts = {"lane_id": 0, "component_sample_counts": {0: len(refs)}}
    return pack_meta(first.meta.cursor, refs, **counts)


def part(record, number, last=False):
    return spawn_child(record.meta, number, is_last_child=last)


def test_records_children_merges_and_tombstones_are_fine():
    assert found(ONE.meta, TWO.meta) == []
    assert found(TWO.meta, ONE.meta) == []
    assert found() == []
    assert found(part(ONE, 0), part(ONE, 1, last=True), TWO.meta) == []
    assert found(part(ONE, 0, last=True)) == []
    assert found(ONE.meta.child(0), ONE.meta.child(1)) == []
    assert found(packed(ContributorRef(ONE.meta.cursor), ContributorRef(TWO.meta.cursor))) == []
    assert found(tombstone_meta(ContributorRef(ONE.meta.cursor), 0), TWO.meta) == []


def test_a_part_of_a_part_is_fine():
    half = spawn_child(ONE.meta, 0, is_last_child=False)
    given = [SampleRecord(half, None)]
    assert found(half.child(0), half.child(1), given=given) == []
    assert found(spawn_child(half, 0), spawn_child(half, 1, is_last_child=True), given=given) == []


def test_a_record_may_lie_in_two_rows():
    whole, cursor = ContributorRef(ONE.meta.cursor), TWO.meta.cursor
    first = packed(whole, ContributorRef(cursor, is_last_child=False))
    second = packed(ContributorRef(cursor), first=TWO)
    assert found(first, second) == []


def test_a_sample_that_was_not_given_is_made_up():
    for meta in (
        replace(ONE.meta, sample_id=(9, 9, 9)),
        replace(ONE.meta, chunk_offset=7),
        replace(ONE.meta, lane_id=2),
        packed(ContributorRef(ONE.meta.cursor), ContributorRef(generic_records()[5].meta.cursor)),
    ):
        assert found(meta) == ["OP_FABRICATES_SAMPLE_ID"]


def test_a_lineage_is_the_parents_or_below_it():
    deep = SampleRecord(ONE.meta.with_lineage((1, 2)), None)
    assert found(deep.meta.child(0), given=[deep]) == []
    assert found(ONE.meta.with_lineage((1, 3)), given=[deep]) == ["OP_LINEAGE_NOT_VIA_CHILD"]


def test_records_made_of_one_must_differ():
    assert found(ONE.meta, ONE.meta) == ["OP_FANOUT_DUPLICATE_LINEAGE"]
    assert found(part(ONE, 0, last=True), part(ONE, 0, last=True)) == [
        "OP_FANOUT_DUPLICATE_LINEAGE"
    ]


def test_exactly_one_part_is_the_last():
    assert found(part(ONE, 0), part(ONE, 1)) == ["OP_LINEAGE_NOT_VIA_CHILD"]
    assert found(part(ONE, 0, last=True), part(ONE, 1, last=True)) == ["OP_LINEAGE_NOT_VIA_CHILD"]


def test_a_child_is_there_once_whether_it_is_the_last_or_not():
    assert found(part(ONE, 0), part(ONE, 0, last=True)) == ["OP_FANOUT_DUPLICATE_LINEAGE"]
    assert found(ONE.meta.child(0), ONE.meta.child(0).with_tombstone()) == [
        "OP_FANOUT_DUPLICATE_LINEAGE"
    ]


def test_a_record_has_no_parts_beside_itself():
    assert found(ONE.meta, part(ONE, 0, last=True)) == ["OP_LINEAGE_NOT_VIA_CHILD"]
    assert found(ONE.meta, packed(ContributorRef(ONE.meta.cursor), first=TWO)) == [
        "OP_LINEAGE_NOT_VIA_CHILD"
    ]


def test_records_stand_in_the_order_of_those_whose_place_they_take():
    def moved(*metas):
        returned = [SampleRecord(meta, None) for meta in metas]
        return order_issue("op", RECORDS, returned) is not None

    assert moved(TWO.meta, ONE.meta)
    assert moved(TWO.meta, part(ONE, 0, last=True))
    assert not moved(ONE.meta, TWO.meta)
    assert not moved(part(ONE, 1), part(ONE, 0), TWO.meta)
    assert not moved(TWO.meta, tombstone_meta(ContributorRef(ONE.meta.cursor), 0))
