import threading
import time

import pytest

from zephon.io.group_cache import GroupCache


def test_the_least_recently_used_goes_first():
    cache = GroupCache(30)
    for key in "abc":
        cache.get(key, lambda: "x" * 10, len)
    cache.get("a", lambda: pytest.fail("held"), len)
    cache.get("d", lambda: "x" * 10, len)
    assert cache.get("a", lambda: "again", len) == "x" * 10
    assert cache.get("b", lambda: "again", len) == "again"


def test_it_never_holds_more_than_its_bytes():
    cache = GroupCache(25)
    for key in range(100):
        cache.get(key, lambda: "x" * 10, len)
        assert cache.counts().bytes <= 25
    assert cache.counts().groups == 2


def test_a_value_that_is_too_large_is_handed_out_and_not_kept():
    cache = GroupCache(5)
    assert cache.get("a", lambda: "long enough", len) == "long enough"
    assert cache.counts().groups == 0
    assert GroupCache(0).get("a", lambda: "x", len) == "x"


def test_many_threads_load_a_key_once():
    cache = GroupCache(1000)
    loads = []

    def load():
        loads.append(1)
        time.sleep(0.05)
        return "value"

    results = []
    threads = [
        threading.Thread(target=lambda: results.append(cache.get("k", load, len))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert results == ["value"] * 8
    assert len(loads) == 1
    counts = cache.counts()
    assert (counts.hits, counts.misses) == (7, 1)


def test_an_error_reaches_its_caller_and_the_next_one_tries_again():
    cache = GroupCache(1000)
    entered, go = threading.Event(), threading.Event()

    def fails():
        entered.set()
        go.wait(5)
        raise OSError("broken")

    errors, values = [], []

    def first():
        try:
            cache.get("k", fails, len)
        except OSError as exc:
            errors.append(str(exc))

    one = threading.Thread(target=first)
    one.start()
    assert entered.wait(5)
    two = threading.Thread(target=lambda: values.append(cache.get("k", lambda: "fine", len)))
    two.start()
    go.set()
    one.join(5)
    two.join(5)
    assert (errors, values) == (["broken"], ["fine"])


def test_different_keys_do_not_wait_for_each_other():
    cache = GroupCache(1000)
    go = threading.Event()
    slow = threading.Thread(
        target=lambda: cache.get("slow", lambda: "x" if go.wait(5) else "", len)
    )
    slow.start()
    assert cache.get("fast", lambda: "y", len) == "y"
    go.set()
    slow.join(5)


def test_clear_lets_go_and_a_negative_bound_is_refused():
    cache = GroupCache(1000)
    cache.get("k", lambda: "x", len)
    cache.clear()
    assert cache.counts().bytes == cache.counts().groups == 0
    with pytest.raises(ValueError, match="at least 0, got -1"):
        GroupCache(-1)
