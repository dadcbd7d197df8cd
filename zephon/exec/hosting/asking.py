"""Questions to an engine, wherever it is: here, or in a child process."""

from __future__ import annotations

from typing import Any

from zephon.exec import accounting, session
from zephon.exec.engine import Engine
from zephon.exec.hosting.hosted import HostedEngine
from zephon.observability import MTPQueueStats


def state_of(engine: Engine | HostedEngine) -> dict[str, Any]:
    """Write down what was handed to the caller; see ``session.state_of``."""
    return session.state_of(engine) if isinstance(engine, Engine) else engine.checkpoint()


def account(engine: Engine | HostedEngine) -> dict[str, Any]:
    """Count rows and tokens; see ``accounting.account``."""
    return accounting.account(engine) if isinstance(engine, Engine) else engine.accounting()


def queue_stats(engine: Engine | HostedEngine | None) -> MTPQueueStats | None:
    """Say how full the queue is between a child process and this one; None: there is no queue."""
    return engine.stats() if isinstance(engine, HostedEngine) else None
