"""The file of a catalogue: an Arrow IPC file of one record batch, a row a shard.

Its metadata tells what the columns do not, and a checksum (CRC-32) of both. Reading it makes no
object a shard.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DatasetError
from zephon.io.atomic import written_atomically
from zephon.io.catalog_checks import check_columns
from zephon.io.fields import Field
from zephon.io.formats.file_format import FileFormat
from zephon.io.selection import DIRECT, GLOB, Selection
from zephon.io.shard import ListedBy
from zephon.io.shards import Shards
from zephon.io.stamps import Stamps

VERSION = 1

_KEY = b"zephon.catalog"
_NUMBERS = ("rows", "bytes", "decoded_bytes")
_TYPES: dict[str, pa.DataType] = {
    "name": pa.large_string(),
    **dict.fromkeys(_NUMBERS, pa.int64()),
    "group_rows": pa.large_list(pa.int64()),
}
_TOLD = ("marks", "full_hashes")  # columns of 64 bits that are there where they are known
_STAMPS: dict[str, pa.DataType] = {
    "mtimes_ns": pa.int64(),
    "changed": pa.uint64(),
    "which": pa.uint64(),
}  # all there, or none


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a catalogue holds.

    kind: the format of the shards.
    shards: those that are wanted.
    fields, fields_complete: of all shards, as ``Dataset`` has them.
    stamps: of the files when they were looked at, where they are kept; all settled.
    made_of: of a kept one, says what it is a catalogue of.
    selection: the files that it tells of, when it was made.
    """

    kind: str
    shards: Shards
    fields: tuple[Field, ...]
    fields_complete: bool
    stamps: Stamps | None = None
    made_of: str = ""
    selection: Selection = DIRECT


class UnusableCatalog(Exception):
    """A catalogue is damaged, or no catalogue; says why."""


class NewerCatalog(UnusableCatalog):
    """A catalogue is of a newer version."""

    def __init__(self, version: int) -> None:
        super().__init__(f"it is of version {version}")
        self.version = version


def write_shards(path: Path, catalog: Catalog) -> None:
    """Write a catalogue, which appears whole; the same one gives the same bytes.

    Raises:
        OSError: the file cannot be written.
    """
    with written_atomically(path) as draft:
        write_draft(draft, catalog)


def write_draft(path: Path, catalog: Catalog) -> None:
    """Write a catalogue to a file that nobody else knows of yet.

    Raises:
        OSError: the file cannot be written.
    """
    shards, stamps = catalog.shards, catalog.stamps
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
        **({name: pa.array(getattr(stamps, name)) for name in _STAMPS} if stamps else {}),
    }
    about: dict[str, Any] = {
        "version": VERSION,
        "kind": catalog.kind,
        "fields": [[field.name, field.kind] for field in catalog.fields],
        "fields_complete": catalog.fields_complete,
        "layouts": layouts.about() if layouts else {},
    }
    if not catalog.selection.is_direct:
        about[GLOB] = list(catalog.selection.patterns)
    if catalog.made_of:
        about["made_of"] = catalog.made_of
    batch = pa.RecordBatch.from_pydict(columns)
    about["crc32"] = _checksum(batch, about)
    schema = batch.schema.with_metadata({_KEY: json.dumps(about, sort_keys=True).encode()})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))


def read_shards(
    source: pa.NativeFile | pa.Buffer,
    directory: str,
    formats: Mapping[str, FileFormat],
    *,
    fmt: str | None = None,
    listed_by: Callable[[Selection], ListedBy] | None = None,
    selection: Selection = DIRECT,
) -> Catalog | None:
    """Read a catalogue: mapped memory stays mapped.

    Args:
        source: the file, or what is in it.
        directory: where the files lie.
        formats: those that can be read.
        fmt: the one format to read; None takes the catalogue's.
        listed_by: makes what stands for the catalogue where it tells of the shards.
        selection: the files that are wanted.

    Returns:
        The catalogue; None if it is of another format than ``fmt``, or tells of no file that is
        wanted.

    Raises:
        NewerCatalog: it is of a version that is not known here.
        UnusableCatalog: it is damaged, or something else.
    """
    try:
        reader = pa.ipc.open_file(source)
        about = json.loads((reader.schema.metadata or {}).get(_KEY, b"null"))
        if not isinstance(about, dict) or not isinstance(about.get("version"), int):
            raise ValueError("it is an Arrow file of something else")
        if about["version"] > VERSION:
            raise NewerCatalog(about["version"])
        if fmt is not None and about["kind"] != fmt:
            return None
        if about["kind"] not in formats or reader.num_record_batches != 1:
            raise ValueError(f"it is of kind {about['kind']!r}")
        told = listed_by and listed_by(_selection(about))
        known = formats[about["kind"]]
        return _catalog(directory, about, reader.get_batch(0), known, told, selection)
    except (ValueError, KeyError, TypeError, OSError, RecursionError, pa.ArrowException) as exc:
        raise UnusableCatalog(str(exc)) from exc


