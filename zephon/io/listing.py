"""The files of a dataset's directory: which are data, which are passed over, and why.

Names are relative to the directory, with folders where a selection looks into them. Order is
bytewise by the whole name, the same on every machine and store.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zephon.errors import DatasetError
from zephon.io.selection import DIRECT, Selection
from zephon.io.walk import DIRECT_ONLY, TEMPORARY, Entry, walked

MOST_TOLD = 100
"""Of so many entries that are passed over for one reason each is told."""

_UNMATCHED = "no pattern matches it"
_NOT_DATA = {
    "index.json": "an index; not used",
    "_index.json": "an index; not used",
    "_catalog.arrow": "a catalogue; not used",
}
_PACKED = "packed in a way that is not read; unpack it, or use gzip, zstd, bzip2 or xz"
_NOT_YET = {
    ".vortex": "Vortex is not read yet",
    ".lance": "Lance is not read yet",
    ".mds": "MDS is not read yet",
    ".mds.zstd": "MDS is not read yet",
    ".lz4": _PACKED,
    ".zip": _PACKED,
    ".7z": _PACKED,
    ".tgz": "an archive; name it .tar.gz",
    **dict.fromkeys(
        (".json", ".json.gz", ".json.zst", ".json.bz2", ".json.xz"),
        "JSON; fmt='json' reads it, or fmt='jsonl' if each line is an object",
    ),
    **dict.fromkeys(
        (".txt", ".txt.gz", ".txt.zst", ".txt.bz2", ".txt.xz"), "plain text; fmt='text' reads it"
    ),
}


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a directory, sorted.

    files: names of the data files, bytewise in order; all of one kind.
    kind: the format of those files.
    passed_over: one line for each other entry: its name and why it is not data; of many for one
        reason, the first 100 and how many more.
    """

    files: tuple[str, ...]
    kind: str
    passed_over: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """How a directory differs from what an index names.

    missing: files that are named, and are not there or are directories.
    unnamed: data files that are wanted and not named, each with its format.
    passed_over: as in ``Listing``.
    """

    missing: Sequence[str]
    unnamed: tuple[tuple[str, str], ...]
    passed_over: tuple[str, ...]

    def unnamed_of(self, kind: str) -> list[str]:
        """Give the files of a format that are not named, in bytewise order."""
        return sorted((file for file, other in self.unnamed if other == kind), key=os.fsencode)


def list_directory(
    name: str,
    directory: Path,
    suffixes: Mapping[str, Collection[str]],
    fmt: str | None,
    *,
    further: Collection[str] = (),
    yielding: Collection[str] = (),
    selection: Selection = DIRECT,
) -> Listing:
    """List a directory and decide its format.

    Args:
        name: the dataset, for messages.
        directory: an existing local directory.
        suffixes: file suffixes of each known format.
        fmt: the one format to read; None decides by the files.
        further: suffixes that count as those of ``fmt`` where no file has one of these.
        yielding: formats whose files are no data beside those of other formats, without ``fmt``.
        selection: the files that are wanted.

    Raises:
        DatasetError: no data file, data files of several formats, or a folder cannot be read.
    """
    entries = walked(name, directory, selection)
    return chosen(
        name, str(directory), entries, suffixes, fmt, further, yielding, selection=selection
    )


