"""The shortest loop that does the main job: what any loader on this machine could reach at best.

`python -m benchmarks.roofline text DIRECTORY` reads Parquet row groups with the text column alone,
one group ahead on a thread, encodes each with one call, and copies the tokens into new buffers,
int64 [8, 2049]. It knows no special tokens, positions, labels, mixing, order or resuming. `tokens`
does the same from lists of tokens, without the encoding.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gigatoken
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.timing import measure

ROWS, LENGTH = 8, 2049
Tokens = NDArray[np.int32]


def main() -> None:
    """Run the loop once and print its reading."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("text", "tokens"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tokenizer", help="the path of a tokenizer.json, for text")
    arguments = parser.parse_args()
    if arguments.kind == "text":
        measure(lambda: _buffers(_encoded(arguments.directory, arguments.tokenizer)))
    else:
        measure(lambda: _buffers(_lists(arguments.directory)))


def _encoded(directory: Path, tokenizer: str) -> Iterator[Tokens]:
    fast = gigatoken.Tokenizer(tokenizer)
    for column in _groups(directory, "text"):
        texts = column.cast(pa.large_binary()).to_pylist()
        layout: Any = fast.encode_batch(texts, parallel=False).layout
        yield layout.content.data.view(np.int32)


def _lists(directory: Path) -> Iterator[Tokens]:
    for column in _groups(directory, "input_ids"):
        yield column.flatten().to_numpy()


def _groups(directory: Path, column: str) -> Iterator[Any]:
    """Yield this column of every row group as an Arrow array; the next one is read meanwhile."""

    def read(path: Path, group: int) -> Any:
        table = pq.ParquetFile(path).read_row_group(group, columns=[column], use_threads=False)
        (only,) = table.column(column).chunks
        return only

    places = [
        (path, group)
        for path in sorted(directory.glob("*.parquet"))
        for group in range(pq.read_metadata(path).num_row_groups)
    ]
    with ThreadPoolExecutor(1) as decoder:
        ahead = decoder.submit(read, *places[0])
        for place in places[1:]:
            part, ahead = ahead.result(), decoder.submit(read, *place)
            yield part
        yield ahead.result()


def _buffers(parts: Iterator[Tokens]) -> Iterator[int]:
    """Fill one buffer after the other; yield how many tokens each would train on."""
    size = ROWS * LENGTH
    buffer, filled = np.empty(size, np.int64), 0
    for part in parts:
        start = 0
        while start < len(part):
            stop = min(len(part), start + size - filled)
            buffer[filled : filled + stop - start] = part[start:stop]
            filled += stop - start
            start = stop
            if filled == size:
                yield ROWS * (LENGTH - 1)
                buffer, filled = np.empty(size, np.int64), 0


if __name__ == "__main__":
    main()
