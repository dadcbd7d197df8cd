"""The most memory that this process has held: since it was asked to count anew (Linux)."""

from pathlib import Path


def count_anew():
    """Forget what was held before; a process that was just started counts what its parent held."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_kilobytes():
    """Give the most kilobytes of memory held since."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
