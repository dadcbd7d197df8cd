"""How fast are JSON lines, beside Parquet and the public package: `python -m benchmarks.files`.

Documents of about 5,000 and of about 300 bytes, the same in both formats, become training batches;
lines are found in memory; rows are read at random, one by one and in shuffled order, which the
public package does by reading a file from its front for each.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.jobs import CORPUS, Job
from benchmarks.timing import Contender, Spread, alternate, measure, show, start

SIZES = {5000: 0.60, 300: 0.35}
"""Bytes of a document, and how much of the rate of Parquet that of JSON lines must be."""

SHARDS, SHARD_BYTES = 1, 128 << 20
ROWS = {
    "at_random": {"zephon": 4000, "public": 48},
    "shuffled": {"zephon": 10_000, "public": 1000},
}
"""Rows that a contender reads: the public package takes some 0.05 s for each at random."""


def main() -> None:
    """Make the documents if they are not there; run everybody in turn; print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each contender")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="what benchmarks.corpus built")
    parser.add_argument("--run", nargs=2, metavar=("WHAT", "FOLDER"), help="one part, by itself")
    arguments = parser.parse_args()
    corpus: Path = arguments.corpus
    if arguments.run:
        what, folder = arguments.run
        _PARTS[what](corpus, folder)
        return
    own = (sys.executable, "-m", "benchmarks.files", "--corpus", str(corpus), "--run")
    for size, least in SIZES.items():
        if not (corpus / f"documents-{size}-jsonl").exists():
            start((*own, "make", str(size)))
        _compare_batches(own, size, least, arguments.rounds)
    for size in SIZES:
        for what in ("at_random", "shuffled"):
            _compare_rows(corpus, own, what, size, arguments.rounds)


def _compare_batches(own: tuple[str, ...], size: int, least: float, rounds: int) -> None:
    kinds = ("jsonl", "parquet")
    runs = [Contender(kind, (*own, "batches", f"documents-{size}-{kind}")) for kind in kinds]
    found = alternate(runs, rounds)
    show(f"documents of {size:,} bytes to batches", found)
    pairs = zip(*(found[kind] for kind in kinds), strict=True)
    ratio = Spread.of([lines.rate / parquet.rate for lines, parquet in pairs])
    print(f"  JSON lines at {ratio} of the rate of Parquet (must: {least})")
    index = json.loads(start((*own, "index", f"documents-{size}-jsonl"))[0])
    print(
        f"  lines found in memory at {Spread.of(index)} GB a second of processor (must: 1)",
        flush=True,
    )


def _compare_rows(corpus: Path, own: tuple[str, ...], what: str, size: int, rounds: int) -> None:
    folder = f"documents-{size}-jsonl"
    commands: dict[str, tuple[str, ...]] = {"zephon": (*own, what, folder)}
    python = corpus / "peer-venv" / "bin" / "python"
    if python.exists():
        script = Path(__file__).with_name("peers") / "zephon_files.py"
        picks = [what, str(corpus / folder), str(ROWS[what]["public"])]
        commands["public"] = (str(python), str(script), *picks)
    found: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            reading = json.loads(start(command)[0].splitlines()[-1])
            found[name].append(reading["rows"] / reading["seconds"])
    print(f"rows of {size:,} bytes, {what.replace('_', ' ')}, a second")
    for name, rates in found.items():
        print(f"  {name:<9} {Spread.of(rates)}")
    if "public" in found:
        pairs = zip(found["zephon"], found["public"], strict=True)
        print(f"  ratio {Spread.of([one / other for one, other in pairs])} (must: 100)", flush=True)


def _make(corpus: Path, size: str) -> None:
    """Cut the corpus's text into documents of one size, and write them in both formats."""
    import pyarrow as pa  # late, as all that a child needs: the parent stays small
    import pyarrow.parquet as pq

    texts = pq.read_table(corpus / "text-parquet", columns=["text"]).column(0).to_pylist()
    whole = "\n".join(texts)
    step = max(1, int(int(size) * len(whole) / len(whole.encode())))
    documents, at = [], 0
    for shard in range(SHARDS):
        documents, held = [], 0
        while held < SHARD_BYTES:
            documents.append(whole[at : at + step])
            held, at = held + int(size), (at + step) % (len(whole) - step)
        rows = [{"id": n, "text": text, "url": f"/{n}"} for n, text in enumerate(documents)]
        for kind in ("jsonl", "parquet"):
            (corpus / f"documents-{size}-{kind}").mkdir(exist_ok=True)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path = corpus / f"documents-{size}-jsonl" / f"{shard:02}.jsonl"
        path.write_text(lines, encoding="utf-8")
        target = corpus / f"documents-{size}-parquet" / f"{shard:02}.parquet"
        group = max(1, (2 << 20) // int(size))
        pq.write_table(pa.Table.from_pylist(rows), target, row_group_size=group)


def _batches(corpus: Path, folder: str) -> None:
    """Make training batches of all documents, as the other benchmarks of text do."""
    import torch

    from benchmarks.ours import batches, described

    torch.set_num_threads(1)
    job = Job(title=folder, data={folder: 1.0})

    def sizes() -> Any:
        for batch in batches(described(job, corpus)):
            yield batch.to_training(return_labels=True)["input_ids"].numel()

    measure(sizes)


def _index(corpus: Path, folder: str) -> None:
    """Find the lines of text in memory, a few times; print GB a second of processor time."""
    import io

    from zephon.io.formats.line_blocks import index_lines

    rates = []
    text = b"".join(path.read_bytes() for path in sorted((corpus / folder).iterdir()))
    for _ in range(7):
        begin = time.process_time()
        found = index_lines(io.BytesIO(text))
        rates.append(len(text) / (time.process_time() - begin) / 1e9)
        assert found.first_rows[-1] == text.count(b"\n")
    print(json.dumps(rates))


def _at_random(corpus: Path, folder: str) -> None:
    from benchmarks.peers import zephon_files

    zephon_files.at_random(str(corpus / folder), ROWS["at_random"]["zephon"])


def _shuffled(corpus: Path, folder: str) -> None:
    from benchmarks.peers import zephon_files

    zephon_files.shuffled(str(corpus / folder), ROWS["shuffled"]["zephon"])


_PARTS: dict[str, Callable[[Path, str], None]] = {
    "make": _make,
    "batches": _batches,
    "index": _index,
    "at_random": _at_random,
    "shuffled": _shuffled,
}

if __name__ == "__main__":
    main()
