"""An iterator on a thread of its own: order, bound, errors, and both ends closing."""

import gc
import itertools
import threading
import time
import weakref

import pytest

from zephon.exec.ahead import THREAD_NAME, Ahead

GUARD = 30  # seconds after which a test that hangs fails


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert [t for t in threading.enumerate() if t.name == THREAD_NAME] == []


def until(condition):
    """Wait for something that another thread does."""
    deadline = time.monotonic() + GUARD
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.001)


@pytest.mark.parametrize("depth", [1, 2, 7, 1000])
@pytest.mark.parametrize("count", [0, 1, 6, 300])
def test_items_come_in_order(depth, count):
    assert list(Ahead(iter(range(count)), depth)) == list(range(count))


def test_nothing_is_made_before_the_first_item_is_asked_for():
    made = []
    ahead = Ahead((made.append(i) for i in range(5)), 3)
    assert [t for t in threading.enumerate() if t.name == THREAD_NAME] == []
    assert made == []
    ahead.close()
    ahead.join()


@pytest.mark.parametrize("depth", [1, 3])
def test_it_runs_so_many_items_ahead_and_no_further(depth):
    made = []

    def items():
        for number in itertools.count():
            made.append(number)
            yield number

    ahead = Ahead(items(), depth)
    for taken in range(1, 5):
        assert next(ahead) == taken - 1
        # one more is made, and waits for room
        until(lambda taken=taken: len(made) == taken + depth + 1)
        time.sleep(0.02)
        assert len(made) == taken + depth + 1
    ahead.close()
    ahead.join()


def test_a_deep_queue_is_filled_again_once_a_quarter_of_it_is_gone():
    made = []

    def items():
        for number in itertools.count():
            made.append(number)
            yield number

    ahead = Ahead(items(), 8)
    assert next(ahead) == 0
    until(lambda: len(made) >= 9)
    for taken in range(1, 50):
        assert next(ahead) == taken
        until(lambda taken=taken: len(made) >= taken + 6 + 2)
        assert len(made) <= taken + 8 + 2
    ahead.close()
    ahead.join()


@pytest.mark.parametrize("before", [0, 1, 5])
@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt, SystemExit])
def test_an_error_comes_after_the_items_before_it(before, error):
    def items():
        yield from range(before)
        raise error("here")

    ahead = Ahead(items(), 2)
    found = []
    with pytest.raises(error, match="here"):
        for item in ahead:
            found.append(item)
    assert found == list(range(before))
    with pytest.raises(StopIteration):
        next(ahead)
    ahead.join()


def test_the_end_comes_again_and_again():
    ahead = Ahead(iter([1]), 1)
    assert list(ahead) == [1]
    assert list(ahead) == []
    assert next(ahead, "end") == "end"


def test_close_frees_a_thread_that_waits_for_room():
    ahead = Ahead(itertools.count(), 2)
    next(ahead)
    ahead.close()
    ahead.join()
    assert list(ahead) == []


def test_close_frees_a_consumer_that_waits_for_an_item():
    release = threading.Event()

    def items():
        yield 1
        release.wait(GUARD)

    ahead = Ahead(items(), 1)
    assert next(ahead) == 1
    found = []
    consumer = threading.Thread(target=lambda: found.append(next(ahead, "end")))
    consumer.start()
    ahead.close()
    release.set()
    consumer.join(GUARD)
    assert found == ["end"]
    ahead.join()


def test_what_was_made_ahead_is_let_go_of_at_close():
    class Item:
        pass

    refs = []

    def items():
        for _ in range(100):
            item = Item()
            refs.append(weakref.ref(item))
            yield item

    ahead = Ahead(items(), 5)
    next(ahead)
    until(lambda: len(refs) >= 6)
    ahead.close()
    ahead.join()
    gc.collect()
    until(lambda: [ref for ref in refs[:5] if ref() is not None] == [])


def test_closing_twice_or_before_the_beginning_is_fine():
    ahead = Ahead(iter([1, 2]), 1)
    ahead.close()
    ahead.close()
    ahead.join()
    assert list(ahead) == []


def test_close_from_another_thread_while_items_flow():
    ahead = Ahead(itertools.count(), 3)
    threading.Timer(0.05, ahead.close).start()
    found = list(ahead)
    assert found == list(range(len(found)))
    ahead.join()
