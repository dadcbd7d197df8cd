"""Pipelines are checked when asked and before they run; each operator once."""

import logging
import threading

import pytest

from tests.planner.plans import fetch
from tests.validation.operators import Pairs, Shout, codes, given, made_of, only, same, shouted
from zephon.errors import ValidationError
from zephon.ops import BaseOp, OpTraits
from zephon.planner.logical import CustomOp, MapTransform, RowFunction
from zephon.types import SampleMeta, SampleRecord
from zephon.validation import run_auto_validation, validate_pipeline


class Plain(BaseOp):
    calls = 0

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def process_many(self, elems):
        type(self).calls += 1
        return elems


class Noise(Shout):
    """Remembers what it is not allowed to."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def process_many(self, elems):
        self.count += 1
        return [SampleRecord(r.meta, self.count) for r in elems]


class Piped:
    """A pipeline, as far as checks look into it."""

    def __init__(self, node):
        self._node = node


def with_tokens():
    meta = SampleMeta(sample_id=(0, 0, 1), lane_id=0, chunk_id=0, chunk_offset=1)
    return [SampleRecord(meta, {"tokens": [1, 2]})]


def lengths(records):
    return [SampleRecord(r.meta, len(r.payload["tokens"])) for r in records]


def refusing(records):
    return [SampleRecord(r.meta, r.payload["no such field"]) for r in records]


def counted(function):
    """Count the calls of a function where copies of it count, too."""
    calls = []

    class Counts(threading.local):  # cannot be copied, so it is shared
        def __call__(self, records):
            calls.append(1)
            return function(records)

    return Counts(), calls


def test_a_pipeline_without_operators_of_its_user_has_no_issues():
    mapped = MapTransform(functions=(RowFunction(function=hash),), input=fetch())
    assert validate_pipeline(Piped(mapped)) == []


def test_operators_are_checked_in_their_order():
    lower = made_of(lambda records: 1, name="lower", requires_serial_state=False)
    upper = CustomOp(
        **{f: getattr(lower, f) for f in ("process_many", "preserves_cursor_order")},
        name="upper",
        input=lower,
    )
    report = validate_pipeline(Piped(upper))
    assert [(each.op_name, each.code) for each in report] == [
        ("lower", "OP_OUTPUT_NOT_STREAM_ITEM"),
        ("upper", "OP_OUTPUT_NOT_STREAM_ITEM"),
    ]


def test_strict_raises_errors_and_no_warnings():
    assert validate_pipeline(made_of(refusing), strict=True).ok
    with pytest.raises(ValidationError, match="OP_OUTPUT_NOT_STREAM_ITEM: 'op': process_many must"):
        validate_pipeline(made_of(lambda records: 1), strict=True)


def test_a_thing_without_a_plan_is_refused():
    with pytest.raises(TypeError, match="a Pipeline was wanted, got a str"):
        validate_pipeline("pipeline")


def test_an_instance_without_samples_is_only_read():
    Plain.calls = 0
    skipped = only(given(Plain()))
    assert (skipped.code, skipped.severity) == ("OP_INSTANCE_RUNTIME_CHECKS_SKIPPED", "warning")
    assert Plain.calls == 0


def test_an_instance_with_samples_is_tried_out():
    assert codes(given(Shout())) == []
    noise = Noise()
    assert codes(given(noise)) == [
        "OP_WRITES_TO_SELF",
        "OP_STATE_CHANGED_DURING_CALL",
        "OP_CROSS_CALL_STATE",
    ]
    assert noise.count == 0


def test_an_accumulator_of_an_instance_is_tried_out():
    class Denies(Pairs):
        def has_pending_data(self, lane_id=None):
            return True

    class Grouped(Shout):
        def accumulator(self, *, deterministic, ctx):
            return Denies()

    assert codes(given(Grouped())) == ["ACC_HAS_PENDING_LIES"]


def test_functions_get_samples_of_the_user():
    assert codes(made_of(lengths)) == ["OP_REJECTS_GENERIC_PAYLOAD"]
    assert codes(made_of(lengths, validation_samples=with_tokens)) == []
    assert codes(made_of(lengths, validation_samples=with_tokens())) == []


def test_samples_that_cannot_be_had():
    failed = only(made_of(shouted, validation_samples=lambda: 1 / 0))
    assert (failed.code, failed.severity) == ("OP_VALIDATION_SAMPLES_FACTORY_FAILED", "warning")
    assert "got ZeroDivisionError" in failed.message

    class Empty(Shout):
        def validation_samples(self):
            return []

    assert codes(given(Empty())) == ["OP_VALIDATION_SAMPLES_FACTORY_FAILED"]


def test_groups_are_those_of_the_accumulator():
    sizes = []

    class Sized(threading.local):
        def __call__(self, records):
            sizes.append(len(records))
            return records

    assert codes(made_of(Sized(), accumulator=Pairs)) == []
    assert set(sizes) == {2}


def test_a_check_that_crashes_is_an_issue():
    class Locked(Shout):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

    crashed = only(given(Locked()))
    assert (crashed.code, crashed.severity) == ("OP_VALIDATOR_CRASHED", "error")
    assert "cannot pickle '_thread.lock' object" in crashed.message


def test_what_was_found_before_a_crash_is_kept():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("ask me not")

        __hash__ = None

    process_many = lambda records: [SampleRecord(r.meta, [Odd(), hash(1)]) for r in records]  # noqa: E731
    found = codes(made_of(process_many))
    assert found == ["OP_NONDETERMINISTIC_STDLIB_CALL", "OP_VALIDATOR_CRASHED"]


def test_an_operator_is_tried_out_once():
    process_many, calls = counted(same)
    node = made_of(process_many)
    assert run_auto_validation(node, "strict") == []
    first = len(calls)
    assert first > 0
    assert run_auto_validation(node, "strict") == []
    assert len(calls) == first


def test_strict_raises_every_time():
    node = made_of(lambda records: 1)
    for _ in range(2):
        with pytest.raises(ValidationError) as caught:
            run_auto_validation(node, "strict")
        assert [e.code for e in caught.value.report] == ["OP_OUTPUT_NOT_STREAM_ITEM"]


def test_strict_logs_warnings_once(caplog):
    node = made_of(refusing)
    with caplog.at_level(logging.WARNING):
        run_auto_validation(node, "strict")
        run_auto_validation(node, "strict")
    assert ["OP_REJECTS_GENERIC_PAYLOAD" in r.message for r in caplog.records] == [True]


def test_warn_warns_of_errors_once():
    node = made_of(lambda records: 1)
    with pytest.warns(RuntimeWarning, match="error OP_OUTPUT_NOT_STREAM_ITEM: 'op'"):
        report = run_auto_validation(node, "warn")
    assert not report.ok
    assert run_auto_validation(node, "warn") == report


def test_off_calls_nothing():
    process_many, calls = counted(lambda records: 1)
    assert run_auto_validation(made_of(process_many), "off") == []
    assert calls == []
