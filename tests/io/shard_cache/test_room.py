"""Who leaves: never what is held, first what was held longest ago, and no more than needed."""

import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_tests
from hypothesis import strategies as st

from tests.io.shard_cache.places import (
    FolderPlace,
    in_thread,
    lying,
    make_files,
    opened,
    settings,
)
from zephon.errors import InsufficientCacheSpaceError
from zephon.io.shard_cache import room as room_module
from zephon.io.shard_cache.counting import Kept, count, leaving
from zephon.io.shard_cache.names import part_name
from zephon.io.shard_cache.owners import this_process
from zephon.io.shard_cache.room import Room
from zephon.io.shard_cache.settings import SPACE_VARIABLE, CacheSettings

SHARDS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=8)


@given(SHARDS, st.sets(st.integers(0, 7)), st.integers(-3, 60))
def test_leaving_is_what_a_slow_search_finds(drawn, held, excess):
    shards = [
        Kept(used, size, bytes([number]), str(number)) for number, (used, size) in enumerate(drawn)
    ]
    keys = {bytes([number]) for number in held}
    chosen = leaving(reversed(shards), keys, excess)
    free = sorted(shard for shard in shards if shard.key not in keys)
    enough = [n for n in range(len(free) + 1) if sum(s.bytes for s in free[:n]) >= excess]
    assert chosen == free[: min(enough, default=len(free))]


