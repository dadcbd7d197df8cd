"""What the columns of a catalogue must be, checked as whole columns.

A million shards take a tenth of a second and a few megabytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.offsets import offsets_of
from zephon.io.shards import Shards

MOST_ROWS = 2**62  # of a dataset: sums of rows stay within 64 bits

_CHUNK_SHARDS = 1 << 16
_CHUNK_BYTES = 1 << 20
_BARRED = (b"/", b"\0")


def check_columns(shards: Shards, suffixes: tuple[str, ...], *, in_folders: bool = False) -> None:
    """Check that columns can be those of the files of one directory.

    Args:
        shards: the columns.
        suffixes: one of which names must end in.
        in_folders: files may lie in folders of the directory.

    Raises:
        ValueError: they cannot; says why.
    """
    if not len(shards):
        raise ValueError("it lists no shard")
    if shards.names.null_count:
        raise ValueError("a name is missing")
    for label in ("rows", "bytes", "decoded_bytes", "group_rows"):
        numbers: NDArray[np.int64] = getattr(shards, label)
        if label != "group_rows" and len(numbers) != len(shards):
            raise ValueError(
                f"{label} must hold a value for each of {len(shards)} shards, got {len(numbers)}"
            )
        if numbers.min(initial=0) < 0:
            raise ValueError(f"{label} must be at least 0, got {numbers.min()}")
    if shards.rows.sum(dtype=np.float64) >= MOST_ROWS:
        raise ValueError(f"all shards together must have less than {MOST_ROWS} rows")
    _check_names(shards.names, suffixes, in_folders)
    _check_groups(shards)


def _check_names(names: pa.LargeStringArray, suffixes: tuple[str, ...], in_folders: bool) -> None:
    import pyarrow.compute as pc  # late: it takes 30 ms to import, and only a catalogue needs it

    text = names.view(pa.large_binary())
    call = pc.call_function
    ascending = call("greater", [text[1:], text[:-1]])
    if ascending.true_count < len(ascending):
        second = ascending.index(False).as_py() + 1
        first, then = names[second - 1].as_py(), names[second].as_py()
        raise ValueError(f"names must ascend bytewise, got {first!r} before {then!r}")
    lacking = pa.array([True]).take(pa.array(np.zeros(len(names), np.int8)))
    for suffix in suffixes:
        ends = call("ends_with", [names], pc.MatchSubstringOptions(suffix))
        lacking = call("and_not", [lacking, ends])
    if lacking.true_count:
        others = names.filter(lacking).to_pylist()
        wrong = next((name for name in others if not name.lower().endswith(suffixes)), None)
        if wrong is not None:
            raise ValueError(f"names must end in {' or '.join(suffixes)}, got {wrong!r}")
    if in_folders:
        for pattern in (r"(?:^|/)\.{0,2}(?:/|$)", r"\x00"):
            found = call("match_substring_regex", [names], pc.MatchSubstringOptions(pattern))
            if found.true_count:
                wrong = names[found.index(True).as_py()].as_py()
                raise ValueError(f"names must be relative, without '.' and '..', got {wrong!r}")
        return
    stored = memoryview(names.buffers()[2] or b"")
    for start in range(0, len(stored), _CHUNK_BYTES):
        piece = bytes(stored[start : start + _CHUNK_BYTES])
        barred = next((sign for sign in _BARRED if sign in piece), None)
        if barred is not None:
            raise ValueError(f"names must be without a path, got one with {barred.decode()!r}")


def _check_groups(shards: Shards) -> None:
    starts, rows = shards.group_starts, shards.group_rows
    if len(starts) != len(shards) + 1 or starts[0] != 0 or starts[-1] != len(rows):
        raise ValueError("row groups must be those of the shards, no more and no fewer")
    for first in range(0, len(shards), _CHUNK_SHARDS):
        edges = starts[first : first + _CHUNK_SHARDS + 1]
        if (edges[1:] < edges[:-1]).any():
            raise ValueError("row groups must follow one another")
        sums = offsets_of(rows[edges[0] : edges[-1]])[edges - edges[0]]
        told = shards.rows[first : first + _CHUNK_SHARDS]
        if not np.array_equal(sums[1:] - sums[:-1], told):
            shard = first + int((sums[1:] - sums[:-1] != told).argmax())
            raise ValueError(
                f"rows must be those of the row groups, got others for {shards[shard].name!r}"
            )
