"""Where a dataset lies: from what the user wrote to a directory on this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

from zephon.errors import DatasetError, DatasetNotFoundError
from zephon.io.formats.registering import suffixes_by_kind
from zephon.io.selection import escaped
from zephon.io.storage.hub import find_on_hub
from zephon.io.storage.object_urls import bare, is_object_url
from zephon.io.storage.objects import ObjectPlace
from zephon.io.storage.place import Place

_REMOTE = ("s3", "gs", "gcs", "az", "azure", "abfs", "abfss", "hf")
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_RESERVED = ".parquet-rg-cache"


def local_directory(name: str, path: str | os.PathLike[str]) -> Path:
    """Resolve a path to an absolute directory that exists.

    Raises:
        DatasetError: no path, a url, or something other than a directory.
        DatasetNotFoundError: nothing lies at the path.
    """
    text = path_text(f"dataset {name!r}: path", path)
    refuse_remote(f"dataset {name!r}: path", text)
    try:
        directory = Path(text).expanduser().resolve()
        found = directory.exists()
    except (OSError, RuntimeError, ValueError) as exc:  # links in a circle, a name of no user, ...
        raise DatasetError(
            f"dataset {name!r}: path must be one that can be looked up, got {path!r}: {exc}; pass "
            f"the directory that holds the data files"
        ) from exc
    if not found:
        raise DatasetNotFoundError(
            f"dataset {name!r}: nothing lies at {str(directory)!r}; {_closest(directory)}"
            f"{_pattern_told(directory)}"
        )
    if not directory.is_dir():
        raise DatasetError(
            f"dataset {name!r}: path must be a directory, got the file {str(directory)!r}; "
            f"pass its directory {str(directory.parent)!r} with "
            f"glob={escaped(directory.name)!r} to read this file alone"
        )
    return directory


def path_text(what: str, path: object) -> str:
    """Give a path as it is written.

    Args:
        what: the argument, for messages.
        path: a str, or an object that stands for one.

    Raises:
        DatasetError: it is anything else, empty, or holds NUL.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise DatasetError(f"{what} must be a non-empty str without NUL, got {path!r}")
    return text


def file_to_write(what: str, path: object, default: str) -> Path:
    """Say where a file shall be written: at a path, or in the directory that lies there.

    Args:
        what: the argument, for messages.
        path: of the file, or of a directory.
        default: the file's name in a directory.

    Raises:
        DatasetError: it is no path, or the file can not be there.
    """
    target = Path(os.path.abspath(os.path.expanduser(path_text(what, path))))
    if target.is_dir():
        target /= default
    if target.is_dir():
        raise DatasetError(
            f"{what}: {str(target)!r} must be a file, or not be there, and it is a directory; move "
            f"it elsewhere"
        )
    if not target.parent.is_dir():
        raise DatasetError(
            f"{what} must lie in a directory that is there, got {str(target)!r}; make "
            f"{str(target.parent)!r} first"
        )
    return target


def check_name(name: object) -> None:
    """Refuse a dataset name that cannot be one part of a path.

    Raises:
        DatasetError: the name is empty, reserved, or holds a separator.
    """
    if not isinstance(name, str) or not name or name in (".", "..", _RESERVED):
        raise DatasetError(
            f"dataset name must be a non-empty str other than '.', '..' and {_RESERVED!r}, "
            f"got {name!r}; name it by what it holds, such as 'prose'"
        )
    if any(sign in name for sign in ("/", "\\", "\0")):
        raise DatasetError(
            f"dataset name must hold no slash, backslash or NUL, got {name!r}; "
            f"use '-' or '_' instead"
        )


def far_place(name: str, path: str | os.PathLike[str], fmt: str | None) -> Place | None:
    """Give the far place that a path names, pinned as far as it can be; None for a local path.

    Args:
        name: of the dataset, for messages.
        path: what the user wrote.
        fmt: the one format to read, or None.

    Raises:
        DatasetError: it has an unknown scheme, or is no url of its scheme.
        DatasetNotFoundError: the hub has no such repository, revision, config or split.
        AccessError: the hub refuses.
        StorageError: it does not answer.
        MissingExtraError: what reads the place is not installed.
    """
    text = path_text(f"dataset {name!r}: path", path)
    scheme = scheme_of(text)
    if scheme is None:
        return None
    if scheme == "hf":
        return find_on_hub(text, suffixes_by_kind(), fmt=fmt)
    if is_object_url(text):
        return ObjectPlace(text)
    raise _unknown_scheme(f"dataset {name!r}", scheme, text)


def scheme_of(path: str) -> str | None:
    """Give the scheme of a url in lower case; None for a local path."""
    found = _SCHEME.match(path)
    return None if found is None else found[1].lower()


def refuse_remote(what: str, path: str) -> None:
    """Refuse a path to write to that is not on this machine.

    Raises:
        DatasetError: it is a url.
    """
    scheme = scheme_of(path)
    if scheme is not None and scheme != "hf" and not is_object_url(path):
        raise _unknown_scheme(what, scheme, path)
    if scheme is not None:
        raise DatasetError(
            f"{what} must be a path on this machine, got {bare(path)!r}; write it here, and copy "
            "it there"
        )


def _unknown_scheme(what: str, scheme: str, path: str) -> DatasetError:
    known = ", ".join(f"{known}://" for known in _REMOTE)
    return DatasetError(
        f"{what}: unknown URL scheme {scheme + '://'!r} in {bare(path)!r}; supported are local "
        f"paths, {known}"
    )


def _pattern_told(path: Path) -> str:
    """Say how to pass a pattern, where a path looks like one."""
    there = next(parent for parent in path.parents if parent.exists())
    rest = path.relative_to(there).as_posix()
    if not any(sign in rest for sign in "*?["):
        return ""
    return f"; for a pattern, pass that directory with glob={rest!r}"


def _closest(path: Path) -> str:
    """Say how far the path exists: most wrong paths are wrong in their last parts."""
    parent = next(parent for parent in path.parents if parent.exists())
    return f"the nearest directory that exists is {str(parent)!r}"
