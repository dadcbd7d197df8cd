"""From a directory to its shards: by its catalogue, else its index, else its files.

Whatever tells of the shards, they are the same ones in the same order, with the same rows.
"""

from __future__ import annotations

import json
import os
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zephon.errors import DatasetError, NotYetError, nearest
from zephon.io.catalog import CATALOG, read_catalog
from zephon.io.catalog_file import Catalog, UnusableCatalog
from zephon.io.fields import Field
from zephon.io.formats.file_format import Entry, FileFormat
from zephon.io.formats.registering import FILE_FORMATS, suffixes_by_kind, yielding_kinds
from zephon.io.index import Index, UnusableIndex, read_index
from zephon.io.kept_counts import Counted, counted_files
from zephon.io.listing import Listing, list_beside, list_directory
from zephon.io.near_shards import first_rows_here
from zephon.io.selection import DIRECT, GLOB, Selection
from zephon.io.shard import ListedBy, Shard
from zephon.io.shards import Shards

_NOT_YET = ("lance", "litdata", "mds", "vortex")


MANY_FILES = 64
"""From so many on, whoever opens a directory without an index is told of it, once."""

Formats = Mapping[str, FileFormat]
"""Formats by name, with the options that the user gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What is known of a directory; its names are those of ``Dataset``."""

    format: FileFormat
    shards: Shards
    passed_over: tuple[str, ...]
    fields: tuple[Field, ...]
    fields_complete: bool


def check_format(name: str, fmt: str | None) -> None:
    """Refuse the name of a format that ``fmt`` cannot take.

    Raises:
        DatasetError: there is no such format.
        NotYetError: it is documented but not there yet.
    """
    if fmt is None or (isinstance(fmt, str) and fmt in FILE_FORMATS):
        return
    if isinstance(fmt, str) and fmt in _NOT_YET:
        raise NotYetError(
            f"dataset {name!r}: format {fmt!r} is not supported yet; convert the files to "
            f"Parquet or JSONL"
        )
    raise DatasetError(
        f"dataset {name!r}: Unknown format kind {fmt!r}; "
        f"{nearest(str(fmt), [*FILE_FORMATS, *_NOT_YET])}; a format of your own is known once "
        f"zephon.io.formats.register was called with it"
    )


def formats_with(name: str, fmt: str | None, options: object) -> Formats:
    """Give the formats that a directory may be of, with the options of the user.

    Args:
        name: of the dataset, for messages.
        fmt: the one format to read; None: any that has all the options.
        options: a mapping, or None.

    Raises:
        DatasetError: no format has such options, or not such values.
    """
    if options is None:
        return FILE_FORMATS
    having = {kind: each for kind, each in FILE_FORMATS.items() if each.option_defaults}
    if not isinstance(options, Mapping):
        raise DatasetError(
            f"dataset {name!r}: format_options must be a dict of options by name, got {options!r}; "
            f"{_told_options(having)}"
        )
    if fmt is not None:
        return {**FILE_FORMATS, fmt: FILE_FORMATS[fmt].configured(name, options)}
    able = {
        kind: each for kind, each in having.items() if options.keys() <= each.option_defaults.keys()
    }
    if not able:
        raise DatasetError(
            f"dataset {name!r}: format_options must be those of one format, got "
            f"{dict(options)!r}; {_told_options(having)}"
        )
    return {kind: each.configured(name, options) for kind, each in able.items()}


def _told_options(formats: Formats) -> str:
    told = [f"{kind} ({', '.join(each.option_defaults)})" for kind, each in formats.items()]
    return f"those that have some are {', '.join(told)}" if told else "no format has any"


def _format_words(fmt: str | None, formats: Formats) -> str:
    """Write how a command names a format and its options; "" or ends in a space."""
    options = {} if formats is FILE_FORMATS else formats[fmt or next(iter(formats))].said_options()
    words = f"--format {fmt} " if fmt else ""
    return words + (f"--options {shlex.quote(json.dumps(options))} " if options else "")


def list_files(
    name: str, directory: Path, fmt: str | None, selection: Selection = DIRECT
) -> Listing:
    """List the data files of a directory, as ``list_directory``, by the formats that are known."""
    return list_directory(
        name,
        directory,
        suffixes_by_kind(),
        fmt,
        further=FILE_FORMATS[fmt].further_suffixes if fmt in FILE_FORMATS else (),
        yielding=yielding_kinds(),
        selection=selection,
    )


