"""Holding shards: whole, once, as long as they are held, and again where something went wrong."""

import errno
import hashlib
import os
import shutil
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.io.shard_cache.places import FolderPlace, in_thread, lying, opened, settings
from zephon.errors import (
    CacheInUseError,
    InsufficientCacheSpaceError,
    ShardError,
    StorageError,
)
from zephon.io.shard_cache import ShardCache
from zephon.io.storage.place import StoredFile


def content(place, file):
    return (place.folder / file.name).read_bytes()


def test_a_shard_comes_once_and_is_as_it_was(tmp_path, source):
    with opened(tmp_path / "cache") as cache:
        for _ in range(2):
            for file in source.files():
                with cache.hold("prose", source, file) as held:
                    assert Path(held.path).read_bytes() == content(source, file)
                    assert Path(held.path).stat().st_mtime_ns == file.modified_ns == held.mtime_ns
        assert source.fetched == [file.name for file in source.files()]
        counts = cache.counts()
        assert (counts.found, counts.fetched, counts.changed) == (8, 8, 0)
        assert counts.bytes == sum(file.size for file in source.files())
    with opened(tmp_path / "cache") as cache:  # another run
        with cache.hold("prose", source, source.files()[0]):
            pass
        assert cache.counts().found == 1


def test_versions_datasets_and_names_are_kept_apart(tmp_path, source):
    file = source.files()[0]
    (tmp_path / "other").mkdir()
    other = FolderPlace(tmp_path / "other")
    (tmp_path / "other" / file.name).write_bytes(b"other")
    with opened(tmp_path / "cache") as cache:
        with cache.hold("prose", other, other.files()[0]) as held:
            assert Path(held.path).read_bytes() == b"other"
        with cache.hold("prose", source, file) as held:
            assert Path(held.path).read_bytes() == content(source, file)
        newer = StoredFile(file.name, file.size, "another", file.modified_ns)
        with cache.hold("prose", source, newer) as now, cache.hold("prose", source, file) as held:
            assert now.path != held.path
        assert len(source.fetched) == 2


@pytest.mark.parametrize("size", [0, 1, 3 << 20])
def test_any_size_and_no_time(tmp_path, size):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.jsonl").write_bytes(b"x" * size)
    place = FolderPlace(tmp_path / "source", tell_time=False)
    with opened(tmp_path / "cache") as cache:
        with cache.hold("prose", place, place.files()[0]) as held:
            assert Path(held.path).read_bytes() == b"x" * size
            first = held.mtime_ns
            assert held.path.endswith("-a.jsonl")
        Path(held.path).unlink()
        with cache.hold("prose", place, place.files()[0]) as held:
            assert held.mtime_ns == first == os.stat(held.path).st_mtime_ns > 0


def shorter(path):
    os.truncate(path, 99)


def written_to(path):
    with open(path, "r+b") as file:
        file.write(b"!!!")


def removed(path):
    path.unlink()


def a_directory(path):
    path.unlink()
    path.mkdir()
    path.rmdir()
    path.symlink_to("/dev/null")


@pytest.mark.parametrize("change", [shorter, written_to, removed, a_directory])
def test_a_shard_that_was_changed_comes_again(tmp_path, source, change):
    file = source.files()[0]
    with opened(tmp_path / "cache") as cache:
        with cache.hold("prose", source, file) as held:
            pass
        change(Path(held.path))
        with cache.hold("prose", source, file) as held:
            assert Path(held.path).read_bytes() == content(source, file)
        assert source.fetched == [file.name] * 2
        assert cache.counts().changed == (change is not removed)


def test_reading_goes_on_when_the_shard_goes_away(tmp_path, source):
    file = source.files()[0]
    seen = []

    def read(path):
        seen.append(path)
        if len(seen) == 1:
            os.unlink(path)  # as another machine may, on a disk that both use
        if len(seen) == 2:
            os.truncate(path, 10)
            raise ShardError("it is cut off")
        if len(seen) == 3:
            raise OSError(errno.ESTALE, "stale file handle")
        return Path(path).read_bytes()

    with opened(tmp_path / "cache") as cache:
        assert cache.reading("prose", source, file, read) == content(source, file)
    assert len(seen) == 4