def chosen(
    name: str,
    where: str,
    entries: Iterable[Entry],
    suffixes: Mapping[str, Collection[str]],
    fmt: str | None,
    further: Collection[str] = (),
    yielding: Collection[str] = (),
    *,
    selection: Selection = DIRECT,
) -> Listing:
    """Choose the data files among what lies somewhere; the arguments are ``list_directory``'s.

    Args:
        name: the dataset, for messages.
        where: they lie, for messages.
        entries: what there is, in any order.
        suffixes: file suffixes of each known format.
        fmt: the one format to read; None decides by the files.
        further: suffixes that count as those of ``fmt`` where no file has one of these.
        yielding: formats whose files are no data beside those of other formats, without ``fmt``.
        selection: the files that are wanted.

    Raises:
        DatasetError: as ``list_directory``.
    """
    found: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: os.fsencode(entry.name)):
        kind = _kind(entry.name, suffixes)
        is_data = kind is not None or entry.name.lower().endswith(tuple(further))
        reason = _reason(entry, is_data=is_data)
        if reason or kind is None:
            reasons[entry.name] = reason or _unknown(entry.name)
        else:
            found.setdefault(kind, []).append(entry.name)
    if fmt is not None and fmt not in found and further:
        _take_further(found, reasons, fmt, tuple(further))
    if fmt is None and found.keys() - yielding:
        for other in found.keys() & yielding:
            reasons |= dict.fromkeys(found.pop(other), f"{other}; pass fmt={other!r} to read it")
    if fmt is None and len(found) > 1:
        raise DatasetError(_mixed(name, where, found))
    kind = fmt or next(iter(found), None)
    if kind is None or kind not in found:
        everything = reasons | _others(found, fmt)
        wanted = {**suffixes, fmt: (*suffixes.get(fmt, ()), *further)} if fmt else suffixes
        raise DatasetError(_nothing(name, where, fmt, wanted, everything, selection))
    reasons |= _others(found, fmt)
    for file in found[kind]:
        if not file.isprintable() and any("\udc80" <= sign <= "\udcff" for sign in file):
            raise DatasetError(
                f"dataset {name!r}: names of data files must be UTF-8, got {os.fsencode(file)!r} "
                f"in {where!r}; rename it"
            )
    return Listing(tuple(found[kind]), kind, _told(reasons))


def list_beside(
    name: str,
    directory: Path,
    suffixes: Mapping[str, Collection[str]],
    named: Collection[str],
    index: str,
    selection: Selection = DIRECT,
) -> Beside:
    """Compare a directory with the files that an index names.

    Args:
        name: the dataset, for messages.
        directory: an existing local directory.
        suffixes: file suffixes of each known format.
        named: the files that the index names.
        index: the name of the index.
        selection: the files that are wanted.

    Raises:
        DatasetError: a folder cannot be read.
    """
    return beside(walked(name, directory, selection), suffixes, named, index)


def beside(
    found: Iterable[Entry],
    suffixes: Mapping[str, Collection[str]],
    named: Collection[str],
    index: str,
) -> Beside:
    """Compare what lies somewhere with the files that an index names.

    Args:
        found: what there is, in any order.
        suffixes: file suffixes of each known format.
        named: the files that the index names.
        index: the name of the index.
    """
    entries = {entry.name: entry for entry in found}
    missing = [file for file in named if file not in entries or entries[file].is_folder]
    reasons, unnamed = {}, []
    for file in entries.keys() - set(named) - {index}:
        kind = _kind(file, suffixes)
        reason = _reason(entries[file], is_data=kind is not None)
        if reason is None and kind is not None:
            unnamed.append((file, kind))
            reason = f"not in {index}"
        reasons[file] = reason or _unknown(file)
    return Beside(tuple(missing), tuple(unnamed), _told(reasons))


