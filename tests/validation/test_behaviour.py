"""Each promise about calls is broken by a small operator, and kept by healthy ones."""

import itertools
import random

from tests.validation.operators import codes, made_of, only, same, shouted
from zephon.ops import pack_meta, spawn_child, tombstones_for_record
from zephon.types import ContributorRef, SampleRecord

CALLS = itertools.count()


def halves(records):
    return [
        SampleRecord(spawn_child(r.meta, i, is_last_child=i == 1), {"half": i})
        for r in records
        for i in range(2)
    ]


def merged(records):
    meta = pack_meta(
        records[0].meta.cursor,
        [ContributorRef(r.meta.cursor) for r in records],
        lane_id=records[0].meta.lane_id,
        component_sample_counts={0: len(records)},
    )
    return [SampleRecord(meta, [r.payload for r in records])]


def only_even(records):
    kept = []
    for r in records:
        kept += [r] if r.payload["value"] % 2 == 0 else tombstones_for_record(r)
    return kept


def numbered_by_call(records):
    number = next(CALLS)
    return [SampleRecord(r.meta, number) for r in records]


def counting():
    calls = 0

    def process_many(records):
        nonlocal calls
        calls += 1
        return [SampleRecord(r.meta, calls) for r in records]

    return process_many


def test_healthy_operators_give_no_issue():
    for process_many in (same, shouted, only_even, halves, list, lambda records: []):
        assert codes(made_of(process_many, calibration_replayable=True)) == []
    assert codes(made_of(merged)) == []
    assert codes(made_of(merged, calibration_replayable=True, batch_shape_sensitive=True)) == []


def test_a_generator_is_a_list_of_what_it_gives():
    def one_by_one(records):
        yield from shouted(records)

    assert codes(made_of(one_by_one)) == []


def test_values_that_cannot_be_compared_are_no_difference():
    class Image:
        __slots__ = ()

    assert codes(made_of(lambda rs: [SampleRecord(r.meta, Image()) for r in rs])) == []


def test_answers_that_differ_for_equal_records():
    wrong = only(made_of(numbered_by_call))
    assert wrong.code == "OP_NONDETERMINISTIC"
    assert "got record 0 holds 0, then " in wrong.message


def test_a_generator_that_draws_on_depends_on_earlier_calls():
    draw = random.Random(3)
    shuffled = made_of(lambda records: draw.sample(records, len(records)))
    assert codes(shuffled) == ["OP_CROSS_CALL_STATE"]


def test_answers_that_depend_on_earlier_calls():
    assert codes(made_of(counting())) == ["OP_STATE_CHANGED_DURING_CALL", "OP_CROSS_CALL_STATE"]


def test_records_that_were_seen_before_are_remembered():
    seen = set()

    def fresh_ones(records):
        new = [r for r in records if r.payload["text"] not in seen]
        seen.update(r.payload["text"] for r in new)
        return new

    assert codes(made_of(fresh_ones))[1:] == ["OP_CROSS_CALL_STATE"]
    assert seen == set()  # what runs later begins as it was


def test_an_operator_may_say_that_it_remembers():
    assert codes(made_of(counting(), requires_serial_state=True)) == []


def test_a_state_that_no_answer_shows_is_a_doubt():
    lengths = []

    def measured(records):
        lengths.append(len(records))
        return records

    changed = only(made_of(measured))
    assert (changed.code, changed.severity) == ("OP_STATE_CHANGED_DURING_CALL", "warning")


def test_an_answer_must_be_a_list_of_records():
    for answer, told in (
        ([1], "a list with a int"),
        (None, "a NoneType"),
        ("text", "a str"),
        ([{"text": "a"}], "a list with a dict"),
        ({"text": "a"}, "a dict"),
        ([SampleRecord(3, "a")], "a record whose meta is a int"),
    ):
        wrong = only(made_of(lambda records, answer=answer: answer))
        assert wrong.code == "OP_OUTPUT_NOT_STREAM_ITEM"
        assert f"must return a list of SampleRecord, got {told};" in wrong.message


def test_an_operator_that_wants_other_fields_is_not_checked_further():
    tokens = made_of(lambda records: [r.payload["tokens"] for r in records])
    refused = only(tokens)
    assert (refused.code, refused.severity) == ("OP_REJECTS_GENERIC_PAYLOAD", "warning")
    assert "got KeyError: 'tokens', so it was not checked further" in refused.message


def test_records_alone_must_give_what_they_give_together():
    def first(records):
        return records[:1]

    assert codes(made_of(first)) == []
    wrong = only(made_of(first, calibration_replayable=True))
    assert wrong.code == "OP_CALIBRATION_REPLAY_MISMATCH"
    assert "got 1 records, then 4;" in wrong.message


def test_records_alone_go_through_process_one():
    both = {"calibration_replayable": True, "process_many": shouted}
    for process_one in (lambda r: shouted([r])[0], lambda r: shouted([r])):
        assert codes(made_of(**both, process_one=process_one)) == []
    for process_one in (lambda r: r, lambda r: None, lambda r: ["text"]):
        wrong = made_of(**both, process_one=process_one)
        assert codes(wrong) == ["OP_CALIBRATION_REPLAY_MISMATCH"]


def test_a_replay_that_fails_is_said():
    def in_pairs(records):
        if len(records) == 1:
            raise ValueError("one alone")
        return records

    doubt = only(made_of(in_pairs, calibration_replayable=True))
    assert (doubt.code, doubt.severity) == ("OP_CALIBRATION_REPLAY_NOT_VALIDATED", "warning")
    refusing = made_of(lambda records: 1 / 0, calibration_replayable=True)
    assert codes(refusing) == ["OP_REJECTS_GENERIC_PAYLOAD", "OP_CALIBRATION_REPLAY_NOT_VALIDATED"]


def test_who_promises_to_keep_the_order_keeps_it():
    found = only(made_of(lambda records: records[::-1]))
    assert found.code == "OP_CALIBRATION_REPLAY_MISMATCH"
    assert "preserves_cursor_order=True records must leave in the order" in found.message
    assert codes(made_of(lambda records: records[::-1], preserves_cursor_order=False)) == []
