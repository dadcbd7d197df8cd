"""Records of the checks are three lanes of four, and nobody's but the call's."""

import pytest

from zephon.errors import PlanError
from zephon.validation.samples import by_lane, copies, generic_records, keys, records_given


def test_the_records_of_the_checks_are_three_lanes_of_four():
    records = generic_records()
    lanes = by_lane(records)
    assert {lane: len(each) for lane, each in lanes.items()} == {0: 4, 1: 4, 2: 4}
    assert all(set(r.payload) == {"text", "value"} for r in records)
    assert len(set(keys(records))) == 12


def test_copies_share_nothing_that_can_be_changed():
    (record, *_) = generic_records()
    (copy,) = copies([record])
    assert copy == record
    copy.payload["text"] = "other"
    copy.meta.tags["mark"] = 1
    assert (record.payload["text"], record.meta.tags) == ("lane 0, record 0: one", {})


def test_samples_are_a_list_or_a_function_that_makes_one():
    records = generic_records()
    assert records_given(records) == records
    assert records_given(lambda: records) == records
    assert records_given(lambda: None) is None
    assert records_given(None) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [([], r"with one at least, got \[\]"), ("text", "got 'text'"), ([1], "got one with a int")],
)
def test_samples_of_another_kind_are_refused(given, message):
    with pytest.raises(PlanError, match=message):
        records_given(given)
