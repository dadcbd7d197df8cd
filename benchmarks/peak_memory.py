"""How much memory do the text jobs hold at their peak, beyond what the imports take?"""

from __future__ import annotations

from benchmarks.jobs import JOBS, contenders, parse_arguments
from benchmarks.timing import Spread, alternate

_NAMES = (
    "text_parquet",
    "text_parquet_within_shard",
    "text_parquet_blocks",
    "text_parquet_steps",
    "text_jsonl",
)


def main() -> None:
    """Run each text job whole, ours only; print growth in megabytes."""
    arguments = parse_arguments(str(__doc__))
    for name in _NAMES:
        readings = alternate(contenders(name, arguments.corpus)[:1], arguments.rounds)["zephon"]
        print(f"{JOBS[name].title}: +{Spread.of([r.growth_mb for r in readings])} MB")


if __name__ == "__main__":
    main()