def test_reading_hands_on_what_is_wrong_with_a_sound_shard(tmp_path, source):
    calls = []

    def read(path):
        calls.append(path)
        raise ShardError("row 3 is bad")

    with opened(tmp_path / "cache") as cache, pytest.raises(ShardError, match="row 3 is bad"):
        cache.reading("prose", source, source.files()[0], read)
    assert len(calls) == 1


def test_reading_ends_where_a_disk_never_gets_better(tmp_path, source):
    calls = []

    def read(path):
        calls.append(path)
        raise OSError(errno.EIO, "input/output error")

    with (
        opened(tmp_path / "cache", open_attempts=3) as cache,
        pytest.raises(OSError, match="input"),
    ):
        cache.reading("prose", source, source.files()[0], read)
    assert len(calls) == 3


def test_many_threads_wait_for_one_fetch(tmp_path, source):
    file = source.files()[0]
    source.gate.clear()

    def work():
        with cache.hold("prose", source, file) as held:
            return Path(held.path).read_bytes()

    with opened(tmp_path / "cache") as cache:
        ends = [in_thread(work) for _ in range(16)]
        time.sleep(0.1)
        source.gate.set()
        assert {end() for end in ends} == {content(source, file)}
        assert source.fetched == [file.name]


def test_many_threads_hear_of_one_failure_and_the_other_shards_go_on(tmp_path, source):
    bad, good = source.files()[:2]
    source.faults = ["gone"]
    source.gate.clear()

    def work(file):
        with cache.hold("prose", source, file) as held:
            return Path(held.path).read_bytes()

    with opened(tmp_path / "cache") as cache:
        ends = [in_thread(lambda: work(bad)) for _ in range(4)]
        time.sleep(0.2)
        source.gate.set()
        for end in ends:
            with pytest.raises(ShardError, match="another version"):
                end()
        assert source.fetched == [bad.name]
        assert work(good) == content(source, good)
        assert work(bad) == content(source, bad)  # it may be there again


def test_a_store_that_falls_silent_is_an_error_and_not_a_hang(tmp_path, source):
    source.faults = ["silent"]
    with opened(tmp_path / "cache", timeout_s=0.3) as cache:
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"shard '000.bin' of test://.* within 0.45 s of"):
            cache.hold("prose", source, source.files()[0])
        assert time.monotonic() - began < 15
        with cache.hold("prose", source, source.files()[1]):
            pass


def test_what_is_held_stays_and_the_limit_holds_for_the_rest(tmp_path, source):
    files = source.files()
    limit = 3 * 100_010
    with opened(tmp_path / "cache", limit_bytes=limit) as cache, ExitStack() as stack:
        first = stack.enter_context(cache.hold("prose", source, files[0]))
        for file in files[1:]:
            with cache.hold("prose", source, file):
                assert sum(p.stat().st_size for p in tmp_path.rglob("*-*.bin")) <= limit
        assert Path(first.path).exists()
        shards, others = lying(tmp_path / "cache")
        assert (shards[0], len(shards), others) == ("000.bin", 3, [])
        assert cache.counts().removed == 5


def test_the_least_recently_held_leaves_first(tmp_path, source, monkeypatch):
    monkeypatch.setattr("zephon.io.shard_cache.local_shard._TOUCH_SECONDS", 0)
    files = source.files()
    with opened(tmp_path / "cache", limit_bytes=3 * 100_010) as cache:
        for number in (0, 1, 2, 0, 3, 0, 4):
            with cache.hold("prose", source, files[number]):
                time.sleep(0.01)
    assert lying(tmp_path / "cache")[0] == ["000.bin", "003.bin", "004.bin"]


def test_held_shards_may_pass_the_limit_and_nobody_waits_for_room(tmp_path, source):
    files = source.files()
    together = threading.Barrier(len(files))

    def work(file):
        with cache.hold("prose", source, file) as held:
            together.wait(60)  # all are held at a time
            return Path(held.path).read_bytes()

    with opened(tmp_path / "cache", limit_bytes=2 * 100_010) as cache:
        ends = [in_thread(lambda file=file: work(file)) for file in files]
        assert [end() for end in ends] == [content(source, file) for file in files]
        with cache.hold("code", source, files[0]):
            pass
        shards, _ = lying(tmp_path / "cache")
        assert len(shards) <= 2


