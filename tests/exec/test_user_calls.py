"""Functions of the user that give records: what they may return, and what is said of the rest."""

import pytest

from tests.ops.records import offsets, record, records
from zephon.exec.operator import RowError
from zephon.exec.user_calls import called, is_row, records_of
from zephon.ops import tombstones_for_record
from zephon.types import SampleBatch, SampleMeta, SampleRecord


def test_a_call_hands_everything_on():
    assert called("f", 1, lambda a, *, b: (a, b), 1, b=2) == (1, 2)


@pytest.mark.parametrize(
    ("count", "where"),
    [(0, ""), (1, ", for the record"), (3, ", for the 3 records that begin")],
)
def test_what_a_call_raises_is_told_with_its_cause(count, where):
    def fail():
        raise KeyError("x")

    with pytest.raises(RowError) as caught:
        called("push", count, fail)
    error = caught.value
    assert (error.row, error.problem) == (0, f"push raised KeyError: 'x'{where}")
    assert isinstance(error.__cause__, KeyError)


def test_a_call_does_not_hold_up_who_wants_to_stop():
    with pytest.raises(SystemExit):
        called("f", 1, exit)


def test_what_stands_for_a_dropped_row_stays_and_is_none():
    kept, dropped = records(0, 1)
    (tombstone,) = tombstones_for_record(dropped)
    sentinel = record(2, tags={"_flush_sentinel": True})
    assert records_of("f", 2, [tombstone, kept, sentinel]) == [tombstone, kept]
    assert [is_row(each) for each in (tombstone, kept)] == [False, True]


def test_any_list_of_records_will_do():
    assert offsets(records_of("f", 2, tuple(records(0, 1)))) == [0, 1]
    assert offsets(records_of("f", 2, iter(records(0, 1)))) == [0, 1]
    assert records_of("f", 2, []) == []


@pytest.mark.parametrize(
    ("made", "came"),
    [
        (None, "a NoneType"),
        (record(0), "a SampleRecord"),
        (SampleBatch([record(0)]), "a SampleBatch"),
        ({"a": record(0)}, "a dict"),
        ("ab", "a str"),
        ([record(0), {"n": 1}], "a dict as item 1"),
        ([SampleBatch([record(0)])], "a SampleBatch as item 0"),
        ([SampleRecord(None, {})], "a NoneType as the meta of item 0"),  # pyright: ignore
    ],
)
def test_everything_else_is_refused(made, came):
    with pytest.raises(RowError) as caught:
        records_of("process_many", 2, made)
    wanted = "process_many must return a list of SampleRecord, "
    assert caught.value.problem == f"{wanted}got {came}, for the 2 records that begin"
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_generator_that_fails_is_the_functions_fault():
    def lazy():
        yield record(0)
        raise ValueError("late")

    with pytest.raises(RowError, match="f raised ValueError: late") as caught:
        records_of("f", 1, lazy())
    assert isinstance(caught.value.__cause__, ValueError)


def test_metas_are_kept_as_they_are():
    meta = SampleMeta((0, 0, 1), 0, 0, 1, {2: 1}, tags={"own": 1})
    assert records_of("f", 1, [SampleRecord(meta, None)])[0].meta is meta