@given(
    st.integers(1, 1 << 40),
    st.integers(0, 1 << 30),
    st.integers(0, 1 << 30),
)
def test_the_slack_has_the_bounds_that_were_given_and_leaves_most_of_the_limit(limit, low, high):
    told = CacheSettings(
        Path("/c"), limit_bytes=limit, min_slack_bytes=low, max_slack_bytes=high
    ).slack
    assert told <= min(high, limit // 4)
    assert told >= min(low, high, limit // 4)
    assert CacheSettings(Path("/c")).slack == 0


def test_a_full_disk_is_an_error_that_says_need_and_have(tmp_path, source, monkeypatch):
    file = source.files()[0]
    told = os.statvfs_result((4096, 4096, 1000, 24, 24, 0, 0, 0, 0, 255))
    with opened(tmp_path / "cache") as cache:
        cache.hold("prose", source, source.files()[1]).close()
        monkeypatch.setattr(os, "statvfs", lambda path: told)
        said = "'000.bin' of .* needs 100,000 bytes, and the disk has 98,304 free"
        with cache.hold("prose", source, source.files()[1]):
            began = time.monotonic()
            with pytest.raises(InsufficientCacheSpaceError, match=said):
                cache.hold("prose", source, file)
            with pytest.raises(InsufficientCacheSpaceError, match="dataset needs 700,027 bytes"):
                cache.check_planned("prose", source, source.files())
            assert time.monotonic() - began < 10
        with pytest.warns(RuntimeWarning, match=r"98,305 stay free, less than 5 %"):
            cache.hold("prose", source, file).close()  # what nobody holds has left
        monkeypatch.setenv(SPACE_VARIABLE, "1")
        cache.hold("prose", source, source.files()[2]).close()
        cache.check_planned("prose", source, source.files())
    assert lying(tmp_path / "cache") == (["000.bin", "002.bin"], [])


def test_a_plan_that_fits_says_nothing(tmp_path, source):
    with opened(tmp_path / "cache", limit_bytes=200_000) as cache:
        cache.check_planned("prose", source, source.files())


def test_two_threads_hold_a_shard_that_is_just_being_removed(tmp_path, source, monkeypatch):
    """Whoever removes it has looked before either of them held it."""
    files = source.files()
    with opened(tmp_path / "cache", limit_bytes=2 * 100_010) as cache:
        for file in files[:2]:
            cache.hold("prose", source, file).close()
        removing, go_on = threading.Event(), threading.Event()
        remove_shard = room_module.remove_shard

        def slow(shard):
            removing.set()
            assert go_on.wait(60)
            return remove_shard(shard)

        def hold():
            with cache.hold("prose", source, files[0]) as held:
                seen.append(held.path)
                assert both.wait(60) >= 0
                return Path(held.path).read_bytes()

        seen = []
        both = threading.Barrier(2)
        monkeypatch.setattr(room_module, "remove_shard", slow)
        third = in_thread(lambda: cache.hold("prose", source, files[2]).close())
        assert removing.wait(60)
        ends = [in_thread(hold) for _ in range(2)]
        time.sleep(0.2)
        assert seen == []  # they let it go first
        go_on.set()
        third()
        right = (source.folder / files[0].name).read_bytes()
        assert [end() for end in ends] == [right, right]


def test_a_word_of_a_killed_process_is_not_waited_for(tmp_path, source, monkeypatch):
    monkeypatch.setattr(room_module, "_MOST_WAIT_SECONDS", 0.3)
    files = source.files()
    with opened(tmp_path / "cache", limit_bytes=2 * 100_010) as cache:
        with cache.hold("prose", source, files[0]) as held:
            key = held.shard.names.key.hex()
        word = tmp_path / "cache" / ".going" / key
        word.touch()
        os.utime(word, (time.time() - 60,) * 2)
        began = time.monotonic()
        cache.hold("prose", source, files[0]).close()
        assert time.monotonic() - began < 1
        assert not word.exists()
        word.touch()  # right now: it is waited for, not for ever
        cache.hold("prose", source, files[0]).close()
        os.utime(word, (time.time() - 60,) * 2)
        for file in files[1:4]:
            cache.hold("prose", source, file).close()
        assert not word.exists()
    assert len(lying(tmp_path / "cache")[0]) == 2


def test_what_a_dead_process_began_goes_and_a_living_one_s_counts(tmp_path, source):
    with (
        opened(tmp_path / "cache") as cache,
        cache.hold("prose", source, source.files()[0]) as held,
    ):
        folder = Path(held.path).parent
        owner = next((tmp_path / "cache" / ".users").iterdir()).name.removesuffix(".user")
        dead = owner.split(".")
        dead[3] = f"{2**22 + 1:x}"
        key = "0" * 32
        (folder / f"{key}.700.{owner}.part").touch()
        (folder / f"{key}.900.{'.'.join(dead)}.part").touch()
        (folder / f"{key}.told").touch()
        os.utime(folder / f"{key}.told", (1, 1))
        (folder / "notes.txt").write_text("somebody else's")
        counted = count(tmp_path / "cache")
        assert (counted.coming, counted.bytes) == (700, 700 + source.files()[0].size)
        names = {path.name for path in folder.iterdir()}
        assert f"{key}.700.{owner}.part" in names
        assert "notes.txt" in names
        assert not {f"{key}.900.{'.'.join(dead)}.part", f"{key}.told"} & names


def test_counting_is_not_done_for_each_of_many_small_shards(tmp_path, source, monkeypatch):
    calls = []
    monkeypatch.setattr(room_module, "count", lambda root: calls.append(root) or count(root))
    for number, more in enumerate(({"limit_bytes": 1 << 30}, {"max_slack_bytes": 64 << 20})):
        given = {"limit_bytes": 10_000_000, "min_slack_bytes": 5_000_000, **more}
        with opened(tmp_path / f"cache{number}", **given) as cache:
            for file in source.files():
                cache.hold("prose", source, file).close()
    assert len(calls) == 2  # each once


def test_other_processes_shards_count(tmp_path, source):
    """Two caches of one root, as two processes have them: each sees what the other brought."""
    files = source.files()
    told = settings(tmp_path / "cache", limit_bytes=3 * 100_010)
    with opened(told.root, limit_bytes=told.limit_bytes) as cache, ExitStack() as stack:
        held = stack.enter_context(cache.hold("prose", source, files[0]))
        other = Room(told)
        part = part_name(held.shard.names, 3 * 100_010, this_process())
        (held.shard.folder / part).touch()  # as the other one writes it
        assert not other.admit("a shard", 3 * 100_010, must=False)
        assert other.admit("a shard", 3 * 100_010, must=True)
        assert Path(held.path).exists()


STEPS = st.lists(
    st.tuples(st.sampled_from(["hold", "ahead", "release"]), st.integers(0, 11)), max_size=40
)


@settings_of_tests(max_examples=25)
@given(STEPS, st.integers(3_000, 12_000))
def test_whatever_is_held_and_let_go(tmp_path_factory, steps, limit):
    """What is held is there and right; whatever is fetched leaves all below the limit, or held."""
    folder = tmp_path_factory.mktemp("steps")
    place = FolderPlace(make_files(folder / "source", range(1_000, 2_200, 100)))
    files, held = place.files(), {}
    with opened(folder / "cache", limit_bytes=limit) as cache:
        for step, number in steps:
            if step == "release":
                for hold in held.pop(number, []):
                    hold.close()
                continue
            hold_it = cache.hold if step == "hold" else cache.hold_ahead
            before = {kept.path for kept in count(folder / "cache").shards}
            hold = hold_it("prose", place, files[number])
            if hold is not None:
                held.setdefault(number, []).append(hold)
            counted = count(folder / "cache")
            needed = sum(files[number].size for number in held)
            fetched = not {kept.path for kept in counted.shards} <= before
            assert counted.bytes <= max(limit, needed) or not fetched
            assert hold is not None or needed + files[number].size > limit
            for number, holds in held.items():
                right = (place.folder / files[number].name).read_bytes()
                assert Path(holds[0].path).read_bytes() == right
        for holds in held.values():
            for hold in holds:
                hold.close()
