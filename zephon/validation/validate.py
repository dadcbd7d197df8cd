"""Checking the operators of a pipeline that its user wrote, before it runs or when asked."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from typing import Protocol

from zephon.planner.logical import CustomOp, Node
from zephon.planner.tree import source_first
from zephon.types import SampleRecord
from zephon.validation.accumulation import check_accumulator, groups_formed
from zephon.validation.behaviour import check_behaviour
from zephon.validation.memory import Memory
from zephon.validation.report import Issue, ValidationReport, issue, told
from zephon.validation.samples import by_lane, generic_records, records_given
from zephon.validation.source_checks import check_source
from zephon.validation.subject import Subject

_logger = logging.getLogger(__name__)
_memory = Memory()


class Planned(Protocol):
    """A pipeline, as far as checks look into it."""

    _node: Node


def validate_pipeline(pipeline: Planned | Node, strict: bool = False) -> ValidationReport:
    """Try out every operator that ``add_op`` added, and report what is wrong with it.

    Copies of an operator get small records of three lanes, or its ``validation_samples``; an
    instance is called only with samples of its own, and never after ``setup()``. Steps of Zephon
    are not checked.

    Args:
        pipeline: or the last node of its plan.
        strict: raise where the report holds an error.

    Raises:
        ValidationError: ``strict``, and there is an error; its ``report`` is this one.
    """
    report = ValidationReport()
    for node in _operators(node_of(pipeline)):
        report += _check(node)
    if strict:
        report.raise_errors()
    return report


def run_auto_validation(node: Node, mode: str = "strict") -> ValidationReport:
    """Check the operators of a plan that is about to run; each is tried out once, not every time.

    Args:
        node: the last of the plan.
        mode: "strict": errors raise, warnings are logged. "warn": everything is a Python warning.
            "off": nothing is checked.

    Raises:
        ValidationError: "strict", and an operator has an error.
    """
    report = ValidationReport()
    for operator in _operators(node) if mode != "off" else ():
        found = _memory.recall(operator)
        if found is None:
            found = tuple(_check(operator))
            _memory.keep(operator, found)
            for each in found:
                if mode == "warn":
                    warnings.warn(str(each), RuntimeWarning, stacklevel=3)
                elif each.severity == "warning":
                    _logger.warning("%s", each)
        report += found
    if mode == "strict":
        report.raise_errors()
    return report


def node_of(pipeline: Planned | Node) -> Node:
    """Give the last node of a pipeline's plan.

    Raises:
        TypeError: it is no pipeline.
    """
    node = getattr(pipeline, "_node", pipeline)
    if not isinstance(node, Node):
        raise TypeError(
            f"validation: a Pipeline was wanted, got a {type(pipeline).__name__}; pass the one "
            "that holds the operators"
        )
    return node


def _operators(node: Node) -> list[CustomOp]:
    return [each for each in source_first(node) if isinstance(each, CustomOp)]


def _check(node: CustomOp) -> list[Issue]:
    """Check one operator; a check that fails is an issue, too."""
    found: list[Issue] = []
    try:
        for each in _checks(Subject(node)):
            found.append(each)  # noqa: PERF402  what was found before a crash is kept
    except Exception as exc:  # of any class: copying and comparing run code of the user
        found.append(
            issue(
                "OP_VALIDATOR_CRASHED",
                node.name,
                f"the operator must be one that can be copied and tried out, got {told(exc)}; "
                "mend that, or pass options(auto_validation='off')",
            )
        )
    return found


def _checks(subject: Subject) -> Iterator[Issue]:
    node = subject.node
    yield from check_source(node.name, subject.functions(), remembers=node.requires_serial_state)
    failed, records = _records(subject)
    if failed is not None:
        yield failed
    if records is None:
        return
    groups, make = [], subject.accumulator_factory()
    if make is not None:
        wrong = check_accumulator(node.name, make, records)
        yield from wrong
        groups = [] if wrong else groups_formed(node.name, make, records)
    yield from check_behaviour(subject, groups or list(by_lane(records).values()))


def _records(subject: Subject) -> tuple[Issue | None, list[SampleRecord] | None]:
    """Choose the records to check with; None: the operator is only read."""
    node, failed = subject.node, None
    given = node.validation_samples if node.instance is None else node.instance.validation_samples
    try:
        found = records_given(given)
    except Exception as exc:  # of any class: it may be code of the user
        found = None
        failed = issue(
            "OP_VALIDATION_SAMPLES_FACTORY_FAILED",
            node.name,
            f"validation_samples must give records, got {told(exc)}; return a list of SampleRecord",
        )
    if found is not None:
        return None, found
    if node.instance is None:
        return failed, generic_records()
    return failed or issue(
        "OP_INSTANCE_RUNTIME_CHECKS_SKIPPED",
        node.name,
        "an instance is tried out with records of its own alone, got none, so only its source was "
        "read; let validation_samples() return records that it takes before setup()",
    ), None
