"""Where a dataset lies: from what the user wrote to a directory on this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

from zephon.errors import DatasetError, DatasetNotFoundError, NotYetError

_REMOTE = ("s3", "gs", "gcs", "az", "azure", "abfs", "abfss", "hf")
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_RESERVED = ".parquet-rg-cache"


def local_directory(name: str, path: str | os.PathLike[str]) -> Path:
    """Resolve a path to an absolute directory that exists.

    Raises:
        NotYetError: the path is remote, in a store that is documented but not there yet.
        DatasetError: an unknown scheme, or something other than a directory.
        DatasetNotFoundError: nothing lies at the path.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise DatasetError(f"dataset {name!r}: path must be a non-empty str, got {path!r}")
    if scheme := _SCHEME.match(text):
        _refuse_remote(name, text, scheme[1].lower())
    directory = Path(text).expanduser().resolve()
    if not directory.exists():
        raise DatasetNotFoundError(
            f"dataset {name!r}: nothing lies at {str(directory)!r}; {_closest(directory)}"
        )
    if not directory.is_dir():
        raise DatasetError(
            f"dataset {name!r}: path must be a directory, got the file {str(directory)!r}; "
            f"pass its directory {str(directory.parent)!r}"
        )
    return directory


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


def _refuse_remote(name: str, path: str, scheme: str) -> None:
    if scheme in _REMOTE:
        raise NotYetError(
            f"dataset {name!r}: {scheme}:// is not supported yet, got {path!r}; "
            f"copy the files to a local directory and pass that"
        )
    known = ", ".join(f"{known}://" for known in _REMOTE)
    raise DatasetError(
        f"dataset {name!r}: unknown URL scheme {scheme + '://'!r} in {path!r}; supported are "
        f"local paths, {known}"
    )


def _closest(path: Path) -> str:
    """Say how far the path exists: most wrong paths are wrong in their last parts."""
    parent = next(parent for parent in path.parents if parent.exists())
    return f"the nearest directory that exists is {str(parent)!r}"
