import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from zephon.io.group_cache import CacheCounts, GroupCache


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


def test_a_value_larger_than_the_limit_is_kept_alone_until_the_next_one():
    cache = GroupCache(5)
    cache.get("small", lambda: "x", len)
    cache.get("huge", lambda: "x" * 10, len)
    assert (cache.counts().groups, cache.counts().bytes) == (1, 10)
    for _ in range(3):
        assert cache.get("huge", lambda: pytest.fail("held"), len) == "x" * 10
    cache.get("next", lambda: "y", len)
    assert (cache.counts().groups, cache.counts().bytes) == (1, 1)
    cache.get("huge", lambda: "x" * 10, len)
    cache.get("huger", lambda: "x" * 20, len)
    assert (cache.counts().groups, cache.counts().bytes) == (1, 20)


def test_without_any_room_the_newest_is_held():
    cache = GroupCache(0)
    for key in "aabb":
        assert cache.get(key, lambda key=key: key, len) == key
    assert cache.counts() == CacheCounts(hits=2, misses=2, bytes=1, groups=1)


def test_threads_in_one_huge_group_load_it_once():
    cache = GroupCache(5)
    cache.get("small", lambda: "x", len)
    loads, bytes_seen = [], []

    def load():
        loads.append(1)
        time.sleep(0.02)
        return "x" * 10

    def work():
        for _ in range(20):
            assert len(cache.get("huge", load, len)) == 10
            bytes_seen.append(cache.counts().bytes)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work) for _ in range(8)]:
            done.result(10)
    assert len(loads) == 1
    assert set(bytes_seen) == {10}


def test_threads_never_hold_more_than_the_limit_or_one_group():
    cache = GroupCache(25)
    sizes = {key: 40 if key % 5 == 0 else 10 for key in range(20)}
    wrong = []

    def work(step):
        for turn in range(300):
            key = turn * step % len(sizes)
            if len(cache.get(key, lambda key=key: "x" * sizes[key], len)) != sizes[key]:
                wrong.append(key)
            now = cache.counts()
            if now.bytes > 25 and (now.groups, now.bytes) != (1, 40):
                wrong.append(now)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, step) for step in (1, 3, 7, 9)]:
            done.result(10)
    assert not wrong


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
