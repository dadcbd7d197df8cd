"""The root of the cache: a directory with a mark that says whose it is, and nobody else's things.

What is made is the user's alone, whatever the umask says. A directory that another user owns, or
that holds things which the cache did not make, is refused before anything is written to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zephon.errors import CacheError
from zephon.io.own_directory import (
    PRIVATE_DIRECTORY,
    PRIVATE_FILE,
    ROW_GROUP_FOLDER,
    ForeignRootError,
    make_directory,
)
from zephon.io.shard_cache.names import FOLDER, folder_name

MARK = ".zephon-cache"
USERS = ".users"
GOING = ".going"
ABOUT = ".dataset"
"""In a dataset's folder: what it is of."""

_FORMAT = 1
_NOTE = "Zephon keeps copies of shards here, and removes them by itself; see `zephon cache`."
_BESIDE = frozenset({ROW_GROUP_FOLDER, ".catalog", "tokenizers"})  # by default these lie here too
_OTHER = "name another io_options.cache.root"


def open_root(root: Path, *, ours: bool) -> None:
    """Make the root if need be, and see to it that it is the cache's.

    Args:
        root: an absolute path.
        ours: nobody named it, so that others may not be able to write there either.

    Raises:
        CacheError: it cannot be made or written, belongs to another user, or holds other things.
    """
    with _told(root, "a directory that this process can make and write"):
        _check_owner(root, ours=ours)
        make_directory(root)
        _check_owner(root, ours=ours)
        if not is_marked(root):
            _check_empty(root)
            _mark(root)
        for name in (USERS, GOING):
            own_folder(root / name)


def is_marked(root: Path) -> bool:
    """Tell whether a directory is a cache of a format that this release knows.

    Raises:
        CacheError: it is one of another format.
        OSError: it cannot be read.
    """
    try:
        text = (root / MARK).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return False
    # An empty one is being written just now, or its writer was killed there.
    found = _FORMAT
    if text:
        try:
            found = json.loads(text)["format"]
        except (ValueError, KeyError, TypeError):
            found = None
    if found != _FORMAT:
        raise CacheError(
            f"shard cache: {str(root / MARK)!r} must tell of format {_FORMAT}, and does not: "
            f"{text[:80]!r}; another release made this cache: {_OTHER}"
        )
    return True


def strangers(root: Path) -> list[str]:
    """List what lies in a directory and is neither a cache's mark nor of other caches of ours.

    Raises:
        OSError: it cannot be listed.
    """
    return sorted(set(os.listdir(root)) - _BESIDE - {MARK})


def own_folder(path: Path) -> None:
    """Make a folder of the cache, or make sure that the one that is there is this user's.

    Raises:
        ForeignRootError: it is a link, a file, or another user's.
        OSError: it cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(PRIVATE_DIRECTORY)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise ForeignRootError(f"{path} is no directory")
    if found.st_uid != os.geteuid():
        raise ForeignRootError(f"{path} belongs to {_user(found.st_uid)}")


def dataset_folder(root: Path, dataset: str, url: str) -> Path:
    """Make the folder of a dataset at one pinned place.

    Raises:
        CacheError: it cannot be made.
    """
    folder = root / folder_name(dataset, url)
    with _told(folder, "a directory that this process can make and write"):
        make_directory(root)  # somebody may have removed it
        _mark(root)
        for name in (USERS, GOING):
            own_folder(root / name)
        own_folder(folder)
        about = folder / ABOUT
        if not about.exists():
            write_new(about, json.dumps({"dataset": dataset, "url": url}))
    return folder


def dataset_folders(root: Path) -> Iterator[Path]:
    """Give the folders of datasets, in order of their names; nothing else that lies there."""
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in sorted(names):
        if FOLDER.fullmatch(name) and (root / name / ABOUT).exists():
            yield root / name


def write_new(path: Path, text: str) -> bool:
    """Write a private file unless there is one; never through what lies there already.

    Returns:
        whether it was written.

    Raises:
        OSError: the directory cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, PRIVATE_FILE)
    except FileExistsError:
        return False
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return True


def _mark(root: Path) -> None:
    write_new(root / MARK, json.dumps({"format": _FORMAT, "note": _NOTE}) + "\n")


def _check_owner(root: Path, *, ours: bool) -> None:
    """Refuse another user's directory; where nobody named it, another's link to it, too."""
    for found in (os.stat, os.lstat) if ours else (os.stat,):
        try:
            status = found(root)
        except FileNotFoundError:
            continue
        if status.st_uid != os.geteuid():
            raise CacheError(
                f"shard cache: the root {str(root)!r} must belong to {_user(os.geteuid())}, who "
                f"runs this process, and belongs to {_user(status.st_uid)}; {_OTHER}"
            )
        if stat.S_ISLNK(status.st_mode):
            continue
        if not stat.S_ISDIR(status.st_mode):
            raise CacheError(
                f"shard cache: {str(root)!r} must be a directory, and is none; {_OTHER}"
            )
        if ours and status.st_mode & stat.S_IWOTH:
            raise CacheError(
                f"shard cache: nobody else may write in {str(root)!r}, and its mode is "
                f"{stat.S_IMODE(status.st_mode):04o}; {_OTHER}, or run `chmod go-w` on it"
            )


def _check_empty(root: Path) -> None:
    others = strangers(root)
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise CacheError(
            f"shard cache: {str(root)!r} must be empty, or a cache with the mark {MARK!r}, and it "
            f"holds {others[0]!r}{more}; {_OTHER}, or an empty directory in it"
        )


def _user(number: int) -> str:
    try:
        import pwd  # not on every system

        return f"user {pwd.getpwuid(number).pw_name!r} ({number})"
    except (ImportError, KeyError, OSError):
        return f"user {number}"


@contextmanager
def _told(path: Path, wanted: str) -> Iterator[None]:
    """Say in whatever the system raises which directory was wanted, and what for."""
    try:
        yield
    except CacheError:
        raise
    except OSError as exc:
        raise CacheError(
            f"shard cache: {str(path)!r} must be {wanted}, but {exc.strerror or exc}; {_OTHER}, or "
            "set cache.enabled=False"
        ) from exc
