"""What each packing algorithm costs and what it wastes: `python -m benchmarks.packing`.

Token lists of about 275 tokens become rows of 2,049. Speed is that of whole runs, padding not
counted, and of the policy alone, fed with lengths as a run feeds it. Fill and cut documents are
counted from the placement of what was delivered, checked against a slow count from the records.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import plain
from benchmarks.delivered import Counts, Delivered, count_plainly, padding_of
from benchmarks.jobs import LENGTH, PAD, Job, parse_arguments
from benchmarks.ours import batches, described
from benchmarks.timing import Contender, Reading, Spread, alternate, measure, start
from zephon.exec.policies.best_fit import BestFit
from zephon.exec.policies.best_fit_decreasing import BestFitDecreasing
from zephon.exec.policies.best_fit_wrap import BestFitWrap
from zephon.exec.policies.first_fit import FirstFit
from zephon.exec.policies.policy import Policy, Units
from zephon.exec.policies.wrap import Wrap

DATA = "tokens-275"
POOL, BINS = 1_024, 32
BLOCK = 1_024  # documents that a run pushes at once
LEAST_FILL = 0.995  # what best_fit_decreasing has to reach
COMPARED = 500  # batches that are counted plainly, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One way to pack, as a user asks for it and as the engine builds it."""

    title: str
    keywords: Mapping[str, Any]
    policy: Callable[[], Policy[Any]]

    def job(self, data: str = DATA) -> Job:
        """Describe the job that packs a folder of token lists this way."""
        step = ("pack_flat", {"max_length": LENGTH, "pad_token_id": PAD, **self.keywords})
        return Job(title=self.title, data={data: 1.0}, text=False, steps=(step,))


