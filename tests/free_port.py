"""A port of this machine that nobody listens at."""

import socket


def free_port():
    """Ask the system for one; it is free until somebody takes it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
