"""Whatever one of several things raises when it is closed, the others are closed too."""

import pytest

from zephon.exec.closing import close_all


def failing(problem):
    def close():
        raise ValueError(problem)

    return close


def test_all_are_closed_and_the_first_failure_is_raised():
    closed = []
    closers = [failing("one"), lambda: closed.append(2), failing("three"), lambda: closed.append(4)]
    with pytest.raises(ValueError, match="one"):
        close_all(closers)
    assert closed == [2, 4]


def test_an_error_that_is_under_way_stays_and_hears_of_the_failure():
    with pytest.raises(KeyError) as caught:
        try:
            raise KeyError("first")
        finally:
            close_all([failing("later")])
    assert caught.value.__notes__ == ["while closing after this: later"]
