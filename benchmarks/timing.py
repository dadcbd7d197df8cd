"""Times contenders against each other: a process each, in turn, medians with their spread.

A contender is a command that does one job once and prints a `Reading` as its last line. Contenders
alternate, so that a slow minute of the machine falls on all of them. This module imports only the
standard library: what a child is charged for memory begins with what its parent holds.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one run of one contender gave.

    tokens: tokens handed over after the first batch.
    seconds: the time these took.
    first_batch: seconds from the start of the job, all imported, to its first batch.
    imports_kb: the most memory the process had held when it had only imported, in KiB.
    peak_kb: the most memory it ever held; filled in by the parent.
    cpu_seconds: processor time of the whole process; filled in by the parent.
    """

    tokens: int
    seconds: float
    first_batch: float
    imports_kb: int
    peak_kb: int = 0
    cpu_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Millions of tokens a second after the first batch."""
        return self.tokens / self.seconds / 1e6

    @property
    def growth_mb(self) -> float:
        """Megabytes held at the peak beyond those of the imports."""
        return (self.peak_kb - self.imports_kb) * 1024 / 1e6


@dataclass(frozen=True, slots=True)
class Contender:
    """A named command that does the job once."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some figures, with the least and the most of them."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Summarize figures, at least one.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, least=1.0, most=3.0)
        """
        return cls(statistics.median(figures), min(figures), max(figures))

    def __str__(self) -> str:
        """Show the median and, in brackets, the range."""
        return f"{self.median:.2f} [{self.least:.2f} to {self.most:.2f}]"


def measure(batches: Callable[[], Iterator[int]]) -> None:
    """Run a job to its end in this process and print its reading.

    Args:
        batches: starts the job; yields the number of tokens in each batch. All imports are done.
    """
    imports_kb = _peak_kb(resource.getrusage(resource.RUSAGE_SELF))
    start = time.perf_counter()
    stream = batches()
    next(stream)
    first = time.perf_counter()
    tokens = sum(stream)
    reading = Reading(
        tokens=tokens,
        seconds=time.perf_counter() - first,
        first_batch=first - start,
        imports_kb=imports_kb,
    )
    print(json.dumps(asdict(reading)), flush=True)


def alternate(contenders: Sequence[Contender], rounds: int) -> dict[str, list[Reading]]:
    """Run every contender once a round, in turn; return its readings by name."""
    readings: dict[str, list[Reading]] = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        for contender in contenders:
            reading = run(contender.command)
            readings[contender.name].append(reading)
            line = f"  round {number + 1}/{rounds}  {contender.name:<9} {reading.rate:7.2f} M tok/s"
            line += f", first batch {reading.first_batch:.2f} s, memory +{reading.growth_mb:.0f} MB"
            print(line, file=sys.stderr, flush=True)
    return readings


def run(command: Sequence[str]) -> Reading:
    """Run one command; return its reading, with memory and processor time as the system counts."""
    output, usage = start(command)
    reading = Reading(**json.loads(output.splitlines()[-1]))
    return replace(reading, peak_kb=_peak_kb(usage), cpu_seconds=usage.ru_utime + usage.ru_stime)


def start(command: Sequence[str]) -> tuple[str, resource.struct_rusage]:
    """Run one command to its end; return what it printed and what it used.

    Raises:
        RuntimeError: the command failed; the message carries the end of its complaints.
    """
    with tempfile.TemporaryFile("w+") as complaints:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True)
        assert child.stdout is not None  # asked for on the line above
        output = child.stdout.read()
        child.stdout.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            complaints.seek(0)
            end = complaints.read()[-2000:]
            raise RuntimeError(f"{' '.join(command)}: exit code {child.returncode}\n{end}")
    return output, usage


def show(title: str, readings: Mapping[str, Sequence[Reading]]) -> None:
    """Print what one benchmark file found, a line a contender."""
    print(title)
    for name, found in readings.items():
        rate = Spread.of([reading.rate for reading in found])
        first = Spread.of([reading.first_batch for reading in found])
        growth = Spread.of([reading.growth_mb for reading in found]).median
        cpu = Spread.of([reading.cpu_seconds for reading in found]).median
        print(
            f"  {name:<10} {rate} M tok/s, first batch {first} s, "
            f"memory +{growth:.0f} MB, processor {cpu:.2f} s"
        )


def _peak_kb(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss if sys.platform.startswith("linux") else usage.ru_maxrss // 1024
