"""What lies in a local directory, and in those of its folders that a selection looks into.

A link to a folder is followed, but never to a folder that is being looked into; and where only
``**`` would lead into it, not to one inside the directory, whose files are found there.
A folder that cannot be read is an error, since nobody knows what is missed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from zephon.errors import DatasetError
from zephon.io.selection import Places, Selection, is_hidden

TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".incomplete", ".crdownload", ".swp", "~")

DIRECT_ONLY = "a directory; only direct children are read"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or a folder that is not looked into.

    name: relative to the directory.
    taken: the selection wants it.
    reason: why it cannot be data, whatever its name and the selection say; None if it may be.
    is_folder: it is one.
    """

    name: str
    taken: bool = False
    reason: str | None = None
    is_folder: bool = False


def walked(name: str, directory: Path, selection: Selection) -> Iterator[Entry]:
    """Find what lies in a directory, in no order.

    Args:
        name: of the dataset, for messages.
        directory: an existing local directory.
        selection: decides which folders are looked into.

    Raises:
        DatasetError: a folder cannot be read.
    """
    root = _number(os.stat(directory))
    waiting: list[tuple[str, Places, tuple[tuple[int, int], ...]]] = [
        ("", selection.start, (root,))
    ]
    while waiting:
        below, places, above = waiting.pop()
        for child in _children(name, directory, below):
            label = below + child.name
            try:
                is_folder = child.is_dir()
            except OSError:  # a link that leads back to itself
                yield Entry(label, reason="a broken link")
                continue
            if not is_folder:
                reason = None
                if not child.is_file():
                    reason = "a broken link" if child.is_symlink() else "not a regular file"
                yield Entry(label, selection.takes(places, child.name), reason)
                continue
            inside = selection.into(places, child.name)
            reason = folder_reason(child.name, inside, selection)
            number = None
            if reason is None and (child.is_symlink() or selection.goes_deep):
                number = _number(child.stat())
                reason = _loop(directory, child, number, above, selection, places)
            if reason is None:
                waiting.append((f"{label}/", inside, (*above, number) if number else above))
            else:
                yield Entry(label, reason=reason, is_folder=True)


def in_folders(names: Iterable[str], selection: Selection) -> Iterator[Entry]:
    """Find the same among names that were listed elsewhere, such as by a store.

    Args:
        names: of files, relative to the root.
        selection: as for ``walked``.

    >>> names = ["a.jsonl", "en/b.jsonl", ".git/x/y", ".git/z"]
    >>> deep = Selection.of("d", recursive=True, glob=None)
    >>> [(entry.name, entry.taken) for entry in in_folders(names, deep)]
    [('a.jsonl', True), ('en/b.jsonl', True), ('.git', False)]
    """
    known: dict[str, Places | None] = {"": selection.start}
    for name in names:
        parts = name.split("/")
        below = ""
        for part in parts[:-1]:
            folder = f"{below}{part}/"
            if folder not in known:
                inside = selection.into(known[below] or frozenset(), part)
                reason = folder_reason(part, inside, selection)
                known[folder] = None if reason else inside
                if reason:
                    yield Entry(f"{below}{part}", reason=reason, is_folder=True)
            below = folder
            if known[folder] is None:
                break
        places = known[below]
        if places is not None:
            yield Entry(name, selection.takes(places, parts[-1]))


def folder_reason(folder: str, inside: Places, selection: Selection) -> str | None:
    """Say why a folder is not looked into; None if it is.

    Args:
        folder: its name, one part.
        inside: where patterns stand in it.
        selection: the patterns.
    """
    if selection.is_direct:
        return DIRECT_ONLY
    if folder.endswith(TEMPORARY):
        return "a temporary directory"
    if folder.lower().endswith(".lance"):
        return "Lance is not read yet"
    if inside:
        return None
    return "a hidden directory" if is_hidden(folder, folder=True) else "no pattern looks into it"


def _loop(
    directory: Path,
    child: os.DirEntry[str],
    number: tuple[int, int],
    above: tuple[tuple[int, int], ...],
    selection: Selection,
    places: Places,
) -> str | None:
    """Say why a folder must not be looked into though a pattern does: its files are found twice."""
    if number in above:
        return "a link to a directory that holds it"
    if not child.is_symlink() or selection.names_folder(places, child.name):
        return None
    target = Path(os.path.realpath(child.path))
    if target.is_relative_to(directory):
        found = selection.start
        for part in target.relative_to(directory).parts:
            found = selection.into(found, part)
            if folder_reason(part, found, selection):
                return None
        return "a link to a directory that is looked into anyway"
    return None


def _children(name: str, directory: Path, below: str) -> list[os.DirEntry[str]]:
    folder = os.path.join(directory, below) if below else str(directory)
    try:
        with os.scandir(folder) as children:
            return list(children)
    except OSError as exc:
        told = f"; or leave {below!r} out with glob=" if below else "; make it so"
        raise DatasetError(
            f"dataset {name!r}: the directory {folder!r} must be readable, got {exc}{told}"
        ) from exc


def _number(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
