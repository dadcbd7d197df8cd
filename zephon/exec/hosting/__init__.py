"""An engine in a child process, so that the caller's interpreter is free for the training.

Read ``hosted`` (what a pipeline uses), ``child`` (the process as its parent sees it), ``records``
and ``segments`` (what crosses, and the memory that it lies in), ``batch_bodies`` (batches in it),
and ``host`` (what runs in the child). Nothing but ``host``, and ``asking``, which asks an engine
wherever it is, loads what makes batches.
"""

from zephon.exec.hosting.hosted import HostedEngine, open_hosted

__all__ = ["HostedEngine", "open_hosted"]
