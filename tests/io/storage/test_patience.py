"""What fails is tried again in time, not before it was told, and not for ever."""

import time

import pytest

from zephon.errors import PlanError, StorageError
from zephon.io.storage.hub_requests import asked_wait
from zephon.io.storage.patience import PassingFault, Patience, patiently

QUICK = Patience(attempts=3, seconds=20.0, first_wait=0.01, longest_wait=0.02)


def failing(times, wait=None):
    """Give an attempt that fails so often, and the moments at which it was made."""
    made = []

    def attempt():
        made.append(time.monotonic())
        if len(made) <= times:
            raise PassingFault("503", wait)
        return "found"

    return attempt, made


def test_a_fault_that_passes_is_not_seen():
    attempt, made = failing(2)
    assert patiently("s3://bucket/a", QUICK, attempt) == "found"
    assert len(made) == 3


def test_one_that_stays_is_told_with_attempts_and_the_last_answer():
    attempt, made = failing(9)
    with pytest.raises(StorageError, match="s3://bucket/a: no whole answer after 3 attempts in"):
        patiently("s3://bucket/a", QUICK, attempt)
    assert len(made) == 3


def test_nobody_asks_earlier_than_told_and_not_all_at_once():
    waits = []
    for _ in range(4):
        attempt, made = failing(1, wait=0.1)
        patiently("a", QUICK, attempt)
        waits.append(made[1] - made[0])
    assert min(waits) >= 0.1
    assert len(set(waits)) == 4


def test_who_is_told_to_wait_longer_than_there_is_time_does_not():
    attempt, made = failing(1, wait=3600.0)
    with pytest.raises(StorageError, match=r"after 1 attempt in .*503, which asks to wait 3600 s"):
        patiently("a", QUICK, attempt)
    assert len(made) == 1


def test_other_errors_are_none_of_its_business():
    with pytest.raises(ZeroDivisionError):
        patiently("a", QUICK, lambda: 1 // 0)


@pytest.mark.parametrize("name", ["seconds", "stall", "first_wait", "longest_wait", "attempts"])
def test_patience_is_above_nothing(name):
    with pytest.raises(PlanError, match=f"patience: {name} must be"):
        Patience(**{name: 0})


def test_an_answer_says_how_long_to_wait_in_any_of_three_ways():
    assert asked_wait({"retry-after": " 7 "}) == 7.0
    assert asked_wait({"ratelimit": '"api";r=0;t=55'}) == 55.0
    assert asked_wait({"ratelimit": '"api";r=3;t=55'}) is None
    soon = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 100))
    assert 95 < asked_wait({"retry-after": soon}) <= 100
    assert asked_wait({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert asked_wait({"retry-after": "soon"}) is None
    assert asked_wait({}) is None
