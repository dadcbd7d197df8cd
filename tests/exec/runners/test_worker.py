"""A worker by itself: whom it obeys, when it ends, and what it shares with its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

GUARD = 60  # seconds after which a test that hangs fails


def alive(process_id):
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def run(program):
    """Run a program of its own that writes the ids of its workers."""
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


BUSY = """
import os, threading, time
from zephon.exec.runners import WorkerPool

def answer(task):
    print("working", os.getpid(), flush=True)
    while True:
        time.sleep(0.001)

pool = WorkerPool(lambda: answer, 1, 3)
asking = threading.Thread(target=pool.ask, args=(1, str), daemon=True)
asking.start()
"""


def busy_worker(found):
    word, number = found.stdout.readline().split()
    assert word == "working"
    return int(number)


def test_workers_end_when_their_parent_is_killed():
    """A child that the parent forked holds its end of the socket open."""
    fork = (
        "\ninput()\nif not os.fork(): time.sleep(600)\nprint('forked', flush=True)\ntime.sleep(600)"
    )
    with run(BUSY + fork) as found:
        worker = busy_worker(found)
        found.stdin.write("\n")
        found.stdin.flush()
        assert found.stdout.readline() == "forked\n"
        found.kill()
        end = time.monotonic() + GUARD
        while alive(worker) and time.monotonic() < end:
            time.sleep(0.02)
        assert not alive(worker)
        os.killpg(found.pid, signal.SIGKILL)  # the child


def test_ctrl_c_ends_workers_without_a_word():
    program = BUSY + (
        "\ntry: time.sleep(600)\nexcept KeyboardInterrupt:"
        "\n    pool.close(); asking.join(); print('closed')"
    )
    with run("import threading; threading.excepthook = lambda _: None\n" + program) as found:
        worker = busy_worker(found)
        os.killpg(found.pid, signal.SIGINT)
        out, err = found.communicate(timeout=GUARD)
    assert (out, err, found.returncode) == ("closed\n", "", 0)
    assert not alive(worker)


def test_a_script_needs_no_guard_and_what_workers_print_is_the_scripts(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from zephon.exec.runners import WorkerPool\n"
        "import beside\n"
        "class Box:\n"
        "    def __init__(self, value): self.value = value\n"
        "def answer(task):\n"
        "    print('in', task.value, end='')\n"
        "    print('to', task.value, file=sys.stderr)\n"
        "    return Box(task.value + beside.ONE)\n"
        "pool = WorkerPool(lambda: answer, 1, 0)\n"
        "found = pool.ask(Box(1), str)\n"
        "print(type(found) is Box, found.value)\n"
    )
    (tmp_path / "beside.py").write_text("ONE = 1\n")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=GUARD, cwd="/"
    )
    assert (done.stdout, done.stderr, done.returncode) == ("in 1True 2\n", "to 1\n", 0)
