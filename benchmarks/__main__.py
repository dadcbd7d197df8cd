"""Runs every benchmark and prints one Markdown table: `python -m benchmarks`, or `make bench`."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.import_cost import import_seconds, ratio
from benchmarks.jobs import JOBS, parse_arguments, timed
from benchmarks.timing import Reading, Spread

_HEAD = (
    "| job | Zephon, M tokens/s | roofline | public 0.2.0 (tuned) | times public (tuned) "
    "| of roofline | first batch, s (public) | peak memory, MB (public) |\n"
    "|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Time all jobs, then the import; progress goes to standard error, the table to output."""
    arguments = parse_arguments(str(__doc__))
    lines = []
    for name, job in JOBS.items():
        print(job.title, file=sys.stderr, flush=True)
        lines.append(line(job.title, timed(name, arguments.rounds, arguments.corpus)))
    imports = import_seconds(11)
    print(f"{_machine()}. {_corpus(arguments.corpus)}")
    print(f"Median [least to most] of {arguments.rounds} alternating runs.\n")
    print(_HEAD)
    print("\n".join(lines))
    print(f"\n`import zephon` takes {ratio(imports):.2f} times numpy, pyarrow and polars together.")


def line(title: str, readings: Mapping[str, Sequence[Reading]]) -> str:
    """Lay out what one job gave, as one line of the table; those who did not run leave gaps."""
    ours = readings["zephon"]
    roofline, public = readings.get("roofline"), readings.get("public")
    others = [_median(readings[name], "rate") for name in ("public", "tuned") if name in readings]
    rate = Spread.of([reading.rate for reading in ours])
    cells = (
        title,
        f"{rate.median:.1f} [{rate.least:.1f} to {rate.most:.1f}]",
        f"{_median(roofline, 'rate'):.1f}" if roofline else "",
        _bracketed([f"{other:.2f}" for other in others]),
        _bracketed([f"{rate.median / other:.0f}x" for other in others]),
        f"{rate.median / _median(roofline, 'rate'):.0%}" if roofline else "",
        _beside(ours, public, "first_batch", ".2f"),
        _beside(ours, public, "growth_mb", "+.0f"),
    )
    return f"| {' | '.join(cells)} |"


def _bracketed(cells: Sequence[str]) -> str:
    return " ".join([*cells[:1], *(f"({cell})" for cell in cells[1:])])


def _beside(ours: Sequence[Reading], public: Sequence[Reading] | None, name: str, form: str) -> str:
    other = f" ({_median(public, name):{form}})" if public else ""
    return f"{_median(ours, name):{form}}{other}"


def _median(readings: Sequence[Reading], name: str) -> float:
    return Spread.of([getattr(reading, name) for reading in readings]).median


def _machine() -> str:
    cores = f"{os.cpu_count()} cores"
    return f"{_processor()}, {cores}, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _corpus(directory: Path) -> str:
    facts = json.loads((directory / "corpus.json").read_text(encoding="utf-8"))
    size, tokens = facts["bytes"] / 1e6, facts["tokens"] / 1e6
    return (
        f"Corpus: {facts['documents']:,} documents from {facts['origin']}, "
        f"{size:.0f} MB of text, {tokens:.1f} M tokens."
    )


if __name__ == "__main__":
    main()
