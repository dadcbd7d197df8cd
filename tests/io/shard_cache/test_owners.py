"""Processes by name: a living one lives, a dead one does not, and nobody is taken for another."""

import subprocess
import sys
import time

from zephon.io.shard_cache import owners
from zephon.io.shard_cache.owners import UNHEARD_SECONDS, lives, this_process

NAME = "from zephon.io.shard_cache.owners import this_process; print(this_process(), flush=True)"


def changed(part, text):
    parts = this_process().split(".")
    parts[part] = text
    return ".".join(parts)


def test_a_process_lives_until_it_has_ended():
    assert lives(this_process(), 0)
    assert lives(f"{this_process()}.3", 0)
    child = subprocess.Popen(
        [sys.executable, "-c", f"{NAME}; input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    name = child.stdout.readline().strip()
    assert name != this_process()
    assert lives(name, 0)
    child.kill()
    while child.poll() is None and lives(name, time.time()):
        time.sleep(0.01)
    assert not lives(name, time.time())  # a dead one that nobody has buried, too
    child.communicate()
    assert not lives(name, time.time())


def test_a_number_that_was_given_again_is_another_process():
    assert not lives(changed(4, "1"), time.time())


def test_what_cannot_be_looked_at_is_heard_of():
    now = time.time()
    for elsewhere in (
        changed(2, "1"),
        changed(0, "00000000").replace(this_process()[9:17], "0" * 8),
    ):
        assert lives(elsewhere, now)
        assert not lives(elsewhere, now - UNHEARD_SECONDS - 1)
    assert not lives(changed(1, "00000000"), now)  # this machine was started anew
    assert not lives("nonsense", now - UNHEARD_SECONDS - 1)


def test_where_there_is_no_proc(monkeypatch):
    monkeypatch.setattr(owners.os.path, "isdir", lambda path: False)
    assert lives(this_process(), 0)
    assert not lives(changed(3, f"{2**22 + 1:x}"), time.time())
