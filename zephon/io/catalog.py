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

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DatasetError
from zephon.io.atomic import written_atomically
from zephon.io.catalog_checks import check_columns
from zephon.io.fields import Field
from zephon.io.formats.file_format import FileFormat
from zephon.io.formats.parquet import Parquet
from zephon.io.formats.parquet_layouts import ParquetLayout, ParquetLayouts
from zephon.io.location import file_to_write
from zephon.io.offsets import offsets_of
from zephon.io.shard import ListedBy
from zephon.io.shards import Shards

CATALOG = "_catalog.arrow"
VERSION = 1

_KEY = b"zephon.catalog"
_NUMBERS = ("rows", "bytes", "decoded_bytes")
_TYPES: dict[str, pa.DataType] = {
    "name": pa.large_string(),
    **dict.fromkeys(_NUMBERS, pa.int64()),
    "group_rows": pa.large_list(pa.int64()),
}
_TOLD = ("marks", "full_hashes")  # columns of 64 bits that are there where they are known


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a catalogue holds: the format of the shards, the shards, and their fields."""

    kind: str
    shards: Shards
    fields: tuple[Field, ...]
    fields_complete: bool


class UnusableCatalog(Exception):
    """A catalogue is damaged, or no catalogue; says why."""


def write_shards(path: Path, catalog: Catalog) -> None:
    """Write a catalogue; the same one gives the same bytes.

    Raises:
        OSError: the file cannot be written.
    """
    shards = catalog.shards
    layouts = shards.layouts
    groups = pa.LargeListArray.from_arrays(
        pa.array(shards.group_starts), pa.array(shards.group_rows)
    )
    columns = {
        "name": shards.names,
        "rows": pa.array(shards.rows),
        "bytes": pa.array(shards.bytes),
        "decoded_bytes": pa.array(shards.decoded_bytes),
        "group_rows": groups,
        **(layouts.columns() if layouts else {}),
        **{name: pa.array(told) for name, told in _told(shards).items()},
    }
    about = {
        "version": VERSION,
        "kind": catalog.kind,
        "fields": [[field.name, field.kind] for field in catalog.fields],
        "fields_complete": catalog.fields_complete,
        "layouts": layouts.about() if layouts else {},
    }
    batch = pa.RecordBatch.from_pydict(columns)
    schema = batch.schema.with_metadata({_KEY: json.dumps(about, sort_keys=True).encode()})
    with (
        written_atomically(path) as draft,
        pa.OSFile(str(draft), "wb") as file,
        pa.ipc.new_file(file, schema) as writer,
    ):
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))


def read_catalog(
    dataset: str, directory: Path, formats: Mapping[str, FileFormat], fmt: str | None
) -> Catalog | None:
    """Map the catalogue of a directory.

    Args:
        dataset: its name, for messages.
        directory: an existing local directory.
        formats: those that can be read.
        fmt: the one format to read; None takes the catalogue's.

    Returns:
        The catalogue; None if there is none, or one of another format than ``fmt``.

    Raises:
        UnusableCatalog: the file is damaged, or something else; another source must be used.
        DatasetError: the catalogue is of a newer version.
    """
    path = directory / CATALOG
    if not path.is_file():
        return None
    try:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            about = json.loads((reader.schema.metadata or {}).get(_KEY, b"null"))
            _check_version(dataset, path, about)
            if fmt is not None and about["kind"] != fmt:
                return None
            if about["kind"] not in formats or reader.num_record_batches != 1:
                raise ValueError(f"it is of kind {about['kind']!r}")
            known, listed_by = formats[about["kind"]], ListedBy(CATALOG, dataset)
            return _catalog(directory, about, reader.get_batch(0), known, listed_by)
    except (ValueError, KeyError, TypeError, OSError, pa.ArrowException) as exc:
        if isinstance(exc, DatasetError):
            raise
        raise UnusableCatalog(str(exc)) from exc


def _told(shards: Shards) -> dict[str, NDArray[np.uint64]]:
    columns = {name: getattr(shards, name) for name in _TOLD}
    return {name: column for name, column in columns.items() if column is not None}


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


def _check_version(dataset: str, path: Path, about: Any) -> None:
    if not isinstance(about, dict) or not isinstance(about.get("version"), int):
        raise ValueError("it is an Arrow file of something else")
    if about["version"] > VERSION:
        raise DatasetError(
            f"dataset {dataset!r}: the catalogue {str(path)!r} must be of version {VERSION} at "
            f"most, got {about['version']}; use the newer Zephon that wrote it, or make it anew "
            f"with `zephon index --catalog {path.parent}`"
        )


def _catalog(
    directory: Path,
    about: dict[str, Any],
    batch: pa.RecordBatch,
    known: FileFormat,
    listed_by: ListedBy,
) -> Catalog:
    types: dict[str, pa.DataType] = {**_TYPES, **known.layout_types}
    types |= dict.fromkeys(set(_TOLD).intersection(batch.schema.names), pa.uint64())
    found = {field.name: field.type for field in batch.schema}
    if found != types:
        raise ValueError(f"its columns must be {types}, got {found}")
    batch.validate(full=True)
    if any(column.null_count for column in batch.columns):
        raise ValueError("a value is missing")
    if not isinstance(about["layouts"], dict):
        raise ValueError(f"layouts must be an object, got {about['layouts']!r}")
    rows, sizes, decoded = (batch.column(name).to_numpy() for name in _NUMBERS)
    groups = batch.column("group_rows")
    shards = Shards(
        directory=str(directory),
        names=batch.column("name"),
        rows=rows,
        bytes=sizes,
        decoded_bytes=decoded,
        group_starts=groups.offsets.to_numpy(),
        group_rows=groups.values.to_numpy(),
        layouts=known.stored_layouts(batch, about["layouts"]),
        listed_by=listed_by,
        **{name: batch.column(name).to_numpy() for name in _TOLD if name in types},
    )
    check_columns(shards, known.suffixes + known.further_suffixes)
    fields = tuple(Field(name, kind) for name, kind in about["fields"])
    return Catalog(about["kind"], shards, fields, about["fields_complete"] is True)
