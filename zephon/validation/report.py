"""What checks found: issues, and a report that is a list of them."""

from __future__ import annotations

from dataclasses import dataclass

from zephon import errors
from zephon.errors import ValidationError
from zephon.validation.codes import Severity, severity_of

CODES_ARE_IN = "zephon/validation/codes.py"


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that a check found.

    op_name: the operator as ``add_op`` was told. doc_link: where the code is explained.

    >>> print(issue("OP_CROSS_CALL_STATE", "dedupe", "it remembers"))
    error OP_CROSS_CALL_STATE: 'dedupe': it remembers
    """

    severity: Severity
    code: str
    op_name: str
    message: str
    doc_link: str | None = None

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.op_name!r}: {self.message}"


def issue(code: str, op_name: str, message: str) -> Issue:
    """Make an issue of a code of the table."""
    return Issue(severity_of(code), code, op_name, message, CODES_ARE_IN)


class ValidationReport(list[Issue]):
    """All issues in the order in which they were found; ``str()`` of it is a text to read.

    >>> str(ValidationReport())
    'no issues'
    """

    @property
    def errors(self) -> list[Issue]:
        """Those for which a strict run does not start."""
        return [each for each in self if each.severity == "error"]

    @property
    def warnings(self) -> list[Issue]:
        """Those that stop nothing."""
        return [each for each in self if each.severity == "warning"]

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    def raise_errors(self) -> None:
        """Raise a ``ValidationError`` with this report if it holds an error."""
        if not self.ok:
            raise ValidationError(self)

    def __str__(self) -> str:
        if not self:
            return "no issues"
        counts = [
            f"{len(found)} {word}{'s' if len(found) > 1 else ''}"
            for word, found in (("error", self.errors), ("warning", self.warnings))
            if found
        ]
        return "\n".join([", ".join(counts), *(f"  {each}" for each in self)])


def told(exc: Exception) -> str:
    """Put an exception into one line, for a message."""
    return " ".join(errors.told(exc).split())
