"""What an operator does with records: the checks that call it.

Each copy of the operator gets some groups one after the other, and the first of them again. A
second copy gets them backwards. If the answers for a group differ, a third copy repeats what the
first was asked: equal answers then mean that the operator remembers, others that it is not
deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from zephon.types import SampleMeta, SampleRecord
from zephon.validation.comparing import difference
from zephon.validation.identities import check_identities, order_issue
from zephon.validation.report import Issue, issue, told
from zephon.validation.samples import copies
from zephon.validation.subject import Copy, Subject, listed

Groups: TypeAlias = Sequence[Sequence[SampleRecord]]


def check_behaviour(subject: Subject, groups: Groups) -> Iterator[Issue]:
    """Call an operator with groups of records, and yield what is wrong with the answers."""
    first = subject.fresh()
    before = first.state()
    try:
        answers = [first.call(group) for group in (*groups, groups[0])]
    except Exception as exc:  # of any class: it is code of the user
        yield _rejected(subject, exc)
        if subject.node.calibration_replayable:
            yield _not_validated(subject, exc)
        return
    for answer in answers:
        wrong = _no_records(answer)
        if wrong is not None:
            yield issue(
                "OP_OUTPUT_NOT_STREAM_ITEM",
                subject.node.name,
                f"process_many must return a list of SampleRecord, got {wrong}; put what it makes "
                "into the payload of a record",
            )
            return
    if first.state() != before and not subject.node.requires_serial_state:
        yield issue(
            "OP_STATE_CHANGED_DURING_CALL",
            subject.node.name,
            "process_many must leave the operator as it is, and changed it; keep what must be "
            "remembered in an accumulator, or say requires_serial_state=True",
        )
    found: dict[str, Issue] = {}
    for group, answer in zip(groups, answers, strict=False):
        for each in check_identities(subject.node.name, group, answer):
            found.setdefault(each.code, each)
    yield from found.values()
    unsteady = _unsteady(subject, groups, answers)
    if unsteady is not None:
        yield unsteady
        return
    moved = None
    if subject.node.preserves_cursor_order and not found:
        pairs = zip(groups, answers, strict=False)
        orders = (order_issue(subject.node.name, *pair) for pair in pairs)
        moved = next((each for each in orders if each is not None), None)
    if moved is not None:
        yield moved
    elif subject.node.calibration_replayable and not subject.node.batch_shape_sensitive:
        yield from _replayed(subject, groups[0], answers[0])


def _unsteady(subject: Subject, groups: Groups, answers: list[Any]) -> Issue | None:
    """Say whether the answer for a group depends on anything but the group."""
    backwards = _answers(subject.fresh(), groups[::-1])[::-1]
    asked = [*groups, groups[0]]
    differs = _first_difference([*answers[:-1], answers[0]], [*backwards, answers[-1]])
    if differs is None:
        return None
    if _first_difference(answers, _answers(subject.fresh(), asked)) is not None:
        return issue(
            "OP_NONDETERMINISTIC",
            subject.node.name,
            f"process_many must give equal records for equal records, got {differs}; take random "
            "numbers from the record's sample_id, and nothing from a clock or a global",
        )
    if subject.node.requires_serial_state:
        return None
    return issue(
        "OP_CROSS_CALL_STATE",
        subject.node.name,
        f"process_many must not depend on the calls before, got {differs}; keep what must be "
        "remembered in an accumulator, or say requires_serial_state=True",
    )


def _answers(called: Copy, groups: Groups) -> list[Any]:
    """Call a copy with groups in turn; a failure is an answer, too."""
    answers: list[Any] = []
    for group in groups:
        try:
            answers.append(called.call(group))
        except Exception as exc:  # of any class: it is code of the user
            answers.append(exc)
    return answers


def _first_difference(some: list[Any], others: list[Any]) -> str | None:
    for one, other in zip(some, others, strict=True):
        if isinstance(other, Exception):
            return f"records, then {type(other).__name__}"
        wrong = _no_records(other)
        differs = f"records, then {wrong}" if wrong is not None else difference(one, other)
        if differs is not None:
            return differs
    return None


def _replayed(
    subject: Subject, group: Sequence[SampleRecord], together: list[SampleRecord]
) -> Iterator[Issue]:
    """Run the records of a group one at a time, as a calibration does."""
    called = subject.fresh()
    alone: list[SampleRecord] = []
    try:
        for record in group:
            alone += _of_one(called, record)
    except Exception as exc:  # of any class: it is code of the user
        yield _not_validated(subject, exc)
        return
    wrong = _no_records(alone)
    differs = difference(together, alone) if wrong is None else f"records, then {wrong}"
    if differs is not None:
        yield issue(
            "OP_CALIBRATION_REPLAY_MISMATCH",
            subject.node.name,
            f"with calibration_replayable=True records must give the same alone as together, got "
            f"{differs}; leave it out, or say batch_shape_sensitive=True",
        )


def _of_one(called: Copy, record: SampleRecord) -> list[SampleRecord]:
    if called.process_one is None:
        return list(called.call([record]))
    made = called.process_one(copies([record])[0])
    return [] if made is None else [made] if isinstance(made, SampleRecord) else listed(made)


def _no_records(answer: Any) -> str | None:
    """Say what an answer is, if it is no list of records."""
    if not isinstance(answer, list):
        return f"a {type(answer).__name__}"
    for each in answer:
        if not isinstance(each, SampleRecord):
            return f"a list with a {type(each).__name__}"
        if not isinstance(each.meta, SampleMeta):
            return f"a record whose meta is a {type(each.meta).__name__}"
    return None


def _rejected(subject: Subject, exc: Exception) -> Issue:
    return issue(
        "OP_REJECTS_GENERIC_PAYLOAD",
        subject.node.name,
        f"process_many must work on the records of the checks, got {told(exc)}, so it was not "
        "checked further; give validation_samples that it takes before any setup()",
    )


def _not_validated(subject: Subject, exc: Exception) -> Issue:
    return issue(
        "OP_CALIBRATION_REPLAY_NOT_VALIDATED",
        subject.node.name,
        f"whether records give the same alone as together could not be seen, got {told(exc)}; "
        "give validation_samples that it takes",
    )
