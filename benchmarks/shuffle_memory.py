"""What a shuffle of 8,192 costs in memory: `python -m benchmarks.shuffle_memory`.

The same job with a shuffle and without one, each in processes of their own, in turn. What the
shuffle costs is how much more resident memory the process had at its peak (median of each), beside
the bytes of the tokens that were held: four a token, counted by the pipeline's own accounting.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.jobs import WRAP, Job, Step, parse_arguments
from benchmarks.timing import Contender, Reading, Spread, alternate, measure, start

BUFFER = 8_192
BYTES = 4  # of a token, until it is laid into a batch
TARGET = 3.0  # times the tokens held

_SHUFFLE: Step = ("shuffle", {"buffer_size": BUFFER, "seed": 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is shuffled: documents of a folder, or the rows that they are packed into.

    batches: how many the job gives, of 8 rows; enough to fill the buffer several times.
    """

    title: str
    data: str
    packed: bool
    batches: int

    def job(self, shuffled: bool) -> Job:
        """Describe the job with the shuffle or without it."""
        steps = (WRAP, _SHUFFLE) if self.packed else (_SHUFFLE, WRAP)
        return Job(
            title=self.title,
            data={self.data: 1.0},
            text=False,
            steps=steps if shuffled else (WRAP,),
        )


PLACES = {
    "lists_275": Place(
        title=f"{BUFFER:,} lists of 275", data="tokens-275", packed=False, batches=4_000
    ),
    "lists_2200": Place(
        title=f"{BUFFER:,} lists of 2,200", data="tokens-2200", packed=False, batches=2_500
    ),
    "rows": Place(
        title=f"{BUFFER:,} packed rows of 2,049", data="tokens-275", packed=True, batches=3_000
    ),
}
_KINDS = ("without", "shuffled")


def main() -> None:
    """Run each job with a shuffle and without one, in turn; print a Markdown table."""
    if "--run" in sys.argv:
        _child()
        return
    arguments = parse_arguments(str(__doc__), rounds=5)
    lines = []
    for name, place in PLACES.items():
        own = (sys.executable, "-m", "benchmarks.shuffle_memory", "--corpus", str(arguments.corpus))
        commands = {kind: (*own, "--run", name, kind) for kind in _KINDS}
        held = [int(start((*commands[kind], "--held"))[0]) for kind in _KINDS]
        runs = [Contender(kind, command) for kind, command in commands.items()]
        lines.append(line(place, held[1] - held[0], alternate(runs, arguments.rounds)))
    print(
        "| shuffle | tokens held, MB | peak without, MB | peak with, MB | growth, MB "
        f"| times the tokens (target {TARGET:.0f}) |\n|---|---|---|---|---|---|"
    )
    print("\n".join(lines))


def line(place: Place, held: int, readings: Mapping[str, Sequence[Reading]]) -> str:
    """Compare growth with what is held, as one line of the table.

    Args:
        place: what was shuffled.
        held: tokens that the shuffle holds.
        readings: of runs "without" and "shuffled".
    """
    peaks = [Spread.of([reading.growth_mb for reading in readings[kind]]) for kind in _KINDS]
    growth, tokens = peaks[1].median - peaks[0].median, held * BYTES / 1e6
    spreads = [f"{peak.median:.0f} [{peak.least:.0f} to {peak.most:.0f}]" for peak in peaks]
    cells = (place.title, f"{tokens:.1f}", *spreads, f"{growth:+.0f}", f"{growth / tokens:.1f}x")
    return f"| {' | '.join(cells)} |"


def _child() -> None:
    from benchmarks.ours import batches, described  # late: the parent's imports weigh on children

    parser = argparse.ArgumentParser()
    parser.add_argument("--run", nargs=2, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--held", action="store_true")
    arguments = parser.parse_args()
    name, kind = arguments.run
    place = PLACES[name]
    pipeline = described(place.job(kind == "shuffled"), arguments.corpus)

    def sizes() -> Iterator[int]:
        for batch in islice(batches(pipeline), place.batches):
            yield batch.to_training(return_labels=True)["input_ids"].numel()

    if arguments.held:
        for _ in sizes():
            pass
        print(sum(found["tokens_held"] for found in pipeline.accounting().values()))
    else:
        measure(sizes)


if __name__ == "__main__":
    main()
