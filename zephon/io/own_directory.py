"""Directories of our own, such as the spill: made for one user alone, and whose they may be.

Decoded rows and copies of files are as private as the rows themselves, whatever the umask says:
directories that are made here are the user's alone. One that was there already keeps its mode, so
that is how to share a root with a group; the files in it stay the user's own.

A root that nobody named lies where anyone may expect it, in the temporary directory where the user
has no home. What others could put there would be loaded as decoded rows, so such a root must be
the user's own, and so must the directory it lies in.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

DEFAULT_ROOT = "~/.cache/zephon"
ROW_GROUP_FOLDER = ".parquet-rg-cache"
PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class ForeignRootError(OSError):
    """The root of our own choosing is not this user's alone."""


def default_root() -> Path:
    """Give the place below the home directory; a user without one gets one for the machine."""
    try:
        return Path(DEFAULT_ROOT).expanduser()
    except RuntimeError:
        return Path(tempfile.gettempdir(), f"zephon-{os.getuid()}")


def own_row_group_root() -> Path:
    """Give the spill's root where nobody names one: a place that anyone can foresee."""
    return Path(default_root(), ROW_GROUP_FOLDER).absolute()


def check_ours(root: Path) -> None:
    """Refuse a root that someone else made or could change; one that is not there is fine.

    The directory it lies in may be a link that the user made, to a directory of the user's.

    Raises:
        ForeignRootError: it, or the directory it lies in, belongs or is open to others.
        OSError: it cannot be looked at.
    """
    for place in (root.parent, root):
        try:
            found = os.lstat(place)
        except FileNotFoundError:
            return
        linked = stat.S_ISLNK(found.st_mode)
        if linked and place is root:
            raise ForeignRootError(f"{place} is a link")
        _check_owner(place, found)
        if linked:
            found = os.stat(place)
            _check_owner(place, found)
        if not stat.S_ISDIR(found.st_mode):
            raise ForeignRootError(f"{place} is no directory")
        if found.st_mode & _WRITABLE_BY_OTHERS:
            mode = stat.S_IMODE(found.st_mode)
            raise ForeignRootError(f"others may write in {place}, whose mode is {mode:04o}")


def make_directory(root: Path) -> None:
    """Make a directory, and those above it that are missing, for this user alone.

    Raises:
        OSError: one of them cannot be made.
    """
    missing = [place for place in (root, *root.parents) if not place.exists()]
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was faster
            place.mkdir(PRIVATE_DIRECTORY)


def mark(root: Path, marker: str, text: str) -> None:
    """Leave a file that says whose directory it is; never write through what lies there already.

    Raises:
        OSError: the directory cannot be written, or is none.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(root / marker, flags, PRIVATE_FILE)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def _check_owner(place: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise ForeignRootError(
            f"{place} belongs to user {found.st_uid}, and this process is user {os.geteuid()}"
        )
