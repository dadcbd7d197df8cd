"""Rows by reference, interval by interval: the same rows, however narrow they are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from zephon.exec.block import Known
from zephon.exec.kept_rows import Interval, KeptRows, _narrow, _wide
from zephon.exec.policies import Units
from zephon.work.refs import Refs

INT64 = np.iinfo(np.int64)


def group(number, rows=3, pieces=2, measures=1):
    """Make rows of two pieces each; neighbours share a document."""
    count = rows * pieces
    ordinal = 10 * number + np.arange(count) // 2 + np.arange(count) % 2
    refs = Refs.of(
        component=(ordinal % 3).astype(np.int32),
        shard=ordinal * 0 + 5,
        row=ordinal * 10**10,
        pass_index=(ordinal % 2).astype(np.int32),
        ordinal=ordinal,
        lane=7,
    )
    known = Known(refs, ordinal + 1, ordinal * 3, np.array([ordinal * -2] * measures))
    splits = np.arange(rows + 1) * pieces
    units = Units(splits, ordinal, ordinal % 4, ordinal % 5 + 1, np.zeros(rows, np.int64))
    return KeptRows.of(units, known)


def told(rows):
    known, units = rows.known, rows.units
    places = units.seq
    columns = [getattr(known.refs, name)[places].tolist() for name in Refs.__slots__]
    numbers = (units.splits, units.start, units.length, known.length[places])
    measures = known.measures[:, places].tolist()
    return columns, [each.tolist() for each in numbers], known.position[places].tolist(), measures


@given(arrays(np.int64, st.integers(0, 9), elements=st.integers(INT64.min, INT64.max)))
def test_any_integers_come_back(values):
    assert _wide(_narrow(values)).tolist() == values.tolist()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33, 50])
def test_an_interval_gives_its_groups_as_they_were(count):
    groups = [group(number, rows=1 + number % 4) for number in range(count)]
    interval = Interval(100, {"n": 1})
    for each in groups:
        interval.add(each)
    assert (len(interval), interval.sizes()) == (count, [len(each) for each in groups])
    assert [told(each) for each in interval.groups()] == [told(each) for each in groups]
    assert told(interval.rows()) == told(KeptRows.concat(groups))
    ordinals = [each.known.refs.ordinal for each in groups]
    assert interval.documents().tolist() == [n for each in ordinals for n in each.tolist()]
    for stop in (0, 1, 15, 16, 20, 40, count, count + 5):
        part = interval.until(100 + stop)
        assert (part.first, part.snapshot, len(part)) == (100, {"n": 1}, min(stop, count))
        assert [told(each) for each in part.groups()] == [told(each) for each in groups[:stop]]
    again = Interval(100, None, groups)
    again.add(group(count))
    assert len(again) == count + 1 == len(interval) + 1
    assert [told(each) for each in again.groups()[:count]] == [told(each) for each in groups]


def test_documents_that_several_pieces_belong_to_are_named_once():
    rows = KeptRows.concat([group(0), group(1)])
    distinct = rows.distinct()
    assert len(rows.known) == 12
    assert distinct.known.refs.ordinal.tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
    assert told(distinct) == told(rows)
    assert distinct.distinct() is distinct


def test_some_rows_hold_their_documents_alone():
    rows = group(3)
    assert told(KeptRows.concat([rows.rows(0, 1), rows.rows(1, 3)])) == told(rows)
    assert len(rows.rows(1, 2).known) == 2
    assert len(KeptRows.concat([])) == 0
