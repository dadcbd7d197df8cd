"""The tour: make data, train a tokenizer, read the plan, stream, look at a row, compare ranks.

Every call of Zephon's that it makes is one that a training script would make.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np

from zephon import __version__
from zephon.demo.material import Made, make_code, make_prose, modules
from zephon.demo.progress import Progress
from zephon.demo.ranks import batches, step_hashes
from zephon.demo.tokenizer import decode, train
from zephon.errors import DatasetError, ExecutionError
from zephon.io import Dataset
from zephon.pipeline import Pipeline
from zephon.types import SampleBatch
from zephon.work import MixtureSpec, StaticMixtureWorkSource

SUMMARY = "turn the running Python's own files into training batches; needs no download"

_WEIGHTS = {"prose": 0.7, "code": 0.3}
_LENGTH = 2_049  # one more than the model sees: inputs and labels are shifted by one
_STEP_ROWS = 48
_RANKS = (1, 2, 3, 4, 8)
_SHOWN_LINES, _SHOWN_COLUMNS = 3, 84  # of each document in the decoded row
_PASSES = 10  # of the slower dataset
_WIDTH = 100


_MARKER = ".zephon-demo"  # in directories that a demo made, and may write again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `zephon demo` takes."""
    parser.add_argument("--data", type=Path, help="keep the data in this directory")
    parser.add_argument("--documents", type=_count, help="take so many documents of each dataset")
    parser.add_argument("--batches", type=_count, help="stream so many batches, not all")
    parser.add_argument(
        "--steps", type=_count, default=3, help="global steps to compare (default 3)"
    )


def _count(text: str) -> int:
    """Read an argument that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Give the tour; return 0 if all rank counts gave the same steps, else 1."""
    print(f"Zephon {__version__}: training batches from the files of Python {_python()}\n")
    with _directory(arguments.data) as directory:
        made = _make_data(directory, arguments.documents)
        _train_tokenizer(directory, made)
        source = _source(directory, passes=_PASSES)
        pipeline = _describe(source, directory).batch(microbatch_size=8)
        print("\nPlan")
        for line in pipeline.explain().splitlines():
            print(_folded(line))
        batch = _stream(pipeline, source, arguments.batches)
        _show_row(directory, batch)
        return _compare_ranks(directory, arguments.steps)


def _source(directory: Path, *, passes: int) -> StaticMixtureWorkSource:
    return StaticMixtureWorkSource(
        datasets=[Dataset.from_path(name, str(directory / name)) for name in _WEIGHTS],
        mixture=MixtureSpec(_WEIGHTS),
        seed=42,
        shuffle_within_shard=True,
        stop_after_passes=passes,
    )


def _describe(source: StaticMixtureWorkSource, directory: Path) -> Pipeline:
    """Describe the way from text to packed rows, the main job."""
    return (
        Pipeline(source)
        .tokenize(tokenizer_id=str(directory / "tokenizer"), field="text", parallelism=2)
        .pack_flat(max_length=_LENGTH, algorithm="wrap")
    )


def _make_data(directory: Path, limit: int | None) -> list[Made]:
    print(f"Data, in {directory}")
    sources = modules()
    made = [
        make_prose(directory / "prose", sources, limit),
        make_code(directory / "code", sources, limit),
    ]
    for dataset in made:
        count = f"{len(dataset.texts):,} documents"
        print(f"  {dataset.name:<6} {count:>16} {dataset.size / 1e6:6.1f} MB   {dataset.kind}")
    return made


def _train_tokenizer(directory: Path, made: Sequence[Made]) -> None:
    started = time.perf_counter()
    texts = [text for dataset in made for text in dataset.texts]
    entries = train(directory / "tokenizer", texts)
    seconds = time.perf_counter() - started
    print(f"  tokenizer: byte-level BPE, {entries:,} entries, trained on these in {seconds:.1f} s")


