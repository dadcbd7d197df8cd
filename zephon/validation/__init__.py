"""Checks of what the user wrote, before a run begins: operators of ``add_op``, and tokenizers.

Read ``codes`` first, then ``validate``: an operator is a ``subject``, gets ``samples``, and meets
three kinds of checks. ``source_checks`` read it, with ``source_reading``; ``accumulation`` forms
groups, with a ``trial`` of its accumulator; ``behaviour`` calls it, with ``identities`` and
``comparing``. ``memory`` keeps what was found; ``preflight`` loads tokenizers. Nothing here changes
what is delivered.
"""

from zephon.errors import ValidationError
from zephon.validation.codes import ERRORS, WARNINGS
from zephon.validation.preflight import preflight_tokenizers
from zephon.validation.report import Issue, ValidationReport
from zephon.validation.validate import run_auto_validation, validate_pipeline

__all__ = [
    "ERRORS",
    "WARNINGS",
    "Issue",
    "ValidationError",
    "ValidationReport",
    "preflight_tokenizers",
    "run_auto_validation",
    "validate_pipeline",
]
