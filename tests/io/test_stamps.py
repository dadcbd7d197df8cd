"""Stamps tell a file that was changed, however it was, from one that was not."""

import os
import time

import numpy as np
import pytest

from zephon.io import stamps
from zephon.io.stamps import file_stamps, stored_stamps
from zephon.io.storage.place import StoredFile


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"12345678")
    return tmp_path


def written_over(file):
    file.write_bytes(b"abcdefgh")


def moved_over(file):
    new = file.with_suffix(".new")
    new.write_bytes(b"abcdefgh")
    os.replace(new, file)


def changed_in_place(file):
    with file.open("r+b") as there:
        there.write(b"x")


def shorter(file):
    os.truncate(file, 3)


def linked(file):
    target = file.with_name("b")
    file.unlink()
    file.symlink_to(target)


@pytest.mark.parametrize(
    "change", [written_over, moved_over, changed_in_place, shorter, linked, os.unlink]
)
def test_a_changed_file_has_another_stamp_whatever_its_time_says(folder, change):
    before = file_stamps(str(folder), ["a", "b"])
    status = (folder / "a").stat()
    time.sleep(0.02)  # more than a tick of the clock of any file system in use
    change(folder / "a")
    if (folder / "a").exists() and not (folder / "a").is_symlink():
        os.utime(folder / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file_stamps(str(folder), ["a", "b"]).same(before).tolist() == [False, True]


def test_what_was_changed_a_moment_ago_is_not_settled(folder, monkeypatch):
    assert not file_stamps(str(folder), ["a"]).settled.any()
    os.utime(folder / "a", ns=(0, 0))
    assert not file_stamps(str(folder), ["a"]).settled.any()  # its time was set, now
    now = time.time_ns()
    monkeypatch.setattr(stamps.time, "time_ns", lambda: now + 3 * 10**9)
    assert file_stamps(str(folder), ["a"]).settled.all()
    os.utime(folder / "a", ns=(0, now + 10**12))
    assert not file_stamps(str(folder), ["a"]).settled.any()  # written in the future


def test_what_is_no_file_is_never_the_same(folder):
    os.mkfifo(folder / "pipe")
    (folder / "directory").mkdir()
    files = ["pipe", "directory", "missing", "a/b"]
    found = file_stamps(str(folder), files)
    assert found.bytes.tolist() == [-1] * 4
    assert not found.same(found).any()


@pytest.mark.parametrize("slow", [False, True])
def test_many_files_keep_their_order(tmp_path, monkeypatch, slow):
    if slow:
        monkeypatch.setattr(stamps, "_SLOW_SECONDS", 0)
    monkeypatch.setattr(stamps, "_TOGETHER", 7)
    files = [f"{number:03}" for number in range(100)]
    for number, file in enumerate(files):
        (tmp_path / file).write_bytes(b"x" * number)
    found = file_stamps(str(tmp_path), files)
    assert found.bytes.tolist() == list(range(100))
    assert found.at(np.array([5, 3])).bytes.tolist() == [5, 3]


def test_large_numbers(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        file.truncate(5 << 32)
    assert file_stamps(str(tmp_path), ["a"]).bytes.tolist() == [5 << 32]


def test_a_stored_object_is_known_by_its_version():
    first = [StoredFile("a", 5, '"v1"', 7), StoredFile("b", 5, '"v2"')]
    second = [StoredFile("a", 5, '"v1"', 7), StoredFile("b", 5, '"v3"')]
    assert stored_stamps(first).same(stored_stamps(second)).tolist() == [True, False]
    assert stored_stamps(first).settled.all()
    assert len(stored_stamps([]).bytes) == 0