ALGORITHMS = {
    "wrap": Algorithm(
        title="wrap", keywords={"algorithm": "wrap"}, policy=lambda: Wrap(max_length=LENGTH)
    ),
    "first_fit": Algorithm(
        title=f"first_fit, {BINS} bins",
        keywords={"algorithm": "first_fit", "num_bins": BINS},
        policy=lambda: FirstFit(max_length=LENGTH, num_bins=BINS, components=1),
    ),
    "best_fit": Algorithm(
        title=f"best_fit, {BINS} bins",
        keywords={"algorithm": "best_fit", "num_bins": BINS},
        policy=lambda: BestFit(max_length=LENGTH, num_bins=BINS, components=1),
    ),
    "best_fit_wrap": Algorithm(
        title=f"best_fit_wrap, pool of {POOL:,}",
        keywords={"algorithm": "best_fit_wrap", "candidate_pool_size": POOL},
        policy=lambda: BestFitWrap(max_length=LENGTH, candidate_pool_size=POOL),
    ),
    "best_fit_decreasing": Algorithm(
        title=f"best_fit_decreasing, pool of {POOL:,}",
        keywords={"algorithm": "best_fit_decreasing", "candidate_pool_size": POOL},
        policy=lambda: BestFitDecreasing(max_length=LENGTH, candidate_pool_size=POOL, components=1),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one algorithm makes of the data.

    fill: the share of the delivered rows that documents fill.
    cut: the share of the documents delivered that lie in several rows.
    left_out: the share of the tokens that no row can hold: documents longer than a row.
    microseconds: of the policy alone, a document.
    """

    fill: float
    cut: float
    left_out: float
    microseconds: float


class Lengths:
    """Documents of one component, by arrival number, of which only the tokens are known."""

    def __init__(self, lengths: NDArray[np.int64]) -> None:
        self._lengths = lengths

    def components(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """All are of the first."""
        return np.zeros(len(seqs), np.int64)

    def lengths(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Look the tokens up."""
        return self._lengths[seqs]

    def last_parts(self, seqs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """No document was split."""
        return np.ones(len(seqs), np.bool_)

    def measures(self, name: str, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nobody measures here."""
        raise KeyError(name)

    def weights(self, seq: int) -> NDArray[np.float64] | None:
        """One component has the whole weight."""
        return np.ones(1)


def main() -> None:
    """Count and time every algorithm, each in processes of its own; print a Markdown table."""
    if "--algorithm" in sys.argv:
        _child()
        return
    arguments = parse_arguments(str(__doc__))
    own = (sys.executable, "-m", "benchmarks.packing", "--corpus", str(arguments.corpus))
    contenders = [Contender(name, (*own, "--algorithm", name)) for name in ALGORITHMS]
    found = {
        contender.name: Figures(**json.loads(start((*contender.command, "--count"))[0]))
        for contender in contenders
    }
    readings = alternate(contenders, arguments.rounds)
    print(table(found, readings))
    fill = found["best_fit_decreasing"].fill
    assert fill >= LEAST_FILL, f"best_fit_decreasing fills {fill:.4f}, not {LEAST_FILL}"


def table(found: Mapping[str, Figures], readings: Mapping[str, Sequence[Reading]]) -> str:
    """Lay out what was found, a line an algorithm, as Markdown."""
    lines = [
        "| algorithm | M tokens/s | fill, % | padding, % | cut documents, % "
        "| left out, % of tokens | policy alone, µs a document |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, figures in found.items():
        rate = Spread.of([reading.rate for reading in readings[name]])
        cells = (
            ALGORITHMS[name].title,
            f"{rate.median:.1f} [{rate.least:.1f} to {rate.most:.1f}]",
            f"{100 * figures.fill:.2f}",
            f"{100 * (1 - figures.fill):.2f}",
            f"{100 * figures.cut:.2f}",
            f"{100 * figures.left_out:.2f}",
            f"{figures.microseconds:.2f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def figures_of(algorithm: Algorithm, corpus: Path, data: str = DATA) -> Figures:
    """Run the job once and count; then time the policy alone on the same documents.

    Raises:
        AssertionError: the placement does not say what the records say, or the policy alone fills
            its rows otherwise.
    """
    job = algorithm.job(data)
    pipeline = described(job, corpus)
    delivered, counts = Delivered(), None
    for number, batch in enumerate(batches(pipeline)):
        delivered.add(batch)
        if number == COMPARED - 1:
            counts = delivered.counts()
    (account,) = pipeline.accounting().values()
    slow = count_plainly(islice(batches(described(job, corpus)), COMPARED))
    whole = delivered.counts()
    counts = whole if counts is None else counts
    assert counts == slow, f"the placement says {counts}, the records {slow}"
    lengths = np.concatenate(plain.lengths(corpus / data))
    seconds, alone = min(
        (place(algorithm.policy(), lengths) for _ in range(3)), key=lambda pair: pair[0]
    )
    assert 0 <= alone.rows - whole.rows < 8, f"a run gives {whole}, the policy alone {alone}"
    return Figures(
        fill=whole.fill,
        cut=whole.cut_share,
        left_out=account["tokens_dropped"].get("oversized", 0) / account["tokens_made"],
        microseconds=seconds / len(lengths) * 1e6,
    )


def place(policy: Policy[Any], lengths: NDArray[np.int64]) -> tuple[float, Counts]:
    """Push documents as a run does; return the seconds, and what the rows hold."""
    documents = Lengths(lengths)
    seqs, found = np.arange(len(lengths)), []
    begin = time.perf_counter()
    state = policy.make_state(0)
    for first in range(0, len(lengths), BLOCK):
        block = slice(first, first + BLOCK)
        units = Units.whole(seqs[block], lengths[block], seqs[block])
        found.append(policy.push(state, units, documents))
    found.append(policy.finish(state, documents))
    seconds = time.perf_counter() - begin
    units = Units.concat(found)
    _, in_rows = np.unique(units.seq, return_counts=True)
    tokens = int(units.length.sum())
    return seconds, Counts(
        rows=len(units),
        tokens=tokens,
        padding=len(units) * LENGTH - tokens,
        documents=len(in_rows),
        cut=int((in_rows > 1).sum()),
    )


def _child() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--algorithm", choices=ALGORITHMS, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--count", action="store_true")
    arguments = parser.parse_args()
    algorithm = ALGORITHMS[arguments.algorithm]
    if arguments.count:
        print(json.dumps(asdict(figures_of(algorithm, arguments.corpus))))
    else:
        measure(lambda: _sizes(algorithm.job(), arguments.corpus))


def _sizes(job: Job, corpus: Path) -> Iterator[int]:
    for batch in batches(described(job, corpus)):
        size = batch.to_training(return_labels=True)["input_ids"].numel()
        yield size - padding_of(batch)


if __name__ == "__main__":
    main()
