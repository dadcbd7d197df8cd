"""Signals while a run goes on: handlers that save, launchers that end a job, and nothing left."""

import faulthandler
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.cases.resuming_job import ROOT
from tests.cases.test_resizes import MARK, gone
from tests.properties.recipes import packed, rows, rows_of
from zephon.errors import ExecutionError

SECONDS = 120  # a guard against hanging
ENDLESS = {"work": {"exhausted_policy": "repeat"}, "microbatch": 8, "global_batch_size": 8}

JOB = """
    import json, signal, sys
    from tests.properties.recipes import packed

    def save(number, frame):
        print(json.dumps(pipe.checkpoint()), flush=True)
        sys.exit(3)

    pipe = packed(**json.loads(sys.argv[1]))
    if sys.argv[2] == "saves":
        signal.signal(signal.SIGTERM, save)
    items = iter(pipe)
    next(items)
    print("running", flush=True)
    for _ in items:
        if sys.argv[3] == "saving":
            pipe.checkpoint()
"""


@pytest.fixture
def asked_again_and_again():
    """Let a handler ask something, and again some milliseconds after it was answered."""
    found, ask = [], []

    def handler(number, frame):
        began = time.monotonic()
        found.append(ask[0]())
        # What it interrupts is to go on, too, however busy the machine is.
        signal.setitimer(signal.ITIMER_REAL, 0.003 + 2 * (time.monotonic() - began))

    def begin(what):
        ask.append(what)
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        return found

    before = signal.signal(signal.SIGALRM, handler)
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    yield begin
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize(
    "options",
    [{"mtp_mode": True}, {"runner": "threads", "prefetch_batches": 2}, {"runner": "inline"}],
    ids=str,
)
def test_a_handler_may_ask_for_the_state_in_the_middle_of_asking(options, asked_again_and_again):
    """Whatever the thread does that it interrupts, which is refused if it makes a batch itself."""

    def ask():
        try:
            return pipe.checkpoint()["position"]
        except ExecutionError as refused:
            assert "let it set a flag, and call checkpoint() after" in str(refused)
            assert options == {"runner": "inline"}
            return None

    pipe, wanted = packed(global_batch_size=8, **options), rows(packed(global_batch_size=8))
    items = iter(pipe)
    came = rows_of(next(items))
    states = asked_again_and_again(ask)
    here = pipe.checkpoint()["position"]
    while len(states) < 20:
        assert pipe.checkpoint()["position"] == here
    assert states == [here] * len(states)
    for batch in items:
        came += rows_of(batch)
    while len(states) < 40:
        pipe.accounting()
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert came == wanted
    assert states[-1] == pipe.checkpoint()["position"] != here


@pytest.mark.parametrize(
    ("options", "handler", "doing"),
    [
        ({"mtp_mode": True}, "saves", "iterating"),
        ({"mtp_mode": True, "runner": "process", "max_workers": 1}, "saves", "saving"),
        ({"mtp_mode": True}, "none", "saving"),
    ],
)
def test_a_job_that_is_told_to_end_saves_and_leaves_nothing(options, handler, doing):
    """Launchers tell all processes of a job, so also those that host engines."""
    mark = f"{os.getpid()}-{handler}-{doing}"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(JOB),
            json.dumps({**ENDLESS, **options}),
            handler,
            doing,
        ],
        cwd=ROOT,
        env={**os.environ, MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "running\n"
    os.killpg(process.pid, signal.SIGTERM)
    said, complaints = process.communicate(timeout=SECONDS)
    gone(mark)
    assert process.returncode == (3 if handler == "saves" else -signal.SIGTERM), complaints
    assert not complaints
    if handler == "saves":
        state = json.loads(said)
        done = state["position"]["step"]
        wanted = rows(packed(**ENDLESS), done + 2)
        assert done > 0 and rows(packed(**ENDLESS).restore(state), 2) == wanted[8 * done :]
