"""Shards come before their turn: in order, not too many, and they stay until they are read."""

import itertools
import time
from pathlib import Path

import pytest

from tests.io.shard_cache.places import in_thread, lying, opened
from zephon.errors import ShardError
from zephon.io.shard_cache import Prefetcher, Wanted


def wait_until(happens):
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.005)


def wanted(place, *numbers):
    files = place.files()
    return [Wanted("prose", place, files[number]) for number in numbers]


def test_it_follows_the_order_and_stays_so_far_ahead(tmp_path, source):
    order = wanted(source, 3, 1, 4, 1, 5, 0, 2, 6)
    with opened(tmp_path / "cache") as cache:
        with Prefetcher(cache, order, buffer_size=3, parallelism=1) as ahead:
            wait_until(lambda: len(source.fetched) == 3)
            time.sleep(0.1)
            assert source.fetched == ["003.bin", "001.bin", "004.bin"]
            ahead.reached(0)
            ahead.reached(1)  # position 3 and 4: one of them is here
            wait_until(lambda: len(source.fetched) == 4)
            time.sleep(0.1)
            assert source.fetched[3:] == ["005.bin"]
            ahead.reached(7)  # those between are behind it, and nobody reads them
            wait_until(lambda: len(source.fetched) == 5)
        assert source.fetched[4:] == ["006.bin"]
        wait_until(lambda: not cache._holds._shards)


def test_it_asks_an_endless_order_for_no_more_than_it_needs(tmp_path, source):
    asked = []

    def order():
        for number in itertools.count():
            asked.append(number)
            yield wanted(source, number % 8)[0]

    with opened(tmp_path / "cache") as cache:
        with Prefetcher(cache, order(), buffer_size=4, parallelism=3) as ahead:
            ahead.reached(10)
            wait_until(lambda: len(asked) == 15)
            time.sleep(0.1)
            assert len(asked) == 15
        assert ahead.failures == 0


def test_what_comes_ahead_is_there_until_its_turn_in_spite_of_others(tmp_path, source):
    """The limit is two shards: what another reader brings leaves, and not what is ahead."""
    files = source.files()
    with opened(tmp_path / "cache", limit_bytes=2 * 100_010) as cache:
        order = wanted(source, 0, 1, 2, 3)
        with Prefetcher(cache, order, buffer_size=4, parallelism=2) as ahead:
            wait_until(lambda: len(source.fetched) == 2)
            for file in files[4:]:
                cache.hold("prose", source, file).close()
            assert {"000.bin", "001.bin"} <= set(lying(tmp_path / "cache")[0])
            for position in range(4):
                ahead.reached(position)
                with cache.hold("prose", source, files[position]) as held:
                    right = (source.folder / files[position].name).read_bytes()
                    assert Path(held.path).read_bytes() == right
        assert source.fetched.count("000.bin") == source.fetched.count("001.bin") == 1


def test_an_error_waits_for_its_turn(tmp_path, source):
    source.faults = ["gone", None, "gone"]
    files = source.files()
    order = wanted(source, 0, 1)
    with (
        opened(tmp_path / "cache") as cache,
        Prefetcher(cache, order, buffer_size=2, parallelism=1) as ahead,
    ):
        wait_until(lambda: len(source.fetched) == 2)
        wait_until(lambda: ahead.failures == 1)
        ahead.reached(0)
        with pytest.raises(ShardError, match="another version"):
            cache.hold("prose", source, files[0])
        ahead.reached(1)
        cache.hold("prose", source, files[1]).close()


def test_the_end_begins_with_nothing_and_lets_all_go(tmp_path, source):
    source.gate.clear()
    files = source.files()
    with opened(tmp_path / "cache") as cache:
        ahead = Prefetcher(cache, wanted(source, *range(8)), buffer_size=8, parallelism=2)
        wait_until(lambda: len(source.fetched) == 2)
        end = in_thread(ahead.close)
        end()
        source.gate.set()
        wait_until(lambda: not cache._holds._shards)
        assert len(source.fetched) == 2
        cache.hold("prose", source, files[0]).close()
        ahead.close()


def test_a_reader_that_needs_more_than_the_limit_is_never_held_up(tmp_path, source):
    files = source.files()
    with opened(tmp_path / "cache", limit_bytes=100_010) as cache:
        order = wanted(source, *range(8))
        with Prefetcher(cache, order, buffer_size=8, parallelism=4) as ahead:
            for position in (1, 0, 3, 2, 7, 5):  # in another order than told, some not at all
                ahead.reached(position)
                with cache.hold("prose", source, files[position]) as held:
                    assert Path(held.path).stat().st_size == files[position].size
