"""The end of workers that have something to let go of."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from zephon.exec.runners import WorkerPool, finishing


def answers(folder, how=None):
    """Make a factory of what writes down that it is closed, and then does something."""

    def make():
        class Answers:
            def __call__(self, task):
                return task[0](*task[1:])

            def close(self):
                import os

                Path(folder, str(os.getpid())).touch()
                if how is not None:
                    how()

        return Answers()

    return make


def nowhere():
    return "row 3"


def fails():
    raise OSError("still open")


def sleeps():
    import time

    time.sleep(60)


def pool_of(folder, how=None, workers=1):
    return WorkerPool(answers(str(folder), how), workers, 3, finishes=True)


def test_a_worker_closes_what_answers_before_it_ends(tmp_path):
    pool = pool_of(tmp_path)
    worker = pool.ask((os.getpid,), nowhere)
    pool.close()
    pool.close()
    pool.raise_failure()
    assert [each.name for each in tmp_path.iterdir()] == [str(worker)]
    assert not Path(f"/proc/{worker}").exists()


def test_what_closing_raises_is_kept_until_it_is_asked_for_once(tmp_path):
    pool = pool_of(tmp_path, fails)
    pool.ask((os.getpid,), nowhere)
    pool.close()
    with pytest.raises(OSError, match="still open"):
        pool.raise_failure()
    pool.raise_failure()


def test_a_task_is_let_to_its_end(tmp_path):
    pool, begun, found = pool_of(tmp_path), tmp_path / "begun", []

    def slow():
        import time

        begun.touch()
        time.sleep(0.5)
        return "done"

    asks = threading.Thread(target=lambda: found.append(pool.ask((slow,), nowhere)))
    asks.start()
    while not begun.exists():
        time.sleep(0.01)
    pool.close()
    asks.join()
    assert found == ["done"]
    assert len(list(tmp_path.iterdir())) == 2


def test_who_is_killed_or_was_never_asked_is_not_waited_for(tmp_path):
    pool_of(tmp_path).close()
    pool = pool_of(tmp_path)
    os.kill(pool.ask((os.getpid,), nowhere), signal.SIGKILL)
    pool.close()
    pool.raise_failure()
    assert list(tmp_path.iterdir()) == []


def test_one_that_takes_long_is_ended_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(finishing, "FINISH_SECONDS", 0.2)
    pool = pool_of(tmp_path, sleeps)
    worker = pool.ask((os.getpid,), nowhere)
    with pytest.warns(RuntimeWarning, match=r"waits 0\.2 s at the end, .* 1 of 1 took longer"):
        pool.close()
    assert not Path(f"/proc/{worker}").exists()
