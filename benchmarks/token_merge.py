"""What mixing by exact tokens costs: `python -m benchmarks.token_merge`.

First the merge alone: documents a second for 2, 10 and 100 components, fed in blocks as a run feeds
it. Then whole jobs of two components from the benchmarks' corpus, with weights that count samples
and with weights that count tokens, in turn.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.jobs import CORPUS
from benchmarks.timing import Contender, alternate, measure, show
from zephon.exec.policies.due_documents import StrandDocuments
from zephon.exec.policies.token_merge import TokenMerge
from zephon.work.course import Courses

BLOCK, MEAN, TICK = 1024, 275, 1024
KINDS = {"text": "text-parquet", "lists": "tokens-275"}
UNITS = ("samples", "tokens")


def main() -> None:
    """Time the merge, then the jobs whose data are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--batches", type=int, default=3000)
    parser.add_argument("--job", nargs=2, help="run one job here: its kind and unit")
    arguments = parser.parse_args()
    if arguments.job:
        kind, unit = arguments.job
        measure(lambda: islice(_sizes(kind, unit, arguments.corpus), arguments.batches))
        return
    for components in (2, 10, 100):
        rates = [merged(components, 200_000) for _ in range(arguments.rounds)]
        print(
            f"{components} components: {statistics.median(rates) / 1e6:.2f} M documents a second "
            f"[{min(rates) / 1e6:.2f} to {max(rates) / 1e6:.2f}]"
        )
    if not (arguments.corpus / "corpus.json").exists():
        print(f"no jobs: no corpus in {arguments.corpus}; run python -m benchmarks.corpus")
        return
    here = (sys.executable, "-m", "benchmarks.token_merge", "--corpus", str(arguments.corpus))
    for kind in KINDS:
        found = [
            Contender(unit, (*here, "--batches", str(arguments.batches), "--job", kind, unit))
            for unit in UNITS
        ]
        show(f"two components of {kind}", alternate(found, arguments.rounds))


def merged(components: int, documents: int) -> float:
    """Merge so many documents; give how many a second, and check that shares were kept."""
    rng = np.random.default_rng(components)
    weights = rng.random(components) + 0.1
    weights /= weights.sum()
    none = [None] * components
    rule = TokenMerge(
        Courses.constant(weights),
        lengths=none,
        stops=[False] * components,
        must_draw=none,
        budgets=none,
    )
    state, read = rule.make_state(), [0] * components
    lengths = rng.integers(1, 2 * MEAN, BLOCK)
    count, begin = 0, time.perf_counter()
    while count < documents:
        count += len(rule.decide(state, TICK))
        if state.wants is not None:
            first = read[state.wants]
            read[state.wants] += BLOCK
            draws = np.arange(first, first + BLOCK)
            rule.add(state, state.wants, StrandDocuments(draws, lengths, draws * 0), first + BLOCK)
    seconds = time.perf_counter() - begin
    emitted = np.array([queue.tokens for queue in state.queues])
    assert np.abs(emitted - weights * emitted.sum()).max() <= lengths.max()
    return count / seconds


def _sizes(kind: str, unit: str, corpus: Path) -> Iterator[int]:
    from zephon import Dataset, Pipeline, StaticMixtureWorkSource  # late: parents import little

    path = str(corpus / KINDS[kind])
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_path("a", path), Dataset.from_path("b", path)],
        mixture={"a": 0.7, "b": 0.3},
        exhausted_policy="repeat",
        mixture_unit=unit,
    )
    pipeline = Pipeline(source)
    if kind == "text":
        pipeline = pipeline.tokenize(tokenizer_id=str(corpus / "gpt2"), field="text")
    for batch in pipeline.pack_flat(max_length=2049, algorithm="wrap").batch(8):
        yield batch.to_training(return_labels=True)["input_ids"].numel()


if __name__ == "__main__":
    main()
