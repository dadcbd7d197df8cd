"""Shared memory that is written again once nobody looks at it, and not before."""

import gc
import os

import numpy as np
import pytest

from zephon.exec.hosting.segments import MOST_KEPT, Mapped, Segments

KIB = 1 << 10


class Both:
    """A writer and a reader in one process."""

    def __init__(self, spare=1 << 20):
        self.writer, self.reader = Segments(spare), Mapped()
        self.known = set()

    def crossed(self, value, size=1000):
        numbers = np.full(size, value, np.int64)
        number, descriptor = self.writer.write([numbers[:7], b"", numbers[7:]], numbers.nbytes)
        assert (descriptor is None) == (number in self.known)
        self.known.add(number)
        descriptor = None if descriptor is None else os.dup(descriptor)
        return number, np.frombuffer(self.reader.body(number, numbers.nbytes, descriptor), np.int64)

    def release(self):
        for number, again in self.reader.released():
            for gone in self.writer.free(number, again=again):
                self.reader.drop(gone)
                self.known.discard(gone)


@pytest.fixture
def both():
    before = len(os.listdir("/proc/self/fd"))
    made = Both()
    yield made
    made.release()
    left = [*made.writer._files]
    for number in left:
        os.close(made.writer._files[number])
    del made.reader
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_body_is_what_was_written_and_the_readers_to_change(both):
    number, found = both.crossed(3)
    assert (found == 3).all()
    found[:] = 4
    assert (both.reader._maps[number][:8]) == (4).to_bytes(8, "little")


def test_a_segment_is_written_again_once_no_array_refers_to_it(both):
    first, found = both.crossed(1)
    view = found[3:9].reshape(2, 3)
    del found
    both.release()
    second, other = both.crossed(2)
    assert second != first
    assert (view == 1).all()
    del view
    both.release()
    assert both.crossed(5)[0] == first
    assert (other == 2).all()
    del other


def test_a_larger_body_gets_a_segment_of_its_own(both):
    first, found = both.crossed(1)
    del found
    both.release()
    second, large = both.crossed(2, 100_000)
    assert second != first
    assert (large == 2).all()
    third, _ = both.crossed(3)
    assert third == first
    del large


def test_what_is_kept_beyond_some_bodies_is_copied_out(both):
    kept = []
    for value in range(MOST_KEPT + 20):
        kept.append(both.crossed(value)[1])
        both.release()
    assert len(both.known) <= MOST_KEPT + 2
    assert all((found == value).all() for value, found in enumerate(kept))
    kept.clear()


def test_memory_that_was_kept_is_given_back(both):
    kept = [both.crossed(value)[1] for value in range(64)]
    assert len(both.writer._files) == 64
    kept.clear()
    both.release()
    assert sum(both.writer._sizes.values()) <= 1 << 20
    assert len(both.reader._maps) == len(both.writer._files) <= 16


def test_what_a_fork_may_look_at_is_never_written_again(both):
    number, found = both.crossed(1)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    del found
    both.release()
    assert number not in both.known
    assert both.crossed(2)[0] != number
