"""One decoded row group as a file that is mapped into memory, not read.

An Arrow IPC file, uncompressed, of one record batch: the plan's columns by number, then the columns
of whole rows where they are kept. Its schema's metadata carry the group's full key and its faults.
Behind Arrow's footer stand the length of all that and a digest, so a file that is cut off, holed or
overwritten is told from a whole one: once a process, at 5 GB/s; mapping it again costs 45 µs.
A process may hold some 65,000 mappings (Linux, vm.max_map_count), so a mapped group counts for at
least 64 KiB: 4 GiB of small groups before that limit, however small they are.

No fsync: after a power cut a file may hold zeros, which the digest finds. The digest sees any
change but words that trade places within 4 KiB; it is no guard against someone who means harm. A
file may be removed while it is mapped, and must not be cut off then: that ends the process.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from zephon.io.faults import Faults
from zephon.io.fields import TEXT, Column
from zephon.io.formats.format import DecodedGroup, columns_batch
from zephon.io.page_digest import page_digest
from zephon.io.spill.key import GroupKey
from zephon.io.spill.rows import restored_rows, spilled_rows

_MAGIC = b"ZEPHGRP1"
_TRAILER = struct.Struct("<Q16s8s")  # length of the Arrow file, digest, magic
LEAST_MAPPED_BYTES = 64 << 10  # what a mapping counts for: they are few, too
_KEY, _ABOUT = b"zephon.key", b"zephon.about"


class DamagedError(ValueError):
    """A file of the spill is not what was written; the group must be decoded again."""


@dataclass(frozen=True, slots=True, eq=False)
class MappedGroup(DecodedGroup):
    """A group whose columns lie in a mapped file: pages that nobody touches take no memory.

    bytes: of the file, and at least ``LEAST_MAPPED_BYTES``.
    """


def packed(key: GroupKey, group: DecodedGroup) -> pa.RecordBatch | None:
    """Lay out a group as the batch that is written; None if its whole rows cannot be."""
    arrays = list(group.columns.columns)
    names = [str(number) for number in range(len(arrays))]
    about: dict[str, Any] = {"faults": [_faults_to_json(faults) for faults in group.faults]}
    if group.payload is not None:
        rows = spilled_rows(group.payload)
        if rows is None:
            return None
        arrays += rows.arrays
        names += [f"row.{number}" for number in range(len(rows.arrays))]
        about["rows"] = rows.about
    about["count"] = group.columns.num_rows
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
    metadata = {_KEY: key.text, _ABOUT: json.dumps(about).encode()}
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))


def write(path: str, batch: pa.RecordBatch) -> None:
    """Write a packed group to a path of its own.

    Raises:
        OSError: the disk is full, or cannot be written.
        pa.ArrowException: Arrow cannot write one of the types.
    """
    with pa.OSFile(path, "wb") as sink:
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        length = sink.tell()
    with open(path, "r+b", buffering=0) as file:
        file.write(_TRAILER.pack(length, page_digest(file, length), _MAGIC))


def check(path: str) -> os.stat_result:
    """Read a file once, from end to end; return what it is, to know it again.

    It is read and not mapped: a bad sector is an error here, and the end of the process there.

    Raises:
        OSError: there is no such file, or it cannot be read.
        DamagedError: its bytes are not those that were written.
    """
    with open(path, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        length = status.st_size - _TRAILER.size
        found = page_digest(file, length)
        trailer = file.read(_TRAILER.size)
    if trailer != _TRAILER.pack(max(length, 0), found, _MAGIC):
        raise DamagedError(f"{path}: it is cut off, or its digest differs")
    return status


def mapped(path: str, size: int) -> pa.Buffer:
    """Map a file of so many bytes; the mapping lasts as long as anything that points into it.

    Raises:
        OSError: there is no such file, or it cannot be opened.
        DamagedError: it has another size.
    """
    with pa.memory_map(path) as file:
        buffer = file.read_buffer(size)  # without a size it takes twice as long
    if buffer.size != size:
        raise DamagedError(f"{path}: it has {buffer.size} bytes, not {size}")
    return buffer


def unpacked(key: GroupKey, buffer: pa.Buffer) -> MappedGroup:
    """View a mapped file that was checked as the group that it holds. Copies nothing.

    Raises:
        DamagedError: it holds another group.
    """
    body = buffer.slice(0, buffer.size - _TRAILER.size)
    try:
        reader = pa.ipc.open_file(body)
        metadata = reader.schema.metadata or {}
        if metadata.get(_KEY) != key.text:
            raise DamagedError(f"it holds {metadata.get(_KEY)!r} and not {key.text!r}")
        about = json.loads(metadata[_ABOUT])
        arrays = reader.get_batch(0).columns
    except (pa.ArrowException, OSError, KeyError, ValueError) as exc:
        raise DamagedError(str(exc)) from exc
    plan = len(key.columns)
    return MappedGroup(
        columns=columns_batch(key.columns, arrays[:plan], about["count"]),
        faults=tuple(_faults_of_json(faults) for faults in about["faults"]),
        payload=restored_rows(about["rows"], arrays[plan:]) if "rows" in about else None,
        bytes=max(buffer.size, LEAST_MAPPED_BYTES),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where a group's columns lie in its file, so that Arrow need not find out again.

    columns: what they are. rows: of the group. places: of each column's buffers, where each begins
    and how long it is; first its offsets, then its characters or tokens. faults: of the group.
    """

    columns: tuple[Column, ...]
    rows: int
    places: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    faults: tuple[Faults, ...]

    def over(self, buffer: pa.Buffer) -> MappedGroup:
        """View another mapping of the same file. Copies nothing; takes 10 µs instead of 30."""
        arrays = []
        for column, (offsets, values) in zip(self.columns, self.places, strict=True):
            data = buffer.slice(*values)
            parts = [None, buffer.slice(*offsets)]
            if column.type == TEXT:
                array = pa.Array.from_buffers(TEXT, self.rows, [*parts, data])
            else:
                item = column.type.value_type
                count = values[1] // (item.bit_width // 8)
                numbers = pa.Array.from_buffers(item, count, [None, data])
                array = pa.Array.from_buffers(column.type, self.rows, parts, children=[numbers])
            arrays.append(array)
        batch = columns_batch(self.columns, arrays, self.rows)
        return MappedGroup(batch, self.faults, None, max(buffer.size, LEAST_MAPPED_BYTES))


