"""The compiled catalogue: everything known of a directory's shards, in one memory-mapped file.

It is an Arrow IPC file of one record batch, a row a shard. Reading it makes no object a shard: a
million shards are there in a tenth of a second, and what is not asked for stays on disk. It is
checked as a whole when it is opened (order, names, sizes that cannot be), and each shard against
its file when that is opened.

A directory with a catalogue is not listed: files that were added later are not seen until the
catalogue is made anew. A catalogue is replaced by renaming, so that those who have it open go on
with the old one; do not write into one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DatasetError
from zephon.io.catalog_checks import check_columns
from zephon.io.catalog_file import (
    VERSION,
    Catalog,
    NewerCatalog,
    UnusableCatalog,
    read_shards,
    write_shards,
)
from zephon.io.formats.file_format import FileFormat
from zephon.io.formats.parquet import Parquet
from zephon.io.formats.parquet_layouts import ParquetLayout, ParquetLayouts
from zephon.io.location import file_to_write
from zephon.io.offsets import offsets_of
from zephon.io.selection import DIRECT, Selection
from zephon.io.shard import ListedBy
from zephon.io.shards import Shards

CATALOG = "_catalog.arrow"


def read_catalog(
    dataset: str,
    directory: Path,
    formats: Mapping[str, FileFormat],
    fmt: str | None,
    selection: Selection = DIRECT,
) -> Catalog | None:
    """Map the catalogue of a directory.

    Args:
        dataset: its name, for messages.
        directory: an existing local directory.
        formats: those that can be read.
        fmt: the one format to read; None takes the catalogue's.
        selection: the files that are wanted.

    Returns:
        The catalogue; None if there is none, one of another format than ``fmt``, or one that tells
        of no file that is wanted.

    Raises:
        UnusableCatalog: the file is damaged, or something else; another source must be used.
        DatasetError: the catalogue is of a newer version.
    """
    path = directory / CATALOG
    if not path.is_file():
        return None
    try:
        with pa.memory_map(str(path)) as file:
            return read_shards(
                file,
                str(directory),
                formats,
                fmt=fmt,
                listed_by=lambda made_of: ListedBy(CATALOG, dataset, made_of.words),
                selection=selection,
            )
    except NewerCatalog as exc:
        raise DatasetError(
            f"dataset {dataset!r}: the catalogue {str(path)!r} must be of version {VERSION} at "
            f"most, got {exc.version}; use the newer Zephon that wrote it, or make it anew with "
            f"`{ListedBy(CATALOG, dataset).command(str(path.parent))}`"
        ) from exc
    except (OSError, ValueError, pa.ArrowException) as exc:
        raise UnusableCatalog(str(exc)) from exc


def write_catalog(
    path: str | os.PathLike[str],
    names: Sequence[str] | pa.Array,
    rows: Sequence[int] | NDArray[np.int64],
    bytes: Sequence[int] | NDArray[np.int64],  # noqa: A002 - as an index calls it
    *,
    decoded_bytes: Sequence[int] | NDArray[np.int64] | None = None,
    group_counts: Sequence[int] | NDArray[np.int64] | None = None,
    group_rows: Sequence[int] | NDArray[np.int64] | None = None,
    schema: pa.Schema | None = None,
) -> str:
    """Write the catalogue of Parquet shards from columns alone; no file is looked at.

    So it tells no content marks: a file is known by its name and size.

    Args:
        path: the catalogue; a directory means ``_catalog.arrow`` in it.
        names: files of the directory, in bytewise order, shape [shards].
        rows: of each file, shape [shards].
        bytes: of each file, shape [shards].
        decoded_bytes: of each file's columns once decompressed; None: as many as ``bytes``.
        group_counts: row groups of each file, shape [shards]; None: one each.
        group_rows: rows of each row group, file after file; None with one row group each.
        schema: of every file; None: without columns, enough to ask for an order only.

    Returns:
        The path that was written.

    Raises:
        DatasetError: the columns cannot be those of files; says why.
        OSError: the catalogue cannot be written.
    """
    target = file_to_write("write_catalog: path", path, CATALOG)
    known = Parquet()
    try:
        if not isinstance(schema, pa.Schema | None):
            raise TypeError(f"schema must be a pyarrow.Schema, got {schema!r}")
        told = np.asarray(rows, np.int64)
        shards = Shards(
            directory=str(target.parent),
            names=pa.array(names, pa.large_string()),
            rows=told,
            bytes=np.asarray(bytes, np.int64),
            decoded_bytes=np.asarray(bytes if decoded_bytes is None else decoded_bytes, np.int64),
            group_starts=offsets_of(
                np.ones(len(told), np.int64) if group_counts is None else group_counts
            ),
            group_rows=told if group_rows is None else np.asarray(group_rows, np.int64),
            layouts=ParquetLayouts(
                (ParquetLayout(schema or pa.schema([])),), np.zeros(len(told), np.int32)
            ),
        )
        check_columns(shards, known.suffixes + known.further_suffixes)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as exc:
        raise DatasetError(f"write_catalog: {exc}; write what the files hold") from exc
    fields, complete = known.fields(target.parent.name, shards)
    write_shards(target, Catalog(known.kind, shards, fields, complete))
    return str(target)
