"""Where records come from: those that went in, by name and place; of a lane."""

from dataclasses import replace

import numpy as np
import pytest

from tests.ops.records import record
from zephon.errors import LineageError
from zephon.exec import origins as origins_module
from zephon.exec.operator import RowError
from zephon.exec.origins import KnownOrigins, LatestOrigin, ManyOrigins
from zephon.ops import pack_meta, spawn_child
from zephon.types import ContributorRef


def packed(*offsets, lane=0):
    cursors = [record(offset).meta.cursor for offset in offsets]
    refs = [ContributorRef(cursor) for cursor in cursors]
    return pack_meta(cursors[0], refs, lane_id=lane, component_sample_counts={0: len(refs)})


def known(*metas, kind=KnownOrigins):
    origins = kind(0)
    for row, meta in enumerate(metas):
        origins.add(meta, row)
    return origins


def test_a_record_that_went_in_is_known_and_so_is_what_is_made_of_it():
    origins = known(record(3).meta, record(4).meta, record(5).meta)
    assert origins.rows_of(record(4).meta) == [1]
    assert origins.rows_of(spawn_child(record(5).meta, 2)) == [2, 2]
    assert origins.rows_of(packed(4, 3, 5)) == [1, 1, 0, 2]


def test_what_went_in_as_one_record_comes_out_of_its_row():
    origins = known(packed(3, 4), record(5).meta)
    assert origins.rows_of(record(4).meta) == [0]
    assert origins.rows_of(packed(5, 3)) == [1, 1, 0]


def test_children_of_one_row_are_the_same_row():
    meta = record(3).meta
    origins = known(meta.child(0), meta.child(1))
    assert origins.rows_of(meta.child(1)) == [0]


@pytest.mark.parametrize(
    "meta",
    [
        record(4).meta,
        packed(3, 4),
        replace(record(3).meta, sample_id=(0, 0, 9)),
        replace(record(3).meta, chunk_id=1),
    ],
)
@pytest.mark.parametrize("kind", [KnownOrigins, ManyOrigins])
def test_a_record_that_did_not_go_in_is_refused(kind, meta):
    with pytest.raises(RowError, match="records must be made of those that went in") as caught:
        known(record(3).meta, kind=kind).rows_of(meta)
    assert isinstance(caught.value.__cause__, LineageError)


def test_the_message_names_the_stranger():
    with pytest.raises(RowError) as caught:
        known(record(3).meta).rows_of(packed(3, 8))
    assert caught.value.problem == (
        "records must be made of those that went in, got one of sample (0, 0, 8) at chunk 0, "
        "offset 8, from the records that begin"
    )
    assert "spawn_child or pack_meta" in caught.value.way_out


def test_many_records_are_known_old_and_new():
    origins = known(*(record(3 * number).meta for number in range(10_000)), kind=ManyOrigins)
    origins.add(packed(7, 10))
    for offset in (0, 3, 15_000, 29_997, 7, 10):
        assert origins.rows_of(record(offset).meta) == [0]
    assert origins.rows_of(packed(3, 29_997)) == [0, 0, 0]
    for offset in (1, 8, 29_998, 30_000):
        with pytest.raises(
            RowError, match=rf"sample \(0, 0, {offset}\) at chunk 0, offset {offset}"
        ):
            origins.rows_of(record(offset).meta)


def test_what_many_records_cost_grows_little_faster_than_their_number(monkeypatch):
    monkeypatch.setattr(origins_module, "_RECENT", 4)
    joined, union = [], np.union1d

    def counted(one, other):
        joined.append(len(one) + len(other))
        return union(one, other)

    monkeypatch.setattr(np, "union1d", counted)
    origins = known(*(record(number).meta for number in range(4096)), kind=ManyOrigins)
    assert sum(joined) <= 4096 * 12  # a new one joined to all older ones: 4096 * 512
    for offset in (0, 1, 2047, 4095):
        assert origins.rows_of(record(offset).meta) == [0]


@pytest.mark.parametrize("kind", [KnownOrigins, ManyOrigins, LatestOrigin])
def test_a_record_stays_in_its_lane(kind):
    origins = kind(1)
    origins.add(record(3, lane=1).meta)
    with pytest.raises(RowError, match=r"lane 1 must stay in it, got lane 0 in the meta of sample"):
        origins.rows_of(record(3).meta)


def test_where_records_may_be_of_any_age_only_the_future_is_unknown():
    origins = LatestOrigin(0)
    with pytest.raises(RowError):
        origins.rows_of(record(0).meta)
    origins.add(packed(3, 9))
    origins.add(record(4).meta)
    assert origins.latest == (0, 9)
    assert origins.rows_of(packed(9, 2)) == [0, 0, 0]
    with pytest.raises(RowError, match=r"sample \(0, 0, 10\)"):
        origins.rows_of(packed(9, 10))
    assert LatestOrigin(0, (2, 5)).rows_of(record(9).meta) == [0]
