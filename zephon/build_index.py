"""Write what is known of a directory's shards, so that opening it looks at none of them.

An index, ``index.json``, is the documented JSON that other tools read and write too. A catalogue,
``_catalog.arrow``, is for directories of very many files: it is mapped, not read, and while it is
there the directory is not even listed. ``Dataset.from_path`` takes a catalogue before an index.

For JSONL, both also tell which types the fields have, so that expressions can use them: every line
is decoded once for that, at some 150 MB/s a thread.

Both tell a content mark of each file (``zephon.io.marks``), and for JSONL the SHA-256 of the whole
file. After adding, removing or changing files, make them anew: ``zephon index DIRECTORY``. A file
that is not what they say, by its size or its mark, is refused when it is opened; one that they do
not name is not read.

    python -m zephon.build_index parquet data/prose

The file is long because an index and a catalogue are written alike, and here.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from zephon.errors import DatasetError, NotYetError, PlanError, ZephonError, nearest
from zephon.io.atomic import written_atomically
from zephon.io.catalog import CATALOG, write_catalog
from zephon.io.catalog_file import Catalog, write_shards
from zephon.io.each_file import each_file
from zephon.io.formats.file_format import FileFormat
from zephon.io.formats.registering import FILE_FORMATS
from zephon.io.index import FORMAT_VERSION, INDEXES, Index, UnusableIndex, read_index
from zephon.io.location import file_to_write, local_directory, path_text, refuse_remote
from zephon.io.opening import (
    Opened,
    describe_files,
    formats_with,
    list_files,
    open_index,
    opened,
)
from zephon.io.progress import CountedFiles
from zephon.io.selection import GLOB, Selection
from zephon.io.shards import Shards

__all__ = ["build_catalog", "build_index", "format_of_files", "write_catalog"]

_USAGE = "usage: python -m zephon.build_index <format> <dataset_dir>"

Found = TypeVar("Found")


def build_index(
    format_name: str,
    dataset_dir: str | os.PathLike[str],
    *,
    output_path: str | os.PathLike[str] | None = None,
    progress: bool = True,
    max_workers: int = 8,
    recursive: bool = False,
    glob: str | Sequence[str] | None = None,
    format_options: Mapping[str, Any] | None = None,
) -> str:
    """Read every shard of a directory once, and write its index.

    The same files give the same bytes. A catalogue in the directory is made anew with it, since it
    would be used before the index.

    Args:
        format_name: such as "parquet" or "jsonl"; files of another format are left out.
        dataset_dir: the directory; only its direct children are read, unless ``recursive`` or
            ``glob`` says more.
        output_path: where to write; None: ``index.json`` in the directory. Only there is it found.
        progress: say on the error stream how far it is.
        max_workers: how many shards are looked at, at a time.
        recursive: look at the files of all folders below, too; as for ``Dataset.from_path``.
        glob: look only at files that these patterns match, likewise.
        format_options: how files are to be read, likewise; the index serves no other.

    Returns:
        The path that was written.

    Raises:
        DatasetError: an unknown format, or no file of it.
        PlanError: ``max_workers`` is not a whole number of at least 1.
        NotYetError: a store or a format that is documented but not there yet.
        ShardError: a file cannot be read.
        OSError: the index cannot be written.
    """
    call = "build_index"
    name, directory = _directory(call, dataset_dir)
    fmt = _checked_format(call, format_name)
    known = formats_with(name, fmt, format_options)[fmt]
    target = _target(call, name, directory, output_path, INDEXES[0])
    selection = Selection.of(name, recursive=recursive, glob=glob)
    files = list_files(name, directory, known.kind, selection).files
    each = _each_file(known, progress, _checked_workers(call, max_workers))
    found = list(each(known.indexed, name, directory, files))
    shards = [shard for shard, _, _ in found]
    extras = [extra for _, extra, _ in found]
    known.shortened(files, extras)
    entries = [
        {
            "basename": shard.name,
            "bytes": shard.bytes,
            "num_rows": shard.rows,
            "hashes": hashes,
            "extra": extra,
        }
        for shard, extra, hashes in found
    ]
    _write_index(target, entries, selection)
    if output_path is None and (directory / CATALOG).is_file():
        table = Shards.of(shards, directory=str(directory), layouts=known.layouts(shards))
        _write_catalog(directory / CATALOG, opened(name, known, table, ()), selection)
    return str(target)


def build_catalog(
    dataset_dir: str | os.PathLike[str],
    *,
    format_name: str | None = None,
    output_path: str | os.PathLike[str] | None = None,
    progress: bool = True,
    max_workers: int = 8,
    recursive: bool = False,
    glob: str | Sequence[str] | None = None,
    format_options: Mapping[str, Any] | None = None,
) -> str:
    """Write the catalogue of a directory.

    Its index is taken if it names every data file, with its size and its content mark, and is not
    older than any; else every file is read.

    Args:
        dataset_dir: the directory; only its direct children are read, unless ``recursive`` or
            ``glob`` says more.
        format_name: such as "parquet" or "jsonl"; None decides by the index, or by the files.
        output_path: where to write; None: ``_catalog.arrow`` in the directory. Only there is it
            found.
        progress: say on the error stream how far it is.
        max_workers: how many shards are looked at, at a time.
        recursive: look at the files of all folders below, too; as for ``Dataset.from_path``.
        glob: look only at files that these patterns match, likewise.
        format_options: how files are to be read, likewise; the catalogue serves no other.

    Returns:
        The path that was written.

    Raises:
        DatasetError: an unknown format, or no data.
        PlanError: ``max_workers`` is not a whole number of at least 1.
        NotYetError: a store or a format that is documented but not there yet.
        ShardError: a file cannot be read.
        OSError: the catalogue cannot be written.
    """
    call = "build_catalog"
    name, directory = _directory(call, dataset_dir)
    fmt = None if format_name is None else _checked_format(call, format_name)
    target = _target(call, name, directory, output_path, CATALOG)
    formats = formats_with(name, fmt, format_options)
    workers = _checked_workers(call, max_workers)
    selection = Selection.of(name, recursive=recursive, glob=glob)
    try:
        index = read_index(name, directory, formats, fmt)
    except UnusableIndex:
        index = None
    found = None
    if index is not None and index.selection == selection and _is_fresh(name, directory, index):
        found = open_index(name, directory, index, formats, selection)
    if found is None or found.shards.marks is None:  # an index of other tools tells no marks
        fmt = fmt or list_files(name, directory, None, selection).kind
        formats = formats_with(name, fmt, format_options)
        known = formats[fmt]
        each = _each_file(known, progress, workers)
        found = describe_files(name, directory, fmt, each, formats, selection)
    _write_catalog(target, found, selection)
    return str(target)


def format_of_files(
    dataset_dir: str | os.PathLike[str],
    *,
    recursive: bool = False,
    glob: str | Sequence[str] | None = None,
) -> str:
    """Name the format of a directory's files, by their suffixes; of those that are wanted.

    Raises:
        DatasetError: there is no data, or of several formats.
    """
    name, directory = _directory("format_of_files", dataset_dir)
    selection = Selection.of(name, recursive=recursive, glob=glob)
    return list_files(name, directory, None, selection).kind


def main(words: Sequence[str] | None = None) -> int:
    """Build one index from the command line; return the exit code.

    Args:
        words: format and directory; None takes the process's own.
    """
    given = sys.argv[1:] if words is None else words
    if len(given) != 2:
        print(_USAGE, file=sys.stderr)
        return 1
    try:
        print(build_index(given[0], given[1]))
    except (ZephonError, OSError) as exc:
        print(f"Error: {exc}", file=sys.stderr)
        return 1
    return 0


def _directory(call: str, dataset_dir: str | os.PathLike[str]) -> tuple[str, Path]:
    """Find the directory; it lends its name to messages."""
    text = path_text(f"{call}: dataset_dir", dataset_dir)
    name = os.path.basename(os.path.normpath(text))
    return name, local_directory(name, dataset_dir)


def _checked_format(call: str, name: object) -> str:
    if isinstance(name, str) and name in FILE_FORMATS:
        return name
    if name == "vortex":
        raise NotYetError(
            f"{call}: format 'vortex' is not supported yet; convert the files to Parquet or JSONL"
        )
    raise DatasetError(
        f"{call}: format must be one of {', '.join(map(repr, sorted(FILE_FORMATS)))}, got "
        f"{name!r}; {nearest(str(name), FILE_FORMATS)}"
    )


def _target(
    call: str,
    name: str,
    directory: Path,
    output_path: str | os.PathLike[str] | None,
    default: str,
) -> Path:
    if output_path is None:
        return file_to_write(call, directory, default)
    what = f"{call}: output_path"
    refuse_remote(what, path_text(what, output_path))
    return file_to_write(what, output_path, default)


def _checked_workers(call: str, max_workers: object) -> int:
    try:
        threads = 0 if isinstance(max_workers, bool) else operator.index(max_workers)  # type: ignore[arg-type]
    except TypeError:
        threads = 0
    if threads < 1:
        raise PlanError(
            f"{call}: max_workers must be a whole number of at least 1, got {max_workers!r}"
        )
    return threads


def _each_file(known: FileFormat, progress: bool, workers: int) -> Callable[..., Iterator[Any]]:
    each = functools.partial(each_file, threads=workers)
    return CountedFiles(each, sys.stderr, whole=not known.counts_quickly) if progress else each


def _is_fresh(name: str, directory: Path, index: Index) -> bool:
    """Tell whether an index names every data file, with its size, and is not older than any."""
    written = (directory / index.file).stat().st_mtime_ns
    sizes = {entry.basename: entry.bytes for entry in index.entries}
    files = list_files(name, directory, index.kind, index.selection).files
    if not sizes.keys() >= set(files):
        return False
    for file, size in sizes.items():
        status = os.stat(directory / file) if (directory / file).exists() else None
        if status is None or status.st_size != size or status.st_mtime_ns > written:
            return False
    return True


def _write_index(target: Path, entries: Sequence[dict[str, Any]], selection: Selection) -> None:
    """Write one shard a line, so that two indexes compare line by line."""
    told = b""
    if not selection.is_direct:
        told = b'"%s":%s,' % (GLOB.encode(), msgspec.json.encode(selection.patterns))
    lines = b",\n".join(msgspec.json.encode(entry) for entry in entries)
    with written_atomically(target) as draft:
        draft.write_bytes(
            b'{"format_version":%d,%s"shards":[\n%s\n]}\n' % (FORMAT_VERSION, told, lines)
        )


def _write_catalog(target: Path, found: Opened, selection: Selection) -> None:
    kind, complete = found.format.kind, found.fields_complete
    write_shards(target, Catalog(kind, found.shards, found.fields, complete, selection=selection))


if __name__ == "__main__":
    sys.exit(main())