def _told(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """Write a line an entry, in bytewise order; of very many for one reason, some and how many."""
    lines, counts = [], Counter[str]()
    for entry in sorted(reasons, key=os.fsencode):
        reason = reasons[entry]
        counts[reason] += 1
        if counts[reason] <= MOST_TOLD:
            lines.append(f"{entry if entry.isprintable() else repr(entry)}: {reason}")
    more = sorted((why, count - MOST_TOLD) for why, count in counts.items() if count > MOST_TOLD)
    return (*lines, *(f"and {count:,} more: {why}" for why, count in more))


def _reason(entry: Entry, *, is_data: bool) -> str | None:
    """Why an entry cannot be data, or is not wanted; None if it may be and is."""
    if entry.reason is not None:
        return entry.reason
    file = entry.name.rpartition("/")[2]
    if file in _NOT_DATA:
        return _NOT_DATA[file]
    if file.endswith(".crc"):
        return "a checksum"
    if file.endswith(TEMPORARY):
        return "temporary"
    if entry.taken:
        return None
    if file.startswith("."):
        return "hidden"
    if file.startswith("_"):
        return "a marker"
    return _UNMATCHED if is_data else None


def _kind(file: str, suffixes: Mapping[str, Collection[str]]) -> str | None:
    lowered = file.lower()
    for kind, endings in suffixes.items():
        if lowered.endswith(tuple(endings)):
            return kind
    return None


def _take_further(
    found: dict[str, list[str]], reasons: dict[str, str], fmt: str, further: tuple[str, ...]
) -> None:
    """Count files as data that are so only because a format was named, and none has its suffix.

    Those that are of another format by their suffix are taken only where there are no others.
    """
    unknown = [file for file, why in reasons.items() if why == _unknown(file)]
    others = [file for files in found.values() for file in files]
    able = ([f for f in files if f.lower().endswith(further)] for files in (unknown, others))
    taken = sorted(next(filter(None, able), []), key=os.fsencode)
    for file in taken:
        reasons.pop(file, None)
    for files in found.values():
        files[:] = [file for file in files if file not in taken]
    for kind in [kind for kind, files in found.items() if not files]:
        del found[kind]
    if taken:
        found[fmt] = taken


def _unknown(file: str) -> str:
    lowered = file.lower()
    return next((why for end, why in _NOT_YET.items() if lowered.endswith(end)), "not data")


def _others(found: Mapping[str, list[str]], fmt: str | None) -> dict[str, str]:
    return {
        file: f"{kind}; only {fmt} is read"
        for kind, files in found.items()
        if fmt is not None and kind != fmt
        for file in files
    }


def _mixed(name: str, where: str, found: Mapping[str, list[str]]) -> str:
    kinds = " and ".join(
        f"{kind} ({len(files)}, such as {files[0]!r})" for kind, files in sorted(found.items())
    )
    options = " or ".join(f"fmt={kind!r}" for kind in sorted(found))
    return (
        f"dataset {name!r}: the directory {where!r} must hold one format, got {kinds}; "
        f"pass {options} to read one of them"
    )


def _nothing(
    name: str,
    where: str,
    fmt: str | None,
    suffixes: Mapping[str, Collection[str]],
    reasons: Mapping[str, str],
    selection: Selection,
) -> str:
    kinds = [fmt] if fmt else list(suffixes)
    wanted = _in_short([suffix for kind in kinds for suffix in suffixes[kind]])
    order = sorted(reasons.items(), key=lambda each: each[1] != _UNMATCHED)  # these first
    told = f"found {_some(order)}"
    if not selection.asked:
        what = "pass the directory that holds the data files"
        if DIRECT_ONLY in reasons.values():
            what += ", or recursive=True to read those of its folders"
        return (
            f"dataset {name!r}: Unsupported dataset format at path {where!r}: no file with one of "
            f"the suffixes {wanted}; {told}; {what}"
        )
    patterns = " or ".join(map(repr, selection.patterns))
    what = "patterns are relative to the directory, and ** stands for folders"
    if any("{" in pattern for pattern in selection.patterns):
        what += "; for braces, pass a list of patterns"
    return (
        f"dataset {name!r}: glob must match a data file below {where!r}, with one of the suffixes "
        f"{wanted}, and none matches {patterns}; {told}; {what}"
    )


def _in_short(suffixes: Sequence[str]) -> str:
    """Write suffixes, and those of compressed files once for all.

    >>> _in_short([".a", ".b", ".b.gz", ".b.xz", ".c", ".c.gz", ".c.xz"])
    '.a, .b, .c, or .b, .c with .gz, .xz behind'
    """
    whole = [one for one in suffixes if not any(one.startswith(f"{s}.") for s in suffixes)]
    told = ", ".join(whole)
    ends: dict[tuple[str, ...], list[str]] = {}
    for one in whole:
        behind = tuple(s.removeprefix(one) for s in suffixes if s.startswith(f"{one}."))
        ends.setdefault(behind, []).append(one)
    for behind, of in ends.items():
        if behind:
            told += f", or {', '.join(of)} with {', '.join(behind)} behind"
    return told


def _some(reasons: Iterable[tuple[str, str]]) -> str:
    lines = [f"{name!r} ({reason})" for name, reason in reasons]
    if not lines:
        return "nothing: the directory is empty"
    return ", ".join(lines[:10]) + (f" and {len(lines) - 10} more" if len(lines) > 10 else "")
