"""The jobs that benchmarks run, and who does each: Zephon, the roofline loop, the public package.

Like `timing`, this module and the files that start it import the standard library alone; the work
is done in the processes that it starts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.timing import Contender, Reading, alternate, show, start

CORPUS = Path("bench-data")
LENGTH = 2049
PAD = 50256  # GPT-2's end of text, as many pad

Step: TypeAlias = tuple[str, Mapping[str, Any]]
"""A call on a pipeline: its name and its keywords, the same in both packages."""

WRAP: Step = ("pack_flat", {"max_length": LENGTH, "algorithm": "wrap"})


def bins(algorithm: str, number: int = 32) -> Step:
    """Pack whole documents into so many open bins, and pad."""
    keywords = {"algorithm": algorithm, "num_bins": number, "pad_token_id": PAD}
    return ("pack_flat", {"max_length": LENGTH, **keywords})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One way to turn datasets into packed, labelled batches [8, 2048].

    data: folders below the corpus, with the share of draws that each has.
    text: rows hold text, to be encoded with GPT-2; otherwise lists of tokens.
    order: "sequential"; "within_shard", shards in order and the rows of each at random; or
        "blocks", which shuffles within shards and then over eight of the largest shard.
    steps: the calls from rows of tokens to packed rows, in order.
    step_rows: rows of a global step (``global_batch_size``), None for plain lanes.
    passes: how often Zephon reads the corpus: steps end with the lane of fewest tokens, which in
        one pass over 64 lanes of some 560 documents leaves a third of what was read.
    roofline: whether the shortest loop reads this format.
    """

    title: str
    data: Mapping[str, float]
    text: bool = True
    order: str = "sequential"
    steps: tuple[Step, ...] = (WRAP,)
    step_rows: int | None = None
    passes: int = 1
    roofline: bool = True

    def source(self) -> dict[str, Any]:
        """Return the keywords of the work source, the same in both packages."""
        keywords = {
            "mixture": dict(self.data),
            "shuffle_shards": False,
            "shuffle_within_shard": self.order != "sequential",
            "shuffle_block_size": "auto" if self.order == "blocks" else None,
        }
        # Several datasets end with the first that is through, so that none is read twice.
        return keywords if len(self.data) == 1 else {**keywords, "exhausted_policy": "stop"}


_TEXT, _LISTS = {"text-parquet": 1.0}, {"tokens-275": 1.0}

JOBS = {
    "text_parquet": Job(title="Parquet text", data=_TEXT),
    "text_parquet_within_shard": Job(
        title="Parquet text, shuffled within shards", data=_TEXT, order="within_shard"
    ),
    "text_parquet_blocks": Job(
        title="Parquet text, shuffled in blocks", data=_TEXT, order="blocks"
    ),
    "text_parquet_steps": Job(
        title="Parquet text, global steps of 768 rows, 3 passes",
        data=_TEXT,
        step_rows=768,
        passes=3,
    ),
    "text_jsonl": Job(title="JSONL text", data={"text-jsonl": 1.0}, roofline=False),
    "token_lists_2200": Job(
        title="Parquet token lists, mean 2,200", data={"tokens-2200": 1.0}, text=False
    ),
    "token_lists_275": Job(title="Parquet token lists, mean 275", data=_LISTS, text=False),
    "token_lists_first_fit": Job(
        title="same lists of 275, first_fit, 32 bins",
        data=_LISTS,
        text=False,
        steps=(bins("first_fit"),),
    ),
    "token_lists_best_fit": Job(
        title="same lists of 275, best_fit, 32 bins",
        data=_LISTS,
        text=False,
        steps=(bins("best_fit"),),
    ),
    "token_lists_shuffle": Job(
        title="same lists of 275, shuffle of 8,192, wrap",
        data=_LISTS,
        text=False,
        steps=(("shuffle", {"buffer_size": 8192, "seed": 1}), WRAP),
    ),
    # Drawn so that both come to their shares of the tokens: 0.7 / 275 to 0.3 / 2,200.
    "token_lists_mixture": Job(
        title="lists of 275 and 2,200, ensure_mixture of 0.7 and 0.3 of the tokens, wrap",
        data={"tokens-275": 0.949, "tokens-2200": 0.051},
        text=False,
        steps=(("ensure_mixture", {"mixture": {"tokens-275": 0.7, "tokens-2200": 0.3}}), WRAP),
        roofline=False,
    ),
}


def contenders(name: str, corpus: Path = CORPUS) -> tuple[Contender, ...]:
    """List who runs the job; the public package only where its environment was made.

    "public" has that package's own settings. Where no text is encoded, "tuned" has the fastest that
    were found: all work in the caller's thread, rows fetched 4,096 at a time.
    """
    job = JOBS[name]
    tokenizer = str(corpus / "gpt2" / "tokenizer.json")
    encode = ("--tokenizer", tokenizer) if job.text else ()
    ours = (sys.executable, "-m", "benchmarks.ours", name, "--corpus", str(corpus))
    found = [Contender("zephon", ours)]
    if job.roofline:
        (data,) = job.data
        kind = "text" if job.text else "tokens"
        loop = (sys.executable, "-m", "benchmarks.roofline", kind, str(corpus / data), *encode)
        found.append(Contender("roofline", loop))
    public = corpus / "peer-venv" / "bin" / "python"
    if public.exists():
        script = str(Path(__file__).with_name("peers") / "zephon_public.py")
        described = json.dumps({"source": job.source(), "steps": job.steps})
        command = (str(public), script, str(corpus), described, *encode)
        found.append(Contender("public", command))
        if not job.text:
            tuned = ("--runner", "inline", "--fetch", "1", "4096", "--seconds", "5")
            found.append(Contender("tuned", (*command, *tuned)))
    return tuple(found)


def compare(*names: str) -> None:
    """Check and time jobs from the command line of a benchmark file; print what was found."""
    arguments = parse_arguments("Time Zephon against the roofline loop and the public package.")
    for name in names:
        show(JOBS[name].title, timed(name, arguments.rounds, arguments.corpus))


def timed(name: str, rounds: int, corpus: Path) -> dict[str, list[Reading]]:
    """Check our output of the job once, which also warms the spill, then run everybody in turn."""
    found = contenders(name, corpus)
    start((*found[0].command, "--check"))
    return alternate(found, rounds)


def parse_arguments(description: str, rounds: int = 3) -> argparse.Namespace:
    """Read ``--rounds`` and ``--corpus`` from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="runs of each contender")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="what benchmarks.corpus built")
    arguments = parser.parse_args()
    if not (arguments.corpus / "corpus.json").exists():
        parser.error(f"no corpus in {arguments.corpus}: run python -m benchmarks.corpus")
    return arguments
