"""Every code that a check reports, with its severity and its meaning in a line.

An error is a promise that an operator breaks: rows would be lost, made up, or differ between runs.
A warning is a doubt, or says what could not be checked.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning"]

ERRORS: dict[str, str] = {
    "OP_NONDETERMINISTIC": "Two calls with equal records gave different records.",
    "OP_OUTPUT_NOT_STREAM_ITEM": "What was returned is no list of SampleRecord.",
    "OP_CROSS_CALL_STATE": "What a call returns depends on the calls before it.",
    "OP_CALIBRATION_REPLAY_MISMATCH": "Records one at a time give something else than together.",
    "OP_FABRICATES_SAMPLE_ID": "A returned record belongs to no record of the call.",
    "OP_LINEAGE_NOT_VIA_CHILD": "A lineage is not that of a record of the call or of its child.",
    "OP_FANOUT_DUPLICATE_LINEAGE": "Two records made of one cannot be told apart.",
    "OP_VALIDATOR_CRASHED": "The checks themselves failed on this operator.",
    "ACC_FACTORY_RAISED": "No accumulator could be made.",
    "ACC_PUSH_OR_FLUSH_RAISED": "The accumulator failed on the records of the checks.",
    "ACC_FLUSH_LOSES_SAMPLES": "What was pushed has not come out, once each, after flush().",
    "ACC_RESET_RAISED": "flush(reset=True, lane_id=...) failed.",
    "ACC_RESET_NOT_FRESH": "After a reset the lane is not as in a new accumulator.",
    "ACC_HAS_PENDING_LIES": "has_pending_data() says something else than what is held.",
    "ACC_MUTATES_LANE_ID": "A record came out in another lane than it went in.",
    "ACC_BATCH_NOT_LANE_PURE": "A group holds records of several lanes.",
    "ACC_NO_PER_LANE_FLUSH": "flush() does not take reset and lane_id.",
    "ACC_PER_LANE_FLUSH_NOT_DRAINED": "A flush of one lane leaves records of it behind.",
    "ACC_FLUSH_LEAKS_OTHER_LANES": "A flush of one lane gives records of another.",
    "TOKENIZER_PREFLIGHT_FAILED": "A tokenizer of the plan cannot be loaded.",
}

WARNINGS: dict[str, str] = {
    "OP_REJECTS_GENERIC_PAYLOAD": "It failed on the records of the checks, which then stopped.",
    "OP_MUTATES_SELF": "A processing method changes an object that self holds.",
    "OP_WRITES_TO_SELF": "A processing method assigns an attribute of self.",
    "OP_NONDETERMINISTIC_STDLIB_CALL": "It calls what gives another answer in another run.",
    "OP_STATE_CHANGED_DURING_CALL": "A call changed what the operator holds.",
    "OP_INSTANCE_RUNTIME_CHECKS_SKIPPED": "It was only read: validation_samples() gives nothing.",
    "OP_VALIDATION_SAMPLES_FACTORY_FAILED": "validation_samples gave no records to check with.",
    "OP_CALIBRATION_REPLAY_NOT_VALIDATED": "Whether it can be replayed alone could not be seen.",
}


def severity_of(code: str) -> Severity:
    """Say how bad a code is."""
    return "error" if code in ERRORS else "warning"
