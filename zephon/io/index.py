"""Reading ``index.json``: what it says of each shard, so that no file needs to be looked at.

An index with an entry that cannot be right is not used at all: the files are read instead, and a
warning says why. A field's value is right if the documented schema allows it; the extras that this
library adds are described with each format (``parquet_layouts``, ``line_layouts``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from zephon.errors import DatasetError, NotYetError
from zephon.io.catalog_checks import MOST_ROWS
from zephon.io.formats.file_format import Entry, EntryProblem, FileFormat, check_hashes
from zephon.io.selection import DIRECT, GLOB, Selection

INDEXES = ("index.json", "_index.json")
FORMAT_VERSION = 1

_MDS_KEYS = ("raw_data", "samples", "column_names")

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Index:
    """An index that can be used.

    file: its name.
    kind: the format of the shards.
    entries: of the shards, in bytewise order of their names.
    selection: the files that it tells of, when it was made.
    """

    file: str
    kind: str
    entries: list[Entry[Any]]
    selection: Selection


class UnusableIndex(Exception):
    """An index must not be used; says why, after the index's name."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(why)
        self.file = file


def read_index(
    dataset: str, directory: Path, formats: Mapping[str, FileFormat], fmt: str | None
) -> Index | None:
    """Read the index of a directory.

    Args:
        dataset: its name, for messages.
        directory: an existing local directory.
        formats: those that can be read.
        fmt: the one format to read; None takes the index's.

    Returns:
        The index; None if there is none, or one of another format than ``fmt``.

    Raises:
        UnusableIndex: the files must be read instead.
        NotYetError: the index is of a format that is not there yet.
        DatasetError: the file is JSON, but no index.
    """
    path = next((directory / name for name in INDEXES if (directory / name).is_file()), None)
    if path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise UnusableIndex(path.name, f"it cannot be read: {exc}") from exc
    return parse_index(dataset, str(path), content, formats, fmt)


def parse_index(
    dataset: str, path: str, content: bytes, formats: Mapping[str, FileFormat], fmt: str | None
) -> Index | None:
    """Take up what an index says; the arguments and errors are those of ``read_index``.

    Args:
        dataset: its name, for messages.
        path: of the index, or its url.
        content: of the index.
        formats: those that can be read.
        fmt: the one format to read; None takes the index's.
    """
    file = path.rpartition("/")[2]
    top = _decoded(content, dict[str, msgspec.Raw], file)
    shards = _decoded(top.get("shards", b"null"), list[msgspec.Raw], file) if top else None
    kind = _kind(file, top, shards, formats)
    if fmt is not None and kind != fmt:
        return None
    if kind is None:
        raise DatasetError(
            f"dataset {dataset!r}: Invalid index format: {path!r} must be an object that "
            f"lists 'shards', or 'config' and 'chunks', and it is other JSON; move it elsewhere, "
            f"or pass fmt="
        )
    if kind not in formats:
        raise NotYetError(
            f"dataset {dataset!r}: {path!r} is the index of a dataset in {kind} format, which "
            f"is not supported yet; convert the files to Parquet or JSONL"
        )
    selection = _selection(file, top or {})
    entries = _entries(
        file, top or {}, shards or [], formats[kind], in_folders=not selection.is_direct
    )
    return Index(file, kind, entries, selection)


def file_name_problem(
    name: str, suffixes: tuple[str, ...], *, in_folders: bool = False
) -> str | None:
    """Say why a word cannot name a data file of a directory; None if it can.

    Args:
        name: the word.
        suffixes: one of which it must end in.
        in_folders: it may lie in a folder of the directory.
    """
    if "\0" in name or ("/" in name and not in_folders):
        return "a shard's name must be that of a file beside the index, without a path"
    if not name.lower().endswith(suffixes):
        return f"a shard's name must end in {' or '.join(suffixes)}"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "a shard's name must be that of a file below the directory of the index"
    return None


