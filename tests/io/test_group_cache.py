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


class Shelf:
    """What stands below a cache: keeps everything, and says what was done, in order."""

    def __init__(self):
        self.kept = {}
        self.said = []
        self.storing = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def load(self, key):
        self.said.append(("load", key))
        return self.kept.get(key)

    def store(self, key, value):
        self.said.append(("store", key))
        self.storing.set()
        self.go.wait(5)
        self.kept[key] = value


def test_what_leaves_goes_down_and_comes_back():
    shelf = Shelf()
    cache = GroupCache(20, shelf)
    for key in "abc":
        cache.get(key, lambda key=key: key * 10, len)
    assert shelf.kept == {"a": "a" * 10}
    assert cache.get("a", lambda: pytest.fail("it is on the shelf"), len) == "a" * 10
    assert set(shelf.kept) == {"a", "b"}
    assert shelf.said == [
        ("load", "a"), ("load", "b"), ("load", "c"), ("store", "a"), ("load", "a"), ("store", "b"),
    ]  # fmt: skip
    assert cache.counts() == CacheCounts(hits=0, misses=3, bytes=20, groups=2, returned=1)


def test_what_is_lost_below_is_loaded_again():
    shelf = Shelf()
    cache = GroupCache(10, shelf)
    for key in "ab":
        cache.get(key, lambda key=key: key * 10, len)
    shelf.kept.clear()
    assert cache.get("a", lambda: "again", len) == "again"
    assert cache.counts().misses == 3


def test_a_value_on_its_way_down_is_still_given():
    shelf = Shelf()
    cache = GroupCache(10, shelf)
    cache.get("a", lambda: "a" * 10, len)
    shelf.go.clear()
    pusher = threading.Thread(target=lambda: cache.get("b", lambda: "b" * 10, len))
    pusher.start()
    assert shelf.storing.wait(5)
    assert cache.held(["a", "b", "c"]) == [True, True, False]
    assert cache.get("a", lambda: pytest.fail("it is leaving, and still there"), len) == "a" * 10
    assert cache.get("b", lambda: pytest.fail("it is there"), len) == "b" * 10
    assert cache.counts().bytes == 10
    shelf.go.set()
    pusher.join(5)
    assert cache.held(["a", "b"]) == [False, True]
    assert shelf.said.count(("load", "a")) == 1


def test_nothing_is_left_on_its_way_when_the_shelf_breaks():
    shelf = Shelf()
    cache = GroupCache(20, shelf)
    for key in "ab":
        cache.get(key, lambda key=key: key * 10, len)

    def broken(key, value):
        raise KeyboardInterrupt

    shelf.store = broken
    with pytest.raises(KeyboardInterrupt):
        cache.get("c", lambda: "c" * 30, len)
    assert cache.held(["a", "b", "c"]) == [False, False, True]
    shelf.store = lambda key, value: None
    assert cache.get("a", lambda: "again", len) == "again"


class Interrupting:
    """A key like any other, whose hash is interrupted once: Ctrl-C strikes wherever Python runs."""

    def __init__(self, after):
        self.left = after

    def __hash__(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return 5

    def __eq__(self, other):
        return isinstance(other, Interrupting)


def answer_of_another_thread(cache, key):
    """Get a key as another thread would; None if it waits for ever."""
    answers = []
    other = threading.Thread(
        target=lambda: answers.append(cache.get(key, lambda: "again", len)), daemon=True
    )
    other.start()
    other.join(5)
    return answers[0] if answers else None


def looks_at_the_key():
    """Count how often the cache looks at a key that it has to load."""
    key = Interrupting(0)
    GroupCache(1000).get(key, lambda: "first", len)
    return -key.left


@pytest.mark.parametrize("after", range(1, 1 + looks_at_the_key()))
def test_an_interrupt_anywhere_leaves_nobody_waiting(after):
    cache = GroupCache(1000)
    with pytest.raises(KeyboardInterrupt):
        cache.get(Interrupting(after), lambda: "first", len)
    assert answer_of_another_thread(cache, Interrupting(-1)) in ("first", "again")
    assert cache.get(Interrupting(-1), lambda: pytest.fail("held"), len) in ("first", "again")


@pytest.mark.parametrize("after", range(1, 6))
def test_an_interrupt_beside_an_error_leaves_nobody_waiting(after):
    def fails():
        raise OSError("broken")

    cache = GroupCache(1000)
    with pytest.raises((KeyboardInterrupt, OSError)):
        cache.get(Interrupting(after), fails, len)
    assert answer_of_another_thread(cache, Interrupting(-1)) == "again"


def test_an_interrupt_before_the_value_is_looked_for_leaves_nobody_waiting():
    class Interrupted(GroupCache):
        def _load(self, *args):
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
            return super()._load(*args)

    cache = Interrupted(1000)
    with pytest.raises(KeyboardInterrupt):
        cache.get("k", lambda: "first", len)
    assert answer_of_another_thread(cache, "k") == "again"


def test_it_says_what_is_in_memory_without_using_it():
    cache = GroupCache(20)
    for key in "ab":
        cache.get(key, lambda: "x" * 10, len)
    assert cache.held(["b", "a", "z"]) == [True, True, False]
    cache.get("c", lambda: "x" * 10, len)
    assert cache.held(["a", "b", "c"]) == [False, True, True]


def test_threads_with_a_shelf_load_each_key_at_most_once():
    shelf = Shelf()
    cache = GroupCache(25, shelf)
    loads = []

    def load(key):
        loads.append(key)
        return str(key) * 10

    def work(step):
        for turn in range(200):
            key = turn * step % 7
            assert cache.get(key, lambda key=key: load(key), len) == str(key) * 10

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, step) for step in (1, 3, 5, 9)]:
            done.result(20)
    assert sorted(loads) == list(range(7))
    assert cache.counts().returned > 7
