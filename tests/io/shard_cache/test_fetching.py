"""How shards come: whole, of the right version, after as many attempts as it takes."""

import errno
import hashlib
import os
import re
import threading
import time
from pathlib import Path

import pytest

from tests.io.shard_cache.places import (
    FolderPlace,
    ServedPlace,
    in_thread,
    lying,
    make_files,
    opened,
    served,
)
from zephon.errors import AccessError, CacheError, InsufficientCacheSpaceError, StorageError
from zephon.io.shard_cache import fetching
from zephon.io.shard_cache.disk import PartFile
from zephon.io.shard_cache.told import read_told
from zephon.io.storage.place import StoredFile

PASSING = ["reset", "plain_reset", "short", "long", "begun_again", "other"]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(fetching, "_FIRST_PAUSE", 0.001)


def hashed(place, name):
    """Name a file by the hash of its content, as a hub does."""
    file = place.file(name)
    found = hashlib.sha256((place.folder / name).read_bytes()).hexdigest()
    return StoredFile(name, file.size, found, file.modified_ns)


@pytest.mark.parametrize("fault", PASSING)
def test_what_may_pass_is_tried_again(tmp_path, source, fault):
    file = hashed(source, "003.bin")
    source.faults = [fault, fault]
    with opened(tmp_path / "cache") as cache, cache.hold("prose", source, file) as held:
        assert Path(held.path).read_bytes() == (source.folder / "003.bin").read_bytes()
    assert len(source.fetched) == (1 if fault == "begun_again" else 3)
    assert lying(tmp_path / "cache") == (["003.bin"], [])


def test_an_error_names_the_object_the_attempts_and_the_last_reason(tmp_path, source):
    source.faults = ["reset", "short", "other"]
    file = hashed(source, "003.bin")
    with opened(tmp_path / "cache", attempts=3) as cache, pytest.raises(StorageError) as caught:
        cache.hold("prose", source, file)
    text = str(caught.value)
    assert re.match(r"dataset 'prose', shard '003.bin' of test://\S+@1: it must come whole, ", text)
    assert re.search(r"3 attempts in \d+\.\d s failed, the last one with: its sha256 must be", text)
    assert "connection was reset; 100,003 bytes were told, and 100,002 came" in text
    assert "download_retry" in text and "\n" not in text
    assert lying(tmp_path / "cache") == ([], [])


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [("gone", OSError, "another version now"), ("denied", AccessError, "log in first")],
)
def test_what_does_not_pass_is_an_error_at_once(tmp_path, source, fault, kind, said):
    source.faults = [fault]
    with opened(tmp_path / "cache") as cache, pytest.raises(kind, match=said):
        cache.hold("prose", source, source.files()[0])
    assert len(source.fetched) == 1
    assert lying(tmp_path / "cache") == ([], [])


def test_attempts_end_when_nothing_came_for_too_long(tmp_path, source, monkeypatch):
    monkeypatch.setattr(fetching, "_FIRST_PAUSE", 0.1)
    source.faults = ["plain_reset"] * 100
    said = "attempts in|none came"
    with (
        opened(tmp_path / "cache", attempts=100, timeout_s=0.6) as cache,
        pytest.raises(StorageError, match=said),
    ):
        cache.hold("prose", source, source.files()[0])
    assert 1 < len(source.fetched) < 20


class Full:
    """A disk that takes so many bytes, and then no more until something leaves."""

    def __init__(self, most, error=errno.ENOSPC):
        self.most = most
        self.error = error
        self.write = PartFile.write

    def __call__(self, file, data):
        self.most -= len(data)
        if self.most < 0:
            try:
                raise OSError(self.error, os.strerror(self.error))
            except OSError as exc:
                file.failed = exc
                raise
        return self.write(file, data)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_in_the_middle(tmp_path, source, monkeypatch, error):
    files = source.files()
    with opened(tmp_path / "cache") as cache:
        cache.hold("prose", source, files[0]).close()
        full = Full(50_000, error)
        monkeypatch.setattr(PartFile, "write", lambda *words: full(*words))
        began = time.monotonic()
        with (
            cache.hold("prose", source, files[0]),
            pytest.raises(InsufficientCacheSpaceError, match=r"cache/prose-.*needs 100,001 by"),
        ):
            cache.hold("prose", source, files[1])
        assert lying(tmp_path / "cache") == (["000.bin"], [])
        remove = fetching.Room.free

        def free(room, size):
            full.most = 1 << 30
            return remove(room, size)

        monkeypatch.setattr(fetching.Room, "free", free)
        cache.hold("prose", source, files[1]).close()
        assert lying(tmp_path / "cache") == (["001.bin"], [])
        assert time.monotonic() - began < 10