def _catalog(
    directory: str,
    about: dict[str, Any],
    batch: pa.RecordBatch,
    known: FileFormat,
    listed_by: ListedBy | None,
    selection: Selection,
) -> Catalog | None:
    types: dict[str, pa.DataType] = {**_TYPES, **known.layout_types}
    types |= dict.fromkeys(set(_TOLD).intersection(batch.schema.names), pa.uint64())
    stamped = not _STAMPS.keys().isdisjoint(batch.schema.names)
    types |= _STAMPS if stamped else {}
    found = {field.name: field.type for field in batch.schema}
    if found != types:
        raise ValueError(f"its columns must be {types}, got {found}")
    batch.validate(full=True)
    if any(column.null_count for column in batch.columns):
        raise ValueError("a value is missing")
    wanted = about.pop("crc32", None)  # before it was told, catalogues were as good
    if wanted is not None and wanted != _checksum(batch, about):
        raise ValueError("it was damaged: its checksum is that of something else")
    if not isinstance(about["layouts"], dict):
        raise ValueError(f"layouts must be an object, got {about['layouts']!r}")
    made_of, of = about.get("made_of", ""), _selection(about)
    if not made_of and of != selection:
        names = batch.column("name").to_pylist()
        batch = batch.filter(pa.array([selection.matches(name) for name in names]))
        if not batch.num_rows:
            return None
    numbers = {name: batch.column(name).to_numpy() for name in _NUMBERS}
    groups = batch.column("group_rows")
    stamps = None
    if stamped:
        columns = {name: batch.column(name).to_numpy() for name in _STAMPS}
        stamps = Stamps(bytes=numbers["bytes"], settled=np.ones(len(batch), bool), **columns)
    shards = Shards(
        directory=directory,
        names=batch.column("name"),
        **numbers,
        group_starts=groups.offsets.to_numpy(),
        group_rows=groups.values.to_numpy(),
        layouts=known.stored_layouts(batch, about["layouts"]),
        mtimes_ns=None if stamps is None else stamps.mtimes_ns,
        listed_by=listed_by,
        **{name: batch.column(name).to_numpy() for name in _TOLD if name in types},
    )
    suffixes = known.suffixes + known.further_suffixes
    check_columns(shards, suffixes, in_folders=bool(made_of) or not of.is_direct)
    fields = tuple(Field(name, kind) for name, kind in about["fields"])
    complete = about["fields_complete"] is True
    return Catalog(about["kind"], shards, fields, complete, stamps, made_of, of)


def _selection(about: Mapping[str, Any]) -> Selection:
    try:
        return Selection.of(_KEY.decode(), recursive=False, glob=about.get(GLOB))
    except DatasetError as exc:
        raise ValueError(f"its {GLOB!r} is wrong: {exc}") from exc


def _told(shards: Shards) -> dict[str, NDArray[np.uint64]]:
    columns = {name: getattr(shards, name) for name in _TOLD}
    return {name: column for name, column in columns.items() if column is not None}


def _checksum(batch: pa.RecordBatch, about: Mapping[str, Any]) -> int:
    """Sum up all values and what is said of them; 0.5 s for a gigabyte."""
    found = zlib.crc32(json.dumps(about, sort_keys=True).encode())
    for column in batch.columns:
        for piece in _pieces(column):
            found = zlib.crc32(piece, found)
    return found


def _pieces(array: pa.Array) -> Iterator[memoryview]:
    """View the values of an array without nulls: the same ones however it is laid out."""
    if pa.types.is_large_list(array.type):
        lists = cast(pa.LargeListArray, array)
        starts = lists.offsets.to_numpy()
        yield (starts - starts[0]).data
        yield from _pieces(lists.values.slice(starts[0], starts[-1] - starts[0]))
        return
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    if wide or pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        _, offsets, text = array.buffers()
        if offsets is None or not len(array):
            return
        kind = np.int64 if wide else np.int32
        starts = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1]
        yield (starts - starts[0]).data
        yield memoryview(text or b"")[int(starts[0]) : int(starts[-1])]
        return
    yield np.ascontiguousarray(array.to_numpy()).data
