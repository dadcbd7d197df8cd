"""Errors and warnings of workers: what of them arrives in the process that asked."""

import pickle
import threading
import warnings

import pytest

from zephon.errors import DataError, ExecutionError, ZephonError
from zephon.exec.runners.crossing import SentError, SentWarning, filters_to_send, take_warnings


def raised(error, cause=None):
    """Raise an error and send it over."""
    try:
        raise error from cause
    except BaseException as exc:
        return pickle.loads(pickle.dumps(SentError.of(exc))).error()


class TwoPartsError(ValueError):
    """Cannot be made again of its message alone."""

    def __init__(self, what, why):
        super().__init__(f"{what} because {why}")


class LockedError(Exception):
    def __init__(self):
        super().__init__("locked")
        self.lock = threading.Lock()


class SilentError(Exception):
    def __str__(self):
        raise ValueError("no message")


@pytest.mark.parametrize(
    "error", [DataError("row 3: bad"), KeyError("k"), SystemExit(4), OSError(2, "gone", "file")]
)
def test_an_error_arrives_with_its_class_and_message(error):
    found = raised(error)
    assert (type(found), str(found)) == (type(error), str(error))
    assert found.args == error.args


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TwoPartsError("this", "that"), "TwoPartsError: this because that"),
        (LockedError(), "LockedError: locked"),
        (SilentError(), "SilentError: its message cannot be made, ValueError"),
    ],
)
def test_one_that_no_pickle_carries_says_the_same(error, said):
    found = raised(error)
    assert (type(found), str(found)) == (ExecutionError, said)


def test_one_that_cannot_be_made_here_says_the_same():
    sent = SentError(b"no pickle", "GoneError: it", (), None)
    assert (type(sent.error()), str(sent.error())) == (ExecutionError, "GoneError: it")


def test_an_error_of_a_class_that_no_module_holds_arrives_as_that_class():
    class LocalError(ZephonError):
        pass

    assert type(raised(LocalError("here"))) is LocalError


def test_causes_come_too_and_the_innermost_says_where_it_was():
    try:
        raise ZeroDivisionError("inside")
    except ZeroDivisionError as exc:
        inner = exc
    found = raised(ExecutionError("outside"), inner)
    cause = found.__cause__
    assert (type(cause), str(cause)) == (ZeroDivisionError, "inside")
    assert not hasattr(found, "__notes__")
    (note,) = cause.__notes__
    assert note.startswith("In a worker process:\n")
    assert "test_causes_come_too" in note


def test_a_ring_of_causes_ends():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    found, depth = SentError.of(one).error(), 0
    while found is not None:
        found, depth = found.__cause__, depth + 1
    assert depth == 9


def test_a_warning_is_issued_where_it_arrives():
    warning = SentWarning("careful", FutureWarning, "user.py", 12)
    with pytest.warns(FutureWarning, match="careful") as found:
        pickle.loads(pickle.dumps(warning)).issue()
    assert (found[0].filename, found[0].lineno) == ("user.py", 12)


def warned(prepare, *texts):
    """Warn under the filters that ``prepare`` makes; give what is taken."""
    taken = []
    with warnings.catch_warnings():
        prepare()
        filters = pickle.loads(pickle.dumps(filters_to_send()))
    with warnings.catch_warnings():
        take_warnings(filters, taken.append)
        for text in texts:
            warnings.warn(text, DeprecationWarning, stacklevel=1)
    return [warning.text for warning in taken]


def test_each_different_warning_is_taken_once():
    assert warned(warnings.resetwarnings, "a", "b", "a", "b") == ["a", "b"]


def test_what_is_ignored_there_is_not_sent():
    def prepare():
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", "a.*", DeprecationWarning)

    assert warned(prepare, "ab", "b") == ["b"]


def test_what_is_an_error_there_is_raised_in_the_worker():
    def prepare():
        warnings.resetwarnings()
        warnings.filterwarnings("default", "fine")
        warnings.filterwarnings("error", category=DeprecationWarning)
        warnings.filterwarnings("once", "fine")

    assert warned(prepare, "fine") == ["fine"]
    with pytest.raises(DeprecationWarning, match="bad"):
        warned(prepare, "fine", "bad")
