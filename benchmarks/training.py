"""What `to_training` costs, by rows, tokens and documents: `python -m benchmarks.training`.

All outputs at once: labels, masks, document bounds and numbers. Batches are packed from lists in
memory. Beside the time stands how many bytecodes of Python one call runs: the same number for any
number of tokens and documents, which is how one sees that nothing is done for each.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType
from typing import Any

import numpy as np
import torch

from benchmarks.timing import Spread
from zephon import Dataset, InMemoryShard, Pipeline, SampleBatch, StaticMixtureWorkSource

EVERYTHING: Mapping[str, Any] = {
    "return_labels": True,
    "return_loss_mask": True,
    "return_padding_mask": True,
    "return_num_valid_tokens": True,
    "return_cu_seqlens": True,
    "return_document_ids": True,
    "mask_document_boundaries": True,
}
MOST_BYTECODES = 1.05  # times those of the smallest batch, so that a branch more is no alarm
MOST_GROWTH = 2.5  # times the time for twice the documents
_IN_TURN = 10  # calls of a shape, before the next one has its turn


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows, tokens of a row, and documents of a row."""

    rows: int
    length: int
    documents: int


SHAPES = (
    Shape(8, 2_049, 7),
    *(Shape(1, 131_073, documents) for documents in (500, 1_000, 2_000, 4_000, 8_000)),
    Shape(8, 131_073, 4_000),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one shape took: milliseconds of each call, and bytecodes of one."""

    milliseconds: Spread
    bytecodes: int


def main() -> None:
    """Time every shape; print a Markdown table, and what another document costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="timed calls of each shape")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = measured(SHAPES, arguments.calls)
    print(table(found))
    few, many = ([figures.bytecodes for figures in found.values()][i] for i in (0, -1))
    assert many <= MOST_BYTECODES * few, f"{many} bytecodes for large rows, {few} for small ones"
    for shape, twice in doubled(list(found)):
        times = found[twice].milliseconds.median / found[shape].milliseconds.median
        assert times <= MOST_GROWTH, f"{twice} takes {times:.1f} times as long as {shape}"


def table(found: Mapping[Shape, Figures]) -> str:
    """Lay out the figures as Markdown; twice the documents tell what another one costs."""
    added = {
        twice: (found[twice].milliseconds.median - found[shape].milliseconds.median)
        / (twice.documents - shape.documents)
        for shape, twice in doubled(list(found))
    }
    lines = [
        "| rows x tokens | documents a row | ms a call | ns for each document more "
        "| ns a token | bytecodes a call |",
        "|---|---|---|---|---|---|",
    ]
    for shape, figures in found.items():
        cells = (
            f"{shape.rows} x {shape.length:,}",
            f"{shape.documents:,}",
            str(figures.milliseconds),
            f"{added[shape] * 1e6:.0f}" if shape in added else "",
            f"{figures.milliseconds.median * 1e6 / shape.rows / shape.length:.1f}",
            f"{figures.bytecodes:,}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def doubled(shapes: Sequence[Shape]) -> list[tuple[Shape, Shape]]:
    """Pair shapes with those that follow and have twice the documents, all else equal."""
    pairs = pairwise(shapes)
    return [(a, b) for a, b in pairs if b == Shape(a.rows, a.length, 2 * a.documents)]


def measured(shapes: Sequence[Shape], calls: int) -> dict[Shape, Figures]:
    """Check what a batch of each shape gives, count its bytecodes and time it, in turn."""
    batches: dict[Shape, SampleBatch] = {}
    for shape in shapes:
        batches[shape], lengths = packed(shape)
        check(batches[shape], shape, lengths)
    bytecodes = {shape: bytecodes_of(batch) for shape, batch in batches.items()}
    seconds: dict[Shape, list[float]] = {shape: [] for shape in shapes}
    gc.collect()
    while len(seconds[shapes[-1]]) < calls:
        for shape, batch in batches.items():
            batch.to_training(**EVERYTHING)  # the memory that it takes is mapped anew
            seconds[shape] += [seconds_of(batch) for _ in range(_IN_TURN)]
    return {
        shape: Figures(Spread.of([1e3 * each for each in seconds[shape]]), bytecodes[shape])
        for shape in shapes
    }


def seconds_of(batch: SampleBatch) -> float:
    """Time one call."""
    begin = time.perf_counter()
    batch.to_training(**EVERYTHING)
    return time.perf_counter() - begin


def packed(shape: Shape) -> tuple[SampleBatch, np.ndarray]:
    """Pack documents of random lengths that fill rows exactly into one batch.

    Returns:
        The batch, and the tokens of each document, shape [rows, documents].
    """
    draw = np.random.default_rng(shape.documents)
    cuts = [
        np.sort(draw.permutation(shape.length - 1)[: shape.documents - 1]) + 1
        for _ in range(shape.rows)
    ]
    lengths = np.diff(np.stack(cuts), axis=1, prepend=0, append=shape.length)
    documents = [{"input_ids": np.arange(n, dtype=np.int32)} for n in lengths.ravel().tolist()]
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_dict("memory", {0: InMemoryShard(documents)})],
        mixture={"memory": 1.0},
        shuffle_shards=False,
    )
    pipeline = Pipeline(source).pack_flat(max_length=shape.length, algorithm="wrap")
    (batch,) = pipeline.batch(shape.rows)
    assert isinstance(batch, SampleBatch)
    return batch, lengths


def check(batch: SampleBatch, shape: Shape, lengths: np.ndarray) -> None:
    """See that a batch's outputs are those of its documents, one after another.

    Raises:
        AssertionError: they are not.
    """
    found = batch.to_training(**EVERYTHING)
    shown = shape.length - 1  # labels are shifted, so that the last token is no input
    for row in range(shape.rows):
        tokens = np.concatenate([np.arange(n) for n in lengths[row]])
        assert np.array_equal(found["input_ids"][row], tokens[:-1]), "input_ids"
        last = np.cumsum(lengths[row])[:-1] - 1
        labels = tokens[1:].copy()
        labels[last] = -100
        assert np.array_equal(found["labels"][row], labels), "labels"
        numbers = np.repeat(np.arange(shape.documents), lengths[row])[:-1]
        assert np.array_equal(found["document_ids"][row], numbers), "document_ids"
        bounds = np.unique([0, *(last + 1), shown])
        assert np.array_equal(np.unique(found["cu_seqlens"][row]), bounds), "cu_seqlens"
    assert not found["padding_mask"].any()
    assert found["num_valid_tokens"] == shape.rows * (shown - shape.documents + 1)


def bytecodes_of(batch: SampleBatch) -> int:
    """Count the bytecodes that Python runs in one call."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    batch.to_training(**EVERYTHING)  # imports and caches
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        batch.to_training(**EVERYTHING)
    finally:
        sys.settrace(before)
    return count


if __name__ == "__main__":
    main()