def _kind(
    file: str,
    top: dict[str, msgspec.Raw] | None,
    shards: list[msgspec.Raw] | None,
    formats: Mapping[str, FileFormat],
) -> str | None:
    """Name the format of an index by its shape; None if it has no known one."""
    if top is not None and "config" in top and "chunks" in top:
        return "litdata"
    if top is None or shards is None:
        return None
    ours = "format_version" in top
    if not shards:
        raise UnusableIndex(file, "it lists no shard")
    first = _either(shards[0], dict[str, msgspec.Raw]) or {}
    extra = _either(first.get("extra", b"null"), dict[str, msgspec.Raw]) or {}
    name = (_either(first.get("basename", b"null"), str) or "").lower()
    if "row_groups" in extra:
        return "parquet"
    told = _either(extra.get("format", b"null"), str)
    if told is not None:
        return told
    by_suffix = [
        kind for kind, known in formats.items() if known.suffixes and name.endswith(known.suffixes)
    ]
    if by_suffix:
        return by_suffix[0]
    if ours and name.endswith(".vortex"):
        return "vortex"
    if not ours:
        return "mds" if any(key in first for key in _MDS_KEYS) else None
    return "parquet"


def _selection(file: str, top: dict[str, msgspec.Raw]) -> Selection:
    """Read which files an index tells of; those of the directory itself where it does not say."""
    if GLOB not in top:
        return DIRECT
    try:
        return Selection.of(file, recursive=False, glob=_either(top[GLOB], list[str]) or [])
    except DatasetError as exc:
        raise UnusableIndex(file, f"its {GLOB!r} must be a list of patterns: {exc}") from exc


def _entries(
    file: str,
    top: dict[str, msgspec.Raw],
    shards: list[msgspec.Raw],
    known: FileFormat,
    *,
    in_folders: bool,
) -> list[Entry[Any]]:
    version = _either(top.get("format_version", b"null"), int)
    if version != FORMAT_VERSION:
        told = bytes(top.get("format_version", b"nothing")).decode(errors="replace")
        raise UnusableIndex(file, f"its format_version must be {FORMAT_VERSION}, got {told[:40]}")
    try:
        entries = msgspec.json.decode(top["shards"], type=cast(Any, list)[known.entry_type])
    except (msgspec.DecodeError, RecursionError):
        raise _first_problem(file, shards, known) from None
    seen: set[str] = set()
    suffixes = known.suffixes + known.further_suffixes
    for position, entry in enumerate(entries):
        why = file_name_problem(entry.basename, suffixes, in_folders=in_folders)
        if why is None and entry.basename in seen:
            why = "an earlier entry has the same name"
        if why is not None:
            raise _unusable(file, position, entry.basename, why)
        seen.add(entry.basename)
    if sum([entry.num_rows for entry in entries]) >= MOST_ROWS:
        raise UnusableIndex(file, f"all its shards together have {MOST_ROWS} rows or more")
    try:
        for position, entry in enumerate(entries):
            check_hashes(entry, position)
        known.resolve(entries)
    except EntryProblem as exc:
        raise _unusable(file, exc.position, entries[exc.position].basename, exc.why) from exc
    return sorted(entries, key=lambda entry: entry.basename.encode())


def _first_problem(file: str, shards: list[msgspec.Raw], known: FileFormat) -> UnusableIndex:
    """Find the entry whose types are wrong."""
    for position, raw in enumerate(shards):
        try:
            msgspec.json.decode(raw, type=known.entry_type)
        except (msgspec.DecodeError, RecursionError) as exc:
            fields = _either(raw, dict[str, msgspec.Raw]) or {}
            return _unusable(
                file, position, _either(fields.get("basename", b"null"), str), str(exc)
            )
    return UnusableIndex(file, "an entry of it is wrong")


def _unusable(file: str, position: int, name: str | None, why: str) -> UnusableIndex:
    return UnusableIndex(file, f"its entry {position} ({name!r}) is wrong: {why}")


def _decoded(content: bytes | msgspec.Raw, kind: type[Value], file: str) -> Value | None:
    """Decode JSON; None if it is of another type."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError) as exc:
        raise UnusableIndex(file, f"it is no JSON: {exc}") from exc


def _either(content: bytes | msgspec.Raw, kind: type[Value]) -> Value | None:
    """Decode a part of JSON that was read before; None if it is of another type."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError):  # strings were not looked at before
        return None
