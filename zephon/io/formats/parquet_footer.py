"""Opening a Parquet file, what its footer says of row groups, and what is said of broken ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from zephon.errors import ShardError, ZephonError
from zephon.io.formats.parquet_far import RangeFile
from zephon.io.formats.parquet_units import Part, parts_of
from zephon.io.shard import Shard

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"


@dataclass(frozen=True, slots=True, eq=False)
class Footer:
    """A footer, and where the units of decoding lie.

    parts: one a unit; None: each row group is one.
    """

    metadata: pq.FileMetaData
    parts: tuple[Part, ...] | None

    @classmethod
    def of(cls, metadata: pq.FileMetaData, shard: Shard) -> Footer | None:
        """Lay a footer beside what was told of its file; None if they do not agree."""
        units = shard.group_rows
        if metadata.num_rows != shard.rows:
            return None
        if metadata.num_row_groups == len(units):
            return cls(metadata, None)
        parts = parts_of(group_rows(metadata), units)
        return None if parts is None else cls(metadata, tuple(parts))

    def part(self, unit: int) -> Part:
        """Give the place of a unit."""
        return Part(unit, 0, 0, True, 0) if self.parts is None else self.parts[unit]


def open_parquet(
    path: str | os.PathLike[str] | RangeFile,
    metadata: pq.FileMetaData | None = None,
    buffer_bytes: int = 0,
) -> pq.ParquetFile:
    """Open a file; whoever reads it verifies the checksums of pages that have one.

    Args:
        path: of the file; or what reads it, where it lies in a far place.
        metadata: its footer, if it was read before.
        buffer_bytes: read at a time of a column; 0: all of a row group.
    """
    if isinstance(path, RangeFile) and metadata is None:
        metadata = path.metadata()
    return pq.ParquetFile(
        path,
        metadata=metadata,
        pre_buffer=False,
        buffer_size=buffer_bytes,
        page_checksum_verification=True,
    )


def group_rows(metadata: pq.FileMetaData) -> NDArray[np.int64]:
    """Give the rows of each row group, shape [groups]."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return np.array([group.num_rows for group in groups], np.int64)


@contextmanager
def located(
    dataset: str, shard: str, part: str, path: str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Name the file and the part of it in whatever Arrow raises.

    Args:
        dataset: its name.
        shard: the name of the file.
        part: of the file, in words.
        path: the file, where it may be something else than Parquet.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as exc:
        if isinstance(exc, ZephonError):
            raise
        what, way_out = _problem(exc, path)
        raise ShardError(
            f"dataset {dataset!r}, shard {shard!r}: {part} must be readable, but {what}: "
            f"{_one_line(exc)}; {way_out}, or move it out of the directory"
        ) from exc


def encrypted(
    file: pq.ParquetFile, group: int, names: Sequence[str] | None, problem: Exception
) -> str:
    """Name the columns of a row group that are encrypted, in words; "" where none is.

    Args:
        file: whose.
        group: its row group.
        names: leaves that were to be read; None: all columns.
        problem: what reading raised.
    """
    if not _is_of_encryption(problem):
        return ""
    found = []
    for name in file.schema_arrow.names if names is None else names:
        try:
            next(file.iter_batches(1, row_groups=[group], columns=[name], use_threads=False), None)
        except (pa.ArrowException, OSError, ValueError):
            found.append(repr(name))
    return ", ".join(found)


def _problem(problem: Exception, path: str | os.PathLike[str] | None) -> tuple[str, str]:
    """Say what is wrong with a file, and what to do."""
    again = "write the file again"
    if isinstance(problem, FileNotFoundError | PermissionError):
        return "it cannot be opened", again
    if _is_of_encryption(problem):
        return "it is encrypted, and no keys are known", "write the file without encryption"
    head = None if path is None else _head(path)
    if head == b"":
        return "the file is empty: this is not a Parquet file", again
    if head == _ENCRYPTED_MAGIC:
        return "it is encrypted, and no keys are known", "write the file without encryption"
    if head is not None and not _MAGIC.startswith(head):
        return f"this is not a Parquet file: it begins with {head!r}", again
    return "this is not a Parquet file, or it is damaged or cut off", again


def _head(path: str | os.PathLike[str]) -> bytes | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(len(_MAGIC))
    except OSError:
        return None


def _is_of_encryption(problem: Exception) -> bool:
    return "crypt" in str(problem).lower()


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:300].rstrip(".")