def test_a_limit_below_a_shard_is_an_error_at_once(tmp_path, source):
    with opened(tmp_path / "cache", limit_bytes=99_999) as cache:
        said = r"cache'.*'000.bin'.* needs 100,000 bytes, and limit_bytes is 99,999; raise"
        with pytest.raises(InsufficientCacheSpaceError, match=said):
            cache.hold("prose", source, source.files()[0])
        with pytest.raises(InsufficientCacheSpaceError, match=said):
            cache.check_planned("prose", source, source.files())
    assert source.fetched == []


def test_ahead_nothing_takes_room_from_what_is_held(tmp_path, source):
    files = source.files()
    with opened(tmp_path / "cache", limit_bytes=2 * 100_010) as cache, ExitStack() as stack:
        for file in files[:2]:
            stack.enter_context(cache.hold("prose", source, file))
        assert cache.hold_ahead("prose", source, files[2]) is None
        stack.pop_all().close()
        held = cache.hold_ahead("prose", source, files[2])
        assert held is not None
        held.close()
        held.close()  # once is enough
    assert lying(tmp_path / "cache")[1] == []


def test_a_hash_that_an_index_tells_is_checked_when_the_user_says_so(tmp_path, source):
    file = source.files()[0]
    right = {"sha1": hashlib.sha1(content(source, file)).hexdigest().upper()}
    with opened(tmp_path / "cache") as cache, cache.hold("prose", source, file, {"sha1": "0"}):
        pass  # not asked for
    with opened(tmp_path / "cache", validate_hash="sha1") as cache:
        held = cache.hold("prose", source, file, right)
        assert source.fetched == [file.name]  # it was there, and is right
        held.close()
    with open(held.path, "r+b") as damaged:
        damaged.write(b"#")
    os.utime(held.path, ns=(held.mtime_ns, held.mtime_ns))
    with opened(tmp_path / "cache", validate_hash="sha1") as cache:
        with cache.hold("prose", source, file, right) as held:
            assert Path(held.path).read_bytes() == content(source, file)
        assert (cache.counts().changed, cache.counts().fetched) == (1, 1)
    with opened(tmp_path / "cache2", validate_hash="sha1", attempts=2) as cache:
        with pytest.raises(StorageError, match=r"2 attempts .* its sha1 must be 0, and is"):
            cache.hold("prose", source, file, {"sha1": "0"})
        with pytest.warns(RuntimeWarning, match=r"'sha1' asks for a hash that no index tells of"):
            cache.hold("prose", source, file).close()


def test_a_root_has_the_same_options_for_all(tmp_path, source):
    with opened(tmp_path / "cache", limit_bytes=1 << 20) as cache:
        assert ShardCache.opened(settings(tmp_path / "cache", limit_bytes=1 << 20)) is cache
        with pytest.raises(CacheInUseError, match=r"limit_bytes=1,048,576.*and here with no limit"):
            ShardCache.opened(settings(tmp_path / "cache"))
    with opened(tmp_path / "cache") as cache:
        cache.hold("prose", source, source.files()[0]).close()


def test_a_root_that_is_removed_meanwhile_is_made_again(tmp_path, source):
    files = source.files()
    with opened(tmp_path / "cache", limit_bytes=2 * 100_010) as cache:
        cache.hold("prose", source, files[0]).close()
        shutil.rmtree(tmp_path / "cache")
        with cache.hold("prose", source, files[0]), cache.hold("prose", source, files[1]):
            assert cache.hold_ahead("prose", source, files[2]) is None  # holds are known again
        for file in files:
            with cache.hold("prose", source, file) as held:
                assert Path(held.path).read_bytes() == content(source, file)


def test_a_fork_holds_for_itself(tmp_path, source):
    files = source.files()
    users = tmp_path / "cache" / ".users"
    with opened(tmp_path / "cache") as cache, cache.hold("prose", source, files[0]) as held:
        before = [path.read_bytes() for path in users.iterdir()]
        child = os.fork()
        if not child:
            code = 1
            try:
                held.close()  # it is the parent's
                with cache.hold("prose", source, files[0]), cache.hold("prose", source, files[1]):
                    code = 10 * (len(list(users.iterdir())) != 2)
                cache.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert [path.read_bytes() for path in users.iterdir()] == before
    assert list(users.iterdir()) == []