def open_directory(
    name: str,
    directory: Path,
    fmt: str | None,
    formats: Formats = FILE_FORMATS,
    selection: Selection = DIRECT,
) -> Opened:
    """Find the shards of a directory.

    Args:
        name: of the dataset, for messages.
        directory: an existing local directory.
        fmt: the one format to read; None decides by the catalogue, the index, or the files.
        formats: those that can be read, with their options.
        selection: the files that are wanted. A catalogue or an index that was made of others is
            used if it names all of these.

    Raises:
        DatasetError: there is no data, the index names a file that is not there, or the catalogue
            is of a newer version.
        NotYetError: the index is of a format that is not there yet.
        ShardError: a file cannot be read, or is not what the index says.
    """
    words = _format_words(fmt, formats) + selection.words
    try:
        catalog = read_catalog(name, directory, formats, fmt, selection)
        if catalog is not None:
            return _open_catalog(name, directory, catalog, formats, selection)
    except UnusableCatalog as exc:
        where, command = str(directory / CATALOG), f"index --catalog {words}"
        warn_of_unused(name, where, exc, "the index or the files are", command)
    try:
        index = read_index(name, directory, formats, fmt)
        if index is not None and any(selection.matches(entry.basename) for entry in index.entries):
            return open_index(name, directory, index, formats, selection)
    except UnusableIndex as exc:
        warn_of_unused(name, str(directory / exc.file), exc, "the files are", f"index {words}")
        return count_files(name, directory, fmt, formats, selection)[0]
    found, counted = count_files(name, directory, fmt, formats, selection)
    _suggest_index(name, directory, counted, words)
    return found


def count_files(
    name: str,
    directory: Path,
    fmt: str | None,
    formats: Formats = FILE_FORMATS,
    selection: Selection = DIRECT,
) -> tuple[Opened, Counted]:
    """Count every file of a directory, but for those of which it is known from before.

    Args:
        name: of the dataset, for messages.
        directory: an existing local directory.
        fmt: the one format to read; None decides by the files.
        formats: those that can be read, with their options.
        selection: the files that are wanted.

    Raises:
        DatasetError: there is no data, or of several formats.
        ShardError: a file cannot be read.
    """
    listing = list_files(name, directory, fmt, selection)
    known = one_of(name, formats, listing.kind)
    patterns = {} if selection.is_direct else {GLOB: selection.patterns}
    counted = counted_files(name, directory, listing.files, known, patterns)
    return opened(name, known, counted.shards, listing.passed_over), counted


def describe_files(
    name: str,
    directory: Path,
    fmt: str | None,
    each: Callable[..., Iterator[Shard]],
    formats: Formats = FILE_FORMATS,
    selection: Selection = DIRECT,
) -> Opened:
    """Look at every file of a directory for all that an index tells, such as types of JSONL.

    Args:
        name: of the dataset, for messages.
        directory: an existing local directory.
        fmt: the one format to read; None decides by the files.
        each: looks at files as ``each_file`` does.
        formats: those that can be read, with their options.
        selection: the files that are wanted.

    Raises:
        DatasetError: there is no data, or of several formats.
        ShardError: a file cannot be read.
    """
    listing = list_files(name, directory, fmt, selection)
    known = formats[listing.kind]
    found = list(each(known.described, name, directory, listing.files))
    shards = Shards.of(found, directory=str(directory), layouts=known.layouts(found))
    return opened(name, known, shards, listing.passed_over)


def one_of(name: str, formats: Formats, kind: str) -> FileFormat:
    """Give the format of the files, with the options of the user.

    Raises:
        DatasetError: the options are those of another format.
    """
    if kind in formats:
        return formats[kind]
    options = dict(next(iter(formats.values())).options)
    raise DatasetError(
        f"dataset {name!r}: format_options must be those of the format of the files, {kind}, got "
        f"{options!r}, which are those of {' or '.join(formats)}; leave them out, or pass fmt="
    )


def _open_catalog(
    name: str, directory: Path, catalog: Catalog, formats: Formats, selection: Selection
) -> Opened:
    """Take a catalogue's word; one that was made of other files must name all that are wanted.

    Raises:
        UnusableCatalog: it does not.
    """
    known = formats[catalog.kind]
    if catalog.selection == selection:
        return Opened(
            format=known,
            shards=catalog.shards,
            passed_over=(),
            fields=catalog.fields,
            fields_complete=catalog.fields_complete,
        )
    named = catalog.shards.names.to_pylist()
    beside = list_beside(name, directory, suffixes_by_kind(), named, CATALOG, selection)
    if unnamed := beside.unnamed_of(catalog.kind):
        raise UnusableCatalog(unnamed_text(unnamed))
    return opened(name, known, catalog.shards, beside.passed_over)


