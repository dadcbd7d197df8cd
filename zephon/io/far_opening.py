"""From a far place to its shards: by its catalogue, else its index, else its files.

As for local directories, with fewer questions: where an index tells of the files nothing else is
looked at, not even listed. Else there is one listing; the footers of Parquet files are read, and
files of other formats are read whole, unless it is known from before what they hold.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable

import pyarrow as pa

from zephon.errors import AccessError
from zephon.io.catalog import CATALOG
from zephon.io.catalog_file import Catalog, UnusableCatalog, read_shards
from zephon.io.far_files import FarFiles
from zephon.io.formats.file_format import FileFormat
from zephon.io.formats.registering import FILE_FORMATS, suffixes_by_kind, yielding_kinds
from zephon.io.index import INDEXES, Index, UnusableIndex, parse_index
from zephon.io.kept_counts import Counted, counted_files
from zephon.io.listing import beside, chosen
from zephon.io.opening import (
    MANY_FILES,
    Formats,
    Opened,
    as_told,
    one_of,
    opened,
    unnamed_text,
    warn_of_unused,
)
from zephon.io.selection import GLOB, Selection
from zephon.io.shard import ListedBy
from zephon.io.shards import Shards
from zephon.io.storage.place import Place, StoredFile
from zephon.io.walk import DIRECT_ONLY, Entry, in_folders

_READ_BYTES = 64 << 20
"""From so many on, whoever opens files that must be read whole is told of an index, once."""


def open_place(
    name: str, place: Place, fmt: str | None, formats: Formats, selection: Selection
) -> Opened:
    """Find the shards of a far place; the arguments are those of ``open_directory``.

    Raises:
        DatasetNotFoundError: there is no such place.
        DatasetError, NotYetError, ShardError: as ``open_directory``.
        AccessError, StorageError: the place may not be read, or does not answer.
    """
    if not place.is_split:
        found = _open_told(name, place, fmt, formats, selection)
        if found is not None:
            return found
    files, entries = _listed(place, selection)
    listing = chosen(
        name,
        place.url,
        entries,
        suffixes_by_kind(),
        fmt,
        FILE_FORMATS[fmt].further_suffixes if fmt in FILE_FORMATS else (),
        yielding_kinds(),
        selection=selection,
    )
    known = one_of(name, formats, listing.kind)
    at = {file.name: file for file in files}
    far = FarFiles(place, [at[file] for file in listing.files])
    patterns = {} if selection.is_direct else {GLOB: selection.patterns}
    counted = counted_files(name, place.url, listing.files, known, patterns, far)
    _suggest_index(name, place, known, counted)
    return opened(name, known, counted.shards, listing.passed_over)


def _open_told(
    name: str, place: Place, fmt: str | None, formats: Formats, selection: Selection
) -> Opened | None:
    """Take the word of a catalogue or an index; None if there is none that can be used."""
    try:
        content = _content(place, CATALOG)
        if content is not None:
            found = _by_catalog(name, place, content, fmt, formats, selection)
            if found is not None:
                return found
    except UnusableCatalog as exc:
        command = f"index --catalog {selection.words}"
        url = f"{place.url}/{CATALOG}"
        warn_of_unused(name, url, exc, "the index or the files are", command)
    for file in INDEXES:
        content = _content(place, file)
        if content is None:
            continue
        try:
            index = parse_index(name, f"{place.url}/{file}", content, formats, fmt)
            if index is not None and any(selection.matches(e.basename) for e in index.entries):
                return _by_index(name, place, index, formats, selection)
        except UnusableIndex as exc:
            url = f"{place.url}/{file}"
            warn_of_unused(name, url, exc, "the files are", f"index {selection.words}")
        return None
    return None


def _content(place: Place, name: str) -> bytes | None:
    """Read a small file of a place; None if it is not there."""
    try:
        file = place.look(name)
    except AccessError:  # stores that may not be listed say so of files that are not there
        return None
    if file is None:
        return None
    target = io.BytesIO()
    place.fetch(file, target)
    return target.getvalue()


def _by_catalog(
    name: str,
    place: Place,
    content: bytes,
    fmt: str | None,
    formats: Formats,
    selection: Selection,
) -> Opened | None:
    catalog: Catalog | None = read_shards(
        pa.py_buffer(content),
        place.url,
        formats,
        fmt=fmt,
        listed_by=lambda made_of: ListedBy(CATALOG, name, made_of.words),
        selection=selection,
    )
    if catalog is None:
        return None
    known = formats[catalog.kind]
    passed_over: tuple[str, ...] = ()
    listed = None
    if catalog.selection != selection:
        named = catalog.shards.names.to_pylist()
        listed, entries = _listed(place, selection)
        compared = beside(entries, suffixes_by_kind(), named, CATALOG)
        if unnamed := compared.unnamed_of(catalog.kind):
            raise UnusableCatalog(unnamed_text(unnamed))
        passed_over = compared.passed_over
    catalog.shards.far = FarFiles(place, listed)
    return opened(name, known, catalog.shards, passed_over)


def _by_index(
    name: str, place: Place, index: Index, formats: Formats, selection: Selection
) -> Opened:
    known = formats[index.kind]
    entries = [entry for entry in index.entries if selection.matches(entry.basename)]
    named = [entry.basename for entry in entries]
    passed_over: tuple[str, ...] = ()
    listed = None
    if index.selection != selection:
        listed, found = _listed(place, selection)
        compared = beside(found, suffixes_by_kind(), named, index.file)
        if unnamed := compared.unnamed_of(index.kind):
            raise UnusableIndex(index.file, unnamed_text(unnamed))
        passed_over = compared.passed_over
    far = FarFiles(place, listed)
    listed_by = ListedBy(index.file, name, index.selection.words)
    told = [
        known.from_entry(entry, f"{place.url}/{entry.basename}", listed_by) for entry in entries
    ]
    uncounted = [at for at, shard in enumerate(told) if shard is None]
    files = [named[at] for at in uncounted]
    counted = counted_files(name, place.url, files, known, None, far).shards if files else ()
    for at, shard in zip(uncounted, counted, strict=True):
        told[at] = as_told(name, shard, entries[at], listed_by)
    whole = [shard for shard in told if shard is not None]
    layouts = known.layouts(whole)
    shards = Shards.of(whole, directory=place.url, layouts=layouts, listed_by=listed_by, far=far)
    return opened(name, known, shards, passed_over)


def _listed(place: Place, selection: Selection) -> tuple[tuple[StoredFile, ...], list[Entry]]:
    """List a place, and say of each file whether it is wanted."""
    if place.is_split:
        files = place.listed().files
        if selection.asked:
            return files, [*in_folders((file.name for file in files), selection)]
        return files, [Entry(file.name, taken=True) for file in files]
    found = place.listed(deep=not selection.is_direct)
    entries: Iterable[Entry] = in_folders((file.name for file in found.files), selection)
    folders = [Entry(each, reason=DIRECT_ONLY, is_folder=True) for each in found.folders]
    return found.files, [*entries, *folders]


_suggested: set[str] = set()


def _suggest_index(name: str, place: Place, known: FileFormat, counted: Counted) -> None:
    """Say that an index would help, once for each place."""
    read = 0 if known.reads_far_files else int(counted.shards.bytes.sum())
    few = counted.looked_at < MANY_FILES and read < _READ_BYTES
    if not counted.looked_at or few or place.url in _suggested or place.is_split:
        return
    _suggested.add(place.url)
    known_later = f"what was found is kept for the next time in {counted.kept_in!r}"
    if not counted.kept_in:
        known_later = f"what was found cannot be kept for the next time: {counted.problem}"
    how = "the footer of each" if known.reads_far_files else "every byte of each"
    warnings.warn(
        f"dataset {name!r}: {place.url!r} has no index, so {how} of {counted.looked_at:,} of its "
        f"{len(counted.shards):,} files was read to open it; {known_later}; write an index where "
        "the files come from, with `zephon index`, and put it beside them",
        RuntimeWarning,
        stacklevel=4,  # the caller of Dataset.from_path
    )
