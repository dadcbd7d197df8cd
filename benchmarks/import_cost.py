"""What does `import zephon` cost beside importing numpy, pyarrow and polars, which it needs?"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from benchmarks.timing import Spread

_STATEMENTS = {
    "libraries": "import numpy, pyarrow, polars",
    "zephon": "import zephon",
}


def main() -> None:
    """Start Python with each import in turn; print milliseconds and the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help="runs of each import")
    found = import_seconds(parser.parse_args().rounds)
    for name, seconds in found.items():
        print(f"{name:<10} {Spread.of([1000 * s for s in seconds])} ms")
    print(f"ratio      {ratio(found):.2f}")


def import_seconds(rounds: int) -> dict[str, list[float]]:
    """Time each import in fresh processes, less the start of Python itself."""
    for statement in _STATEMENTS.values():
        _seconds(statement)  # so that every module is compiled
    empty = min(_seconds("pass") for _ in range(3))
    found: dict[str, list[float]] = {name: [] for name in _STATEMENTS}
    for _ in range(rounds):
        for name, statement in _STATEMENTS.items():
            found[name].append(_seconds(statement) - empty)
    return found


def ratio(found: dict[str, list[float]]) -> float:
    """Divide the median of ours by that of the libraries."""
    return Spread.of(found["zephon"]).median / Spread.of(found["libraries"]).median


def _seconds(statement: str) -> float:
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    start = time.perf_counter()
    subprocess.run((sys.executable, "-c", statement), check=True, env=compiled)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