def unnamed_text(files: Sequence[str]) -> str:
    """Say why an index is not used that does not name some files."""
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return f"it was made of other files, and tells nothing of {files[0]!r}{more}"


def open_index(
    name: str,
    directory: Path,
    index: Index,
    formats: Formats = FILE_FORMATS,
    selection: Selection = DIRECT,
) -> Opened:
    """Take an index's word for a directory's files; those of which it says too little are read.

    Raises:
        UnusableIndex: it was made of other files, and does not name all that are wanted.
        DatasetError: a file that it names is not there, or is a directory.
        ShardError: a file that was read is not what the index says.
    """
    known = formats[index.kind]
    entries = [entry for entry in index.entries if selection.matches(entry.basename)]
    named = [entry.basename for entry in entries]
    beside = list_beside(name, directory, suffixes_by_kind(), named, index.file, selection)
    unnamed = beside.unnamed_of(index.kind)
    if unnamed and index.selection != selection:
        raise UnusableIndex(index.file, unnamed_text(unnamed))
    missing = beside.missing
    if missing:
        what = ", a directory," if (directory / missing[0]).is_dir() else ""
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DatasetError(
            f"dataset {name!r}: {index.file} in {str(directory)!r} must name files that are "
            f"there, and {missing[0]!r}{what}{more} is not; put it back, or make the index anew "
            f"with `{ListedBy(index.file, name, index.selection.words).command(str(directory))}`"
        )
    listed_by = ListedBy(index.file, name, index.selection.words)
    folder = str(directory)
    told = [
        known.from_entry(entry, os.path.join(folder, entry.basename), listed_by)
        for entry in entries
    ]
    uncounted = [place for place, shard in enumerate(told) if shard is None]
    files = [named[place] for place in uncounted]
    counted = counted_files(name, directory, files, known).shards if files else ()
    for place, shard in zip(uncounted, counted, strict=True):
        told[place] = as_told(name, shard, entries[place], listed_by)
    found = [shard for shard in told if shard is not None]
    shards = Shards.of(found, directory=folder, layouts=known.layouts(found), listed_by=listed_by)
    return opened(name, known, shards, beside.passed_over)


def as_told(name: str, shard: Shard, entry: Entry[Any], listed_by: ListedBy) -> Shard:
    """Compare a file that was counted with what the index says of it."""
    told = replace(shard, listed_by=listed_by)
    if (shard.rows, shard.bytes) != (entry.num_rows, entry.bytes):
        held = f"it has {shard.rows} rows in {shard.bytes} bytes"
        raise told.stale(name, f"{held}, not {entry.num_rows} in {entry.bytes}")
    listed_by.modified(shard.name, shard.mtime_ns)
    return told


def opened(name: str, known: FileFormat, shards: Shards, passed_over: tuple[str, ...]) -> Opened:
    """Add the fields to what is known."""
    with first_rows_here(known, shards) as here:
        fields, complete = known.fields(name, here)
    return Opened(
        format=known,
        shards=shards,
        passed_over=passed_over,
        fields=fields,
        fields_complete=complete,
    )


_suggested: set[Path] = set()


def _suggest_index(name: str, directory: Path, counted: Counted, words: str) -> None:
    """Say that an index would help, once for each directory of many files."""
    if counted.looked_at < MANY_FILES or directory in _suggested:
        return
    _suggested.add(directory)
    each = "each" if counted.looked_at == len(counted.shards) else f"{counted.looked_at:,}"
    known = ""
    if counted.kept_in:
        known = f"; what was found is kept for the next time in {counted.kept_in!r}"
    elif counted.problem:
        known = f"; what was found cannot be kept for the next time: {counted.problem}"
    warnings.warn(
        f"dataset {name!r}: {str(directory)!r} has no index, so {each} of its "
        f"{len(counted.shards):,} files was looked at to open it{known}; write an index once with "
        f"`zephon index {words}{shlex.quote(str(directory))}`",
        RuntimeWarning,
        stacklevel=4,  # the caller of Dataset.from_path
    )


def warn_of_unused(name: str, path: str, problem: Exception, instead: str, command: str) -> None:
    """Say that an index or a catalogue is not used, and why.

    Args:
        name: of the dataset.
        path: of the file, or its url.
        problem: why.
        instead: what is read, in words that end with "are".
        command: makes it anew, without the directory.
    """
    warnings.warn(
        f"dataset {name!r}: {path!r} is not used, {instead} read instead: {problem}; make it "
        f"anew with `zephon {command}{shlex.quote(path.rpartition('/')[0] or '/')}`",
        RuntimeWarning,
        stacklevel=4,  # the caller of Dataset.from_path
    )
