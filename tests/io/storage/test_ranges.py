"""Ranges come as they lie in the file, with few requests and little more than what is wanted."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.errors import ShardError
from zephon.io.storage import ranges
from zephon.io.storage.ranges import LONGEST, read_ranges, requests_for

CONTENT = os.urandom(5000)
RANGES = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 400)).map(
        lambda each: (each[0], min(5000, each[0] + each[1]))
    ),
    max_size=12,
)


@given(RANGES)
def test_they_are_slices_whatever_their_order_and_overlap(wanted):
    asked = []

    def request(start, stop):
        asked.append((start, stop))
        return CONTENT[start:stop]

    found = read_ranges(wanted, len(CONTENT), "file", request)
    assert found == [CONTENT[start:stop] for start, stop in wanted]
    covered = set().union(*(range(start, stop) for start, stop in wanted))
    assert sum(stop - start for start, stop in asked) <= len(covered) * 1.01
    assert sorted(asked) == requests_for(wanted)


def test_near_neighbours_share_a_request_and_far_ones_do_not():
    near = [(0, 100_000), (100_500, 200_000)]
    assert requests_for(near) == [(0, 200_000)]
    assert requests_for([(0, 100), (5000, 5100)]) == [(0, 100), (5000, 5100)]


def test_a_long_range_is_read_in_parts_at_the_same_time():
    begun = threading.Barrier(3, timeout=30)

    def request(start, stop):
        begun.wait()
        return bytes(stop - start)

    (found,) = read_ranges([(7, 7 + 2 * LONGEST + 5)], 3 * LONGEST, "file", request)
    assert len(found) == 2 * LONGEST + 5


def test_what_does_not_lie_in_the_file_is_refused():
    for wrong in [(0, 11), (-1, 2), (5, 4)]:
        with pytest.raises(ShardError, match="a range to read must lie in its 10 bytes"):
            read_ranges([wrong], 10, "s3://bucket/file", lambda start, stop: b"")


def test_no_more_requests_than_that_at_a_time(monkeypatch):
    monkeypatch.setattr(ranges, "LONGEST", 1)
    under_way, most, lock = 0, 0, threading.Lock()

    def request(start, stop):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        with lock:
            under_way -= 1
        return b"x"

    assert read_ranges([(0, 100)], 100, "file", request) == [b"x" * 100]
    assert most <= ranges.AT_ONCE
