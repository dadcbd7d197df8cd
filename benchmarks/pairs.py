"""Runs of a job with a feature and without it, in turn: how much more processor time it takes.

What costs a few percent at most drowns in the noise of a shared machine's clock, but not in
processor time over 15 pairs; the figure is the median, with its 95 % interval.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.jobs import JOBS, Job
from benchmarks.resuming import own
from benchmarks.timing import Spread

PAIRS = 15
MOST = 1.05  # times the processor time of a run without the feature


def show_pairs(module: str, feature: str, jobs: Sequence[str], corpus: Path, rounds: int) -> None:
    """Run pairs of jobs, and print a Markdown table.

    Args:
        module: a benchmark file, which runs one with ``--run job kind`` (``run``).
        feature: what is left out in the kind "without".
        jobs: keys of ``JOBS``.
        corpus: what they read.
        rounds: how many pairs.
    """
    print(
        f"| job | processor time with {feature}, times without (must: {MOST}) | s with | s without "
        "|\n|---|---|---|---|"
    )
    for name in jobs:
        found: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(rounds):
            for kind, seconds in found.items():
                seconds.append(own(module, corpus, "--run", name, kind)["seconds"])
        print(line(JOBS[name].title, found), flush=True)


def line(title: str, seconds: Mapping[str, Sequence[float]]) -> str:
    """Lay out the pairs of one job, as one line of the table."""
    pairs = zip(seconds["with"], seconds["without"], strict=True)
    ratios = sorted(one / other for one, other in pairs)
    least, most = interval(ratios)
    median = Spread.of(ratios).median
    cells = (
        f"{median:.3f} [{least:.3f} to {most:.3f}]",
        *(str(Spread.of(seconds[kind])) for kind in ("with", "without")),
    )
    return f"| {title} | {' | '.join(cells)} |"


def interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Give the 95 % interval of the median of some figures, in order, by their ranks.

    Source:
        The number of figures below the median is binomial; the ranks are the outermost between
        which it lies in 95 of 100 cases. 15 figures: the fourth and the twelfth.

    >>> interval(range(1, 16))
    (4, 12)
    """
    count = len(ordered)
    below, share, rank = 0.0, 0.5**count, 0
    while below + share <= 0.025 and rank < count // 2:
        below += share
        rank += 1
        share *= (count - rank + 1) / rank
    rank = max(rank - 1, 0)
    return ordered[rank], ordered[count - 1 - rank]


def run(job: Job, corpus: Path) -> dict[str, Any]:
    """Run a job to its end.

    Returns:
        Processor seconds of this process, imports not counted, and how many tokens were given.
    """
    from benchmarks.ours import batches, described  # late: the parent need not load it

    begin, tokens = time.process_time(), 0
    for batch in batches(described(job, corpus)):
        tokens += batch.to_training(return_labels=True)["input_ids"].numel()
    return {"seconds": time.process_time() - begin, "tokens": tokens}
