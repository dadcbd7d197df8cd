"""Loading every tokenizer of a plan now, so that a wrong name is found before a job starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from zephon.exec.launch import assembly_of, tokenizers_of
from zephon.options import RuntimeOptions
from zephon.planner.compiler import Plan, compile_plan
from zephon.planner.logical import Node
from zephon.planner.physical import AssembleRows, Segment
from zephon.planner.tree import source_first
from zephon.validation.report import Issue, ValidationReport, issue, told
from zephon.validation.validate import Planned, node_of

_SECRETS = (
    (re.compile(r"(?<=://)[^/@\s'\"]+@"), "***@"),
    (re.compile(r"\bhf_[A-Za-z0-9]+"), "hf_***"),
    (re.compile(r"(?<=[?&])([^=&\s'\"]+)=[^&\s'\"]+"), r"\1=***"),
    (re.compile(r"(?i)\bbearer\s+\S+"), "Bearer ***"),
)


def preflight_tokenizers(
    pipeline: Planned | Node, strict: bool = False, *, options: RuntimeOptions | None = None
) -> ValidationReport:
    """Load the tokenizer of each step that needs one, as a run does; loaded ones stay loaded.

    Args:
        pipeline: or the last node of its plan.
        strict: raise where one cannot be loaded.
        options: say which back end; None: those of the pipeline.

    Raises:
        ValidationError: ``strict``, and a tokenizer cannot be loaded; its ``report`` is this one.
    """
    chosen = options or getattr(pipeline, "_options", None) or RuntimeOptions()
    report = ValidationReport(_failures(compile_plan(node_of(pipeline)), chosen))
    if strict:
        report.raise_errors()
    return report


def _failures(plan: Plan, options: RuntimeOptions) -> Iterator[Issue]:
    failure = _failure(plan, options)
    if failure is None:
        return
    # One failure hides the others, so each step is tried alone.
    segments = [each for each in source_first(plan.physical) if isinstance(each, Segment)]
    found: dict[str, Exception] = {}
    for step in (step for segment in segments for step in segment.steps):
        below = Segment(steps=(step,), parallelism=1)
        alone = replace(plan, physical=AssembleRows(input=below, layout=assembly_of(plan).layout))
        failed = _failure(alone, options)
        if failed is not None:
            found.setdefault(f"tokenizer {_named(step)}", failed)
    for name, failed in (found or {"tokenizers of this plan": failure}).items():
        yield issue(
            "TOKENIZER_PREFLIGHT_FAILED",
            "tokenize",
            without_secrets(f"the {name} must load, got {told(failed)}"),
        )


def _failure(plan: Plan, options: RuntimeOptions) -> Exception | None:
    """Load all tokenizers of a plan; give what went wrong."""
    try:
        tokenizers_of(plan, options)
    except Exception as exc:  # of any class: a broken file fails anywhere in a library
        return exc
    return None


def _named(step: Any) -> str:
    """Name the tokenizer of a step."""
    if getattr(step, "tokenizer", None) is not None:
        return f"of type {type(step.tokenizer).__name__}"
    return repr(getattr(step, "tokenizer_id", None))


def without_secrets(text: str) -> str:
    """Blank out what opens a door: passwords in URLs, tokens of the hub, signed queries.

    >>> without_secrets("s3://me:pw@host/a?Signature=1x&v=2 hf_abc123")
    's3://***@host/a?Signature=***&v=*** hf_***'
    """
    for pattern, blank in _SECRETS:
        text = pattern.sub(blank, text)
    return text
