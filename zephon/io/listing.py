"""The files of a dataset's directory: which are data, which are passed over, and why.

Only direct children count. Order is bytewise by name, the same on every machine and store.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from zephon.errors import DatasetError

_TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".incomplete", ".crdownload", ".swp", "~")
_NOT_DATA = {
    "index.json": "an index; not used",
    "_index.json": "an index; not used",
    "_catalog.arrow": "a catalogue; not used",
}
_NOT_YET = {
    ".vortex": "Vortex is not read yet",
    ".lance": "Lance is not read yet",
    ".mds": "MDS is not read yet",
    ".mds.zstd": "MDS is not read yet",
    ".json": "not JSON lines by its name; fmt='jsonl' reads it if it holds one object a line",
}


@dataclass(frozen=True, slots=True)
class Listing:
    """The direct children of a directory, sorted.

    files: names of the data files, bytewise in order; all of one kind.
    kind: the format of those files.
    passed_over: one line for each other entry: its name and why it is not data.
    """

    files: tuple[str, ...]
    kind: str
    passed_over: tuple[str, ...]


def list_directory(
    name: str,
    directory: Path,
    suffixes: Mapping[str, Collection[str]],
    fmt: str | None,
    *,
    further: Collection[str] = (),
    yielding: Collection[str] = (),
) -> Listing:
    """List a directory and decide its format.

    Args:
        name: the dataset, for messages.
        directory: an existing local directory.
        suffixes: file suffixes of each known format.
        fmt: the one format to read; None decides by the files.
        further: suffixes that count as those of ``fmt`` where no file has one of these.
        yielding: formats whose files are no data beside those of other formats, without ``fmt``.

    Raises:
        DatasetError: no data file, or data files of several formats.
    """
    found: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for entry in sorted(_children(name, directory), key=lambda entry: os.fsencode(entry.name)):
        reason = _reason(entry)
        kind = None if reason else _kind(entry.name, suffixes)
        if kind is None:
            reasons[entry.name] = reason or _unknown(entry.name)
        else:
            found.setdefault(kind, []).append(entry.name)
    if fmt is not None and fmt not in found and further:
        _take_further(found, reasons, fmt, tuple(further))
    if fmt is None and found.keys() - yielding:
        for other in found.keys() & yielding:
            reasons |= dict.fromkeys(found.pop(other), f"{other}; pass fmt={other!r} to read it")
    if fmt is None and len(found) > 1:
        raise DatasetError(_mixed(name, directory, found))
    kind = fmt or next(iter(found), None)
    if kind is None or kind not in found:
        everything = reasons | _others(found, fmt)
        wanted = {**suffixes, fmt: (*suffixes.get(fmt, ()), *further)} if fmt else suffixes
        raise DatasetError(_nothing(name, directory, fmt, wanted, everything))
    reasons |= _others(found, fmt)
    for file in found[kind]:
        if not file.isprintable() and any("\udc80" <= sign <= "\udcff" for sign in file):
            raise DatasetError(
                f"dataset {name!r}: names of data files must be UTF-8, got {os.fsencode(file)!r} "
                f"in {str(directory)!r}; rename it"
            )
    order = sorted(reasons, key=os.fsencode)
    return Listing(tuple(found[kind]), kind, tuple(f"{key}: {reasons[key]}" for key in order))


def list_beside(
    name: str,
    directory: Path,
    suffixes: Mapping[str, Collection[str]],
    named: Collection[str],
    index: str,
) -> tuple[list[str], tuple[str, ...]]:
    """Compare a directory with the files that an index names.

    Args:
        name: the dataset, for messages.
        directory: an existing local directory.
        suffixes: file suffixes of each known format.
        named: the files that the index names.
        index: the name of the index.

    Returns:
        Those named files that are not there or are directories, and a line for each other entry of
        the directory.
    """
    entries = {entry.name: entry for entry in _children(name, directory)}
    missing = [
        file
        for file in named
        # A link costs a look at what it leads to: that is had when the file is opened.
        if file not in entries or entries[file].is_dir(follow_symlinks=False)
    ]
    reasons = {}
    for file in sorted(entries.keys() - set(named) - {index}, key=os.fsencode):
        data = _kind(file, suffixes) and f"not in {index}"
        reasons[file] = _reason(entries[file]) or data or _unknown(file)
    return missing, tuple(f"{file}: {reason}" for file, reason in reasons.items())


def _children(name: str, directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as children:
            return list(children)
    except OSError as exc:
        raise DatasetError(
            f"dataset {name!r}: the directory {str(directory)!r} must be readable, got {exc}"
        ) from exc


def _reason(entry: os.DirEntry[str]) -> str | None:
    """Why an entry cannot be data whatever its suffix is; None if it may be."""
    name = entry.name
    try:
        is_directory = entry.is_dir()
    except OSError:  # a link that leads back to itself
        return "a broken link"
    if is_directory:
        return "a directory; only direct children are read"
    if not entry.is_file():
        return "a broken link" if entry.is_symlink() else "not a regular file"
    if name in _NOT_DATA:
        return _NOT_DATA[name]
    if name.startswith("."):
        return "hidden" if not name.endswith(".crc") else "a checksum"
    if name.startswith("_"):
        return "a marker"
    if name.endswith(".crc"):
        return "a checksum"
    return "temporary" if name.endswith(_TEMPORARY) else None


def _kind(file: str, suffixes: Mapping[str, Collection[str]]) -> str | None:
    lowered = file.lower()
    for kind, endings in suffixes.items():
        if lowered.endswith(tuple(endings)):
            return kind
    return None


def _take_further(
    found: dict[str, list[str]], reasons: dict[str, str], fmt: str, further: tuple[str, ...]
) -> None:
    """Count files as data that are so only because a format was named, and none has its suffix."""
    named = [file for file, why in reasons.items() if why == _unknown(file)]
    named += [file for files in found.values() for file in files]
    taken = sorted((f for f in named if f.lower().endswith(further)), key=os.fsencode)
    for file in taken:
        reasons.pop(file, None)
    for files in found.values():
        files[:] = [file for file in files if not file.lower().endswith(further)]
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


def _mixed(name: str, directory: Path, found: Mapping[str, list[str]]) -> str:
    kinds = " and ".join(
        f"{kind} ({len(files)}, such as {files[0]!r})" for kind, files in sorted(found.items())
    )
    options = " or ".join(f"fmt={kind!r}" for kind in sorted(found))
    return (
        f"dataset {name!r}: the directory {str(directory)!r} must hold one format, got {kinds}; "
        f"pass {options} to read one of them"
    )


def _nothing(
    name: str,
    directory: Path,
    fmt: str | None,
    suffixes: Mapping[str, Collection[str]],
    reasons: Mapping[str, str],
) -> str:
    kinds = [fmt] if fmt else list(suffixes)
    wanted = ", ".join(suffix for kind in kinds for suffix in suffixes[kind])
    return (
        f"dataset {name!r}: Unsupported dataset format at path {str(directory)!r}: no file with "
        f"one of the suffixes {wanted}; found {_some(reasons.items())}; pass the directory that "
        f"holds the data files"
    )


def _some(reasons: Iterable[tuple[str, str]]) -> str:
    lines = [f"{name!r} ({reason})" for name, reason in reasons]
    if not lines:
        return "nothing: the directory is empty"
    return ", ".join(lines[:10]) + (f" and {len(lines) - 10} more" if len(lines) > 10 else "")
