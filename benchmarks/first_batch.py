"""How long does a process wait for its first batch of Parquet text, once it has imported?"""

from __future__ import annotations

from benchmarks.jobs import contenders, parse_arguments
from benchmarks.timing import Contender, Spread, alternate


def main() -> None:
    """Run Zephon and the public package for one batch each, in turn."""
    arguments = parse_arguments(str(__doc__), rounds=5)
    short = {"zephon": ("--batches", "1"), "public": ("--seconds", "0")}
    found = [
        Contender(contender.name, contender.command + short[contender.name])
        for contender in contenders("text_parquet", arguments.corpus)
        if contender.name in short
    ]
    for name, readings in alternate(found, arguments.rounds).items():
        print(f"{name:<10} first batch {Spread.of([r.first_batch for r in readings])} s")


if __name__ == "__main__":
    main()
