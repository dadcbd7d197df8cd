"""A report is a list that can be read, raised and sent."""

import pickle

import pytest

from zephon.errors import ValidationError, ZephonError
from zephon.validation.report import ValidationReport, issue, told

WRONG = issue("OP_NONDETERMINISTIC", "noise", "it differs; seed it")
DOUBT = issue("OP_MUTATES_SELF", "noise", "it changes; do not")


def test_a_report_sorts_its_issues():
    report = ValidationReport([DOUBT, WRONG])
    assert (report.errors, report.warnings, report.ok) == ([WRONG], [DOUBT], False)
    assert report == [DOUBT, WRONG]
    assert ValidationReport([DOUBT]).ok


def test_a_report_is_a_text():
    assert str(ValidationReport([WRONG, WRONG, DOUBT])) == (
        "2 errors, 1 warning\n"
        "  error OP_NONDETERMINISTIC: 'noise': it differs; seed it\n"
        "  error OP_NONDETERMINISTIC: 'noise': it differs; seed it\n"
        "  warning OP_MUTATES_SELF: 'noise': it changes; do not"
    )


def test_only_errors_are_raised():
    ValidationReport([DOUBT]).raise_errors()
    report = ValidationReport([DOUBT, WRONG, WRONG])
    with pytest.raises(ValidationError) as caught:
        report.raise_errors()
    assert str(caught.value) == f"{WRONG}; and 1 more, see report"
    assert caught.value.report is report
    assert isinstance(caught.value, ZephonError)
    assert isinstance(caught.value, ValueError)


def test_the_error_of_one_issue_is_the_issue():
    assert str(ValidationError(ValidationReport([WRONG]))) == str(WRONG)


def test_a_raised_report_travels_to_another_process():
    error = pickle.loads(pickle.dumps(ValidationError(ValidationReport([WRONG]))))
    assert error.report == [WRONG]
    assert str(error) == str(WRONG)


def test_an_issue_says_where_its_code_is_explained():
    assert WRONG.severity == "error"
    assert WRONG.doc_link == "zephon/validation/codes.py"


def test_an_exception_is_told_on_one_line():
    assert told(ValueError("two\n  lines")) == "ValueError: two lines"