def _stream(pipeline: Pipeline, source: StaticMixtureWorkSource, limit: int | None) -> SampleBatch:
    """Run the pipeline, show how it goes, and return the first batch."""
    print(f"\nBatches: 8 rows of {_LENGTH - 1:,} tokens, with labels; shares count documents")
    started = time.perf_counter()
    stream = islice(batches(pipeline), limit)
    first = next(stream, None)
    if first is None:
        raise ExecutionError("demo: wanted at least one batch, got none; take more --documents")
    first.to_training(return_labels=True)  # what a training loop would take
    torch = ", loading torch included" if "torch" in sys.modules else ""
    print(f"  first batch after {time.perf_counter() - started:.2f} s{torch}")
    progress = Progress(sys.stdout, total=source.total_samples, targets=_WEIGHTS)
    for batch in stream:
        batch.to_training(return_labels=True)
        if progress.due():
            progress.show(*_counted(pipeline))
    progress.close(*_counted(pipeline))
    return first


def _counted(pipeline: Pipeline) -> tuple[dict[str, int], dict[str, int]]:
    """Return the documents drawn and the tokens handed out so far, by dataset."""
    account = pipeline.accounting()
    return (
        {name: account[name]["rows_drawn"] for name in _WEIGHTS},
        {name: account[name]["tokens_delivered"] for name in _WEIGHTS},
    )


def _show_row(directory: Path, batch: SampleBatch) -> None:
    """Print a row of a batch as text, one in which a handful of documents meet."""
    row = min(batch.records, key=lambda record: abs(len(record.meta.contribution_refs()) - 5))
    tokens, positions = np.asarray(row.payload["input_ids"]), np.asarray(row.payload["positions"])
    starts = np.flatnonzero(positions == 0)
    print(f"\nOne row of the first batch, decoded: {len(starts)} documents meet in it")
    parts = zip(starts, [*starts[1:], len(tokens)], row.meta.contribution_cursors(), strict=True)
    for start, stop, cursor in parts:
        dataset, shard, line = cursor.sample_id
        name = list(_WEIGHTS)[dataset]
        print(f"  == {name}, shard {shard}, row {line}: tokens {start} to {stop}")
        lines = decode(directory / "tokenizer", tokens[start:stop].tolist()).splitlines()
        for line in [line for line in lines if line.strip()][:_SHOWN_LINES]:
            print(f"     {line[:_SHOWN_COLUMNS].rstrip()}")
        print(f"     ({len(lines)} lines)")


def _compare_ranks(directory: Path, steps: int) -> int:
    """Print the hashes of the first steps for each rank count; return 0 if they are equal."""
    print(f"\nGlobal steps of {_STEP_ROWS} rows: SHA-256 of what the ranks hold, each a pipeline")
    print("  step  " + "".join(f"{_ranks(ranks):<14}" for ranks in _RANKS).rstrip())
    columns = [
        step_hashes(
            lambda: _describe(_source(directory, passes=100), directory),
            ranks=ranks,
            rows=_STEP_ROWS,
            steps=steps,
        )
        for ranks in _RANKS
    ]
    shared = min(map(len, columns))
    columns = [column[:shared] for column in columns]
    for step, hashes in enumerate(zip(*columns, strict=True)):
        print(f"  {step:>4}  " + "".join(f"{text[:12]:<14}" for text in hashes).rstrip())
    if shared < steps:
        print(f"  the data end after {shared} steps; take more --documents for {steps}")
    if not shared:
        return 1
    equal = all(column == columns[0] for column in columns)
    print("  equal: the same rows in the same order" if equal else "  NOT EQUAL: a bug in Zephon")
    return 0 if equal else 1


def _folded(line: str) -> str:
    """Break a line of the plan where it is too wide, and set off what goes on."""
    start = " " * (len(line) - len(line.lstrip(" └─")) + 6)
    return textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent=f"  {start}")


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


@contextmanager
def _directory(wanted: Path | None) -> Iterator[Path]:
    """Lend a directory: the caller's, which stays, or a temporary one, which goes."""
    if wanted is not None:
        try:
            wanted.mkdir(parents=True, exist_ok=True)
            marker = wanted / _MARKER
            if any(wanted.iterdir()) and not marker.exists():
                raise DatasetError(
                    f"demo: --data must be a new directory or one of an earlier demo, "
                    f"{str(wanted)!r} holds other files; name another"
                )
            marker.touch()
        except OSError as exc:
            raise DatasetError(
                f"demo: --data must be a directory that can be written, got {str(wanted)!r}: {exc}"
            ) from exc
        yield wanted
    else:
        with tempfile.TemporaryDirectory(prefix="zephon-demo-") as name:
            yield Path(name)


def _python() -> str:
    return platform.python_version()
