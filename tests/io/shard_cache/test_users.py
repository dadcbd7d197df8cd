"""The files by which processes tell what they hold."""

import subprocess
import sys

import pytest

from tests.cases.ranks_job import ROOT
from zephon.errors import CacheInUseError
from zephon.io.shard_cache.users import UserFile, held_keys, living


def key(number):
    return number.to_bytes(16, "little")


def test_holds_are_read_by_others_and_slots_are_used_again(tmp_path):
    user = UserFile(tmp_path, "no limit")
    slots = {number: user.hold(key(number)) for number in range(1, 1000)}
    assert held_keys(tmp_path) == {key(number) for number in range(1, 1000)}
    for number in range(1, 999):
        user.release(slots[number])
    size = user.path.stat().st_size
    again = [user.hold(key(number)) for number in range(2000, 2500)]
    assert len(set(again) | {slots[999]}) == 501
    assert user.path.stat().st_size == size
    assert held_keys(tmp_path) == {key(999), *(key(number) for number in range(2000, 2500))}
    user.close()
    user.close()
    assert living(tmp_path) == []
    assert living(tmp_path / "nowhere") == []


PROGRAM = """
import os, sys
from pathlib import Path
from zephon.io.shard_cache.users import UserFile
user = UserFile(Path(sys.argv[1]), sys.argv[2])
user.hold(bytes(range(16)))
print(os.getpid(), flush=True)
input()
"""


def begun(folder, shared):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), shared],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_process_holds_nothing_and_agrees_with_all(tmp_path):
    child = begun(tmp_path, "limit_bytes=7")
    pid = int(child.stdout.readline())
    assert held_keys(tmp_path) == {bytes(range(16))}
    with pytest.raises(CacheInUseError, match=rf"used by process {pid} with limit_bytes=7, and he"):
        UserFile(tmp_path, "no limit")
    assert [user.pid for user in living(tmp_path)] == [pid]  # the refused one has gone
    UserFile(tmp_path, "limit_bytes=7").close()
    child.kill()
    child.communicate()
    assert held_keys(tmp_path) == set()
    UserFile(tmp_path, "no limit").close()
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_holds_up_nobody(tmp_path):
    user = UserFile(tmp_path, "no limit")
    user.path.write_bytes(b"{")
    assert living(tmp_path) == []
    UserFile(tmp_path, "limit_bytes=7").close()
    user.close()
