"""Reads nest on their thread, wait for the changes of others, and refuse to look into their own."""

import threading

import pytest

from zephon.errors import ExecutionError
from zephon.exec.history_lock import HistoryLock


def test_reads_nest_and_changes_too():
    lock = HistoryLock()
    with lock.read(), lock.read():
        pass
    with lock, lock:
        pass
    with lock.read():
        pass


def test_a_read_in_the_middle_of_a_change_of_its_thread_is_refused():
    lock = HistoryLock()
    with lock:
        with lock:
            pass
        with pytest.raises(ExecutionError, match="let it set a flag, and call checkpoint"):
            lock.read().__enter__()
    with lock.read():
        pass


def test_a_read_waits_for_the_change_of_another_thread():
    lock, came = HistoryLock(), []

    def read():
        with lock.read():
            came.append("read")

    with lock:
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(0.05)
        came.append("changed")
    reader.join(30)
    assert came == ["changed", "read"]
