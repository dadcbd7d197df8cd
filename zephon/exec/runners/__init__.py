"""Who runs tasks, one way a file; the inline runner is the oracle that the others must equal."""

from zephon.exec.runners.inline import InlineRunner
from zephon.exec.runners.processes import ProcessesRunner, WorkerPool, worker_process_ids
from zephon.exec.runners.runner import Handle, Runner
from zephon.exec.runners.threads import ThreadsRunner, usable_cores

__all__ = [
    "Handle",
    "InlineRunner",
    "ProcessesRunner",
    "Runner",
    "ThreadsRunner",
    "WorkerPool",
    "usable_cores",
    "worker_process_ids",
]