def test_a_disk_that_fails(tmp_path, source, monkeypatch):
    full = Full(50_000, errno.EIO)
    monkeypatch.setattr(PartFile, "write", lambda *words: full(*words))
    with opened(tmp_path / "cache") as cache, pytest.raises(CacheError, match=r"part' must be wri"):
        cache.hold("prose", source, source.files()[0])
    assert len(source.fetched) == 1
    assert lying(tmp_path / "cache") == ([], [])


def test_what_is_told_of_a_shard(tmp_path, source):
    file = hashed(source, "000.bin")
    with opened(tmp_path / "cache") as cache, cache.hold("prose", source, file) as held:
        told = read_told(held.shard.folder / held.shard.names.told)
    assert (told.name, told.version, told.size) == ("000.bin", file.version, file.size)
    assert told.hashes == {"sha256": file.version}
    for damage in ("", "{", "[]", '{"name": 3}', told.digest):
        (tmp_path / "told").write_text(damage)
        assert read_told(tmp_path / "told") is None


def test_a_claim_of_a_living_process_is_waited_for(tmp_path, source):
    """Two caches of one root in one process are as two processes that cannot lock."""
    file = source.files()[0]
    other = FolderPlace(source.folder)
    source.gate.clear()
    with opened(tmp_path / "cache") as first:
        end = in_thread(lambda: first.hold("prose", source, file).close())
        while not source.fetched:
            time.sleep(0.01)
        second = type(first)(first.settings)
        ends = [in_thread(lambda: second.hold("prose", other, file).close()) for _ in range(3)]
        time.sleep(0.2)
        source.gate.set()
        end()
        for each in ends:
            each()
        assert (source.fetched, other.fetched) == (["000.bin"], [])
        assert second.counts().fetched == 0
        second.close()


@pytest.mark.parametrize("who", ["dead", "still", "nobody"])
def test_a_claim_that_leads_to_nothing_is_taken_over(tmp_path, source, who):
    file = source.files()[0]
    with opened(tmp_path / "cache", timeout_s=1.0) as cache:
        with cache.hold("prose", source, file) as held:
            claim = held.shard.folder / held.shard.names.claim
            owner = next((tmp_path / "cache" / ".users").iterdir()).name.removesuffix(".user")
        parts = owner.split(".")
        if who == "dead":
            parts[3] = f"{2**22 + 1:x}"
        key = held.shard.names.key.hex()
        claim.write_text("" if who == "nobody" else f"{key}.{file.size}.{'.'.join(parts)}.part")
        os.unlink(held.path)
        began = time.monotonic()
        with cache.hold("prose", source, file) as held:
            assert Path(held.path).exists()
        assert time.monotonic() - began < 20
        assert not claim.exists()


def test_who_waited_for_one_that_gave_up_tries_by_itself(tmp_path, source):
    file = source.files()[0]
    other = FolderPlace(source.folder)
    source.faults = ["gone"]
    source.gate.clear()
    with opened(tmp_path / "cache") as first:
        end = in_thread(lambda: first.hold("prose", source, file).close())
        while not source.fetched:
            time.sleep(0.01)
        second = type(first)(first.settings)
        other_end = in_thread(lambda: second.hold("prose", other, file).close())
        time.sleep(0.1)
        source.gate.set()
        with pytest.raises(OSError, match="another version"):
            end()
        other_end()
        assert other.fetched == ["000.bin"]
        second.close()


def test_over_http_with_cut_bodies_and_a_busy_server(tmp_path):
    folder = make_files(tmp_path / "source", [700_000] * 6)
    faults = ["unavailable", "cut", None, "cut", None, None, "unavailable", "unavailable"]
    with served(folder, faults=faults) as server, opened(tmp_path / "cache") as cache:
        place = ServedPlace(folder, server.server_port)
        barrier = threading.Barrier(6)

        def work(file):
            barrier.wait(60)
            with cache.hold("prose", place, file) as held:
                return Path(held.path).read_bytes()

        ends = [in_thread(lambda file=file: work(file)) for file in place.files()]
        right = [(folder / file.name).read_bytes() for file in place.files()]
        assert [end() for end in ends] == right
        assert len(server.requests) == 6 + 5
