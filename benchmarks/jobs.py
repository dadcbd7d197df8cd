"""The jobs that benchmarks run, and who does each: Zephon, the roofline loop, the public package.

Like `timing`, this module and the files that start it import the standard library alone; the work
is done in the processes that it starts.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Contender, Reading, alternate, show, start

CORPUS = Path("bench-data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One way to turn a dataset into packed, labelled batches [8, 2048].

    data: the folder below the corpus.
    text: rows hold text, to be encoded with GPT-2; otherwise lists of tokens.
    order: "sequential"; "within_shard", shards in order and the rows of each at random; or
        "blocks", which shuffles within shards and then over eight of the largest shard.
    step_rows: rows of a global step (``global_batch_size``), None for plain lanes.
    passes: how often Zephon reads the corpus: steps end with the lane of fewest tokens, which in
        one pass over 64 lanes of some 560 documents leaves a third of what was read.
    roofline: whether the shortest loop reads this format.
    """

    title: str
    data: str
    text: bool = True
    order: str = "sequential"
    step_rows: int | None = None
    passes: int = 1
    roofline: bool = True


JOBS = {
    "text_parquet": Job(title="Parquet text", data="text-parquet"),
    "text_parquet_within_shard": Job(
        title="Parquet text, shuffled within shards", data="text-parquet", order="within_shard"
    ),
    "text_parquet_blocks": Job(
        title="Parquet text, shuffled in blocks", data="text-parquet", order="blocks"
    ),
    "text_parquet_steps": Job(
        title="Parquet text, global steps of 768 rows, 3 passes",
        data="text-parquet",
        step_rows=768,
        passes=3,
    ),
    "text_jsonl": Job(title="JSONL text", data="text-jsonl", roofline=False),
    "token_lists_2200": Job(
        title="Parquet token lists, mean 2,200", data="tokens-2200", text=False
    ),
    "token_lists_275": Job(title="Parquet token lists, mean 275", data="tokens-275", text=False),
}


def contenders(name: str, corpus: Path = CORPUS) -> tuple[Contender, ...]:
    """List who runs the job; the public package only where its environment was made."""
    job = JOBS[name]
    data, tokenizer = str(corpus / job.data), str(corpus / "gpt2" / "tokenizer.json")
    encode = ("--tokenizer", tokenizer) if job.text else ()
    ours = (sys.executable, "-m", "benchmarks.ours", name, "--corpus", str(corpus))
    found = [Contender("zephon", ours)]
    if job.roofline:
        kind = "text" if job.text else "tokens"
        loop = (sys.executable, "-m", "benchmarks.roofline", kind, data, *encode)
        found.append(Contender("roofline", loop))
    public = corpus / "peer-venv" / "bin" / "python"
    if public.exists():
        script = str(Path(__file__).with_name("peers") / "zephon_public.py")
        command = (str(public), script, data, *encode, "--order", job.order)
        found.append(Contender("public", command))
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