def layout_of(key: GroupKey, group: MappedGroup, buffer: pa.Buffer) -> Layout | None:
    """Say where the columns of a mapped group lie; None if it has whole rows, or any type, too."""
    if group.payload is not None or any(column.kind == "any" for column in key.columns):
        return None
    places = []
    for array in group.columns.columns:
        offsets, values = array.buffers()[1], array.buffers()[-1]
        if array.offset or offsets is None or values is None:
            return None
        places.append((_place(offsets, buffer), _place(values, buffer)))
    return Layout(key.columns, group.columns.num_rows, tuple(places), group.faults)


def _place(part: pa.Buffer, buffer: pa.Buffer) -> tuple[int, int]:
    """Say where a part of a buffer begins and how long it is; an empty one lies anywhere."""
    return (part.address - buffer.address, part.size) if part.size else (0, 0)


def _faults_to_json(faults: Faults) -> dict[str, Any]:
    """Write each message once: a column without values spoils every row in the same words."""
    numbers: dict[str, int] = {}
    detail_of = [numbers.setdefault(detail, len(numbers)) for detail in faults.details]
    return {
        "rows": faults.rows.tolist(),
        "detail_of": detail_of,
        "details": list(numbers),
        "unknown": faults.unknown,
    }


def _faults_of_json(saved: dict[str, Any]) -> Faults:
    details = [saved["details"][number] for number in saved["detail_of"]]
    return Faults(np.array(saved["rows"], np.int64), details, saved["unknown"])
