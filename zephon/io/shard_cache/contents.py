"""What lies in a cache, for people: listed, verified, and removed.

It opens no cache and makes nothing, so a look at a directory leaves it as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zephon.errors import CacheError, CacheInUseError
from zephon.io.page_digest import page_digest
from zephon.io.shard_cache.names import CLAIM, PART, SHARD, TOLD
from zephon.io.shard_cache.root import (
    ABOUT,
    GOING,
    MARK,
    USERS,
    dataset_folders,
    is_marked,
    strangers,
)
from zephon.io.shard_cache.told import Told, read_told
from zephon.io.shard_cache.users import User, living


@dataclass(frozen=True, slots=True)
class Cached:
    """A shard in the cache.

    dataset, url: what its folder is of. name: of the shard; of the file here, where nothing is
    told of it. bytes: of the file. used_s: when it was last held, in seconds since 1970; 0 where
    nothing is told.
    """

    dataset: str
    url: str
    name: str
    path: str
    bytes: int
    used_s: float
    told: Told | None


def marked_root(root: Path) -> bool:
    """Tell whether there is a cache; not, where nothing is.

    Raises:
        CacheError: something else lies there, or it cannot be read.
    """
    try:
        if is_marked(root):
            return True
        if not root.exists() or not strangers(root):
            return False
    except CacheError:
        raise
    except OSError as exc:
        raise CacheError(f"shard cache: {str(root)!r} must be readable, but {exc}") from exc
    raise CacheError(
        f"shard cache: {str(root)!r} must hold the mark {MARK!r}, and does not: it is no cache of "
        "shards; name the root of one"
    )


def cached(root: Path) -> Iterator[Cached]:
    """List all shards, in order of folders and names."""
    for folder in dataset_folders(root):
        dataset, url = _about(folder)
        with contextlib.suppress(FileNotFoundError):
            names = sorted(os.listdir(folder))
            for name in names:
                found = SHARD.fullmatch(name)
                if found is None:
                    continue
                beside = folder / f"{found[1]}.told"
                told = read_told(beside)
                with contextlib.suppress(FileNotFoundError):
                    size = os.lstat(folder / name).st_size
                    used_s = os.stat(beside).st_mtime if told is not None else 0.0
                    shown = name if told is None else told.name
                    yield Cached(dataset, url, shown, str(folder / name), size, used_s, told)


def users(root: Path) -> list[User]:
    """List the living processes that use a cache."""
    return living(root / USERS)


def problem_of(shard: Cached) -> str | None:
    """Read a shard whole, and say what is wrong with it; None if it is as it came."""
    told = shard.told
    if told is None:
        return "nothing is told of it, so it cannot be verified"
    try:
        with open(shard.path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size != told.size:
                return f"it has {size:,} bytes, and came with {told.size:,}"
            if page_digest(file, size).hex() != told.digest:
                return "its bytes are not those that came"
            for name, value in told.hashes.items():
                file.seek(0)
                if hashlib.file_digest(file, name).hexdigest() != value:
                    return f"its {name} is not {value}"
    except FileNotFoundError:
        return None  # it left meanwhile
    except OSError as exc:
        return f"it cannot be read: {exc.strerror or exc}"
    return None


def remove(shard: Cached) -> None:
    """Remove one shard, and what is told of it.

    Raises:
        OSError: it cannot be removed.
    """
    folder, name = os.path.split(shard.path)
    Path(shard.path).unlink(missing_ok=True)
    found = SHARD.fullmatch(name)
    if found is not None:
        Path(folder, f"{found[1]}.told").unlink(missing_ok=True)


def clear(root: Path, *, force: bool) -> tuple[int, int]:
    """Remove all that the cache made, and nothing else; the root itself stays.

    Args:
        root: of a cache.
        force: although living processes use it; they fetch what they need again.

    Returns:
        how many shards went, and their bytes.

    Raises:
        CacheInUseError: a living process uses it.
        CacheError: something cannot be removed.
    """
    using = users(root)
    if using and not force:
        pids = ", ".join(str(user.pid) for user in using)
        raise CacheInUseError(
            f"shard cache: {str(root)!r} must not be in use to be cleared, and is used by process "
            f"{pids}; end it, or pass --force"
        )
    shards = size = 0
    try:
        for shard in list(cached(root)):
            remove(shard)
            shards, size = shards + 1, size + shard.bytes
        for folder in list(dataset_folders(root)):
            _remove_folder(folder)
        if not using:
            for name in (USERS, GOING):
                _remove_files(root / name)
            (root / MARK).unlink(missing_ok=True)
    except OSError as exc:
        raise CacheError(f"shard cache: {str(root)!r} cannot be cleared: {exc}") from exc
    return shards, size


def _remove_folder(folder: Path) -> None:
    """Remove what is left in a dataset's folder, and the folder if it is empty then."""
    for name in os.listdir(folder):
        ours = any(kind.fullmatch(name) for kind in (TOLD, CLAIM, PART))
        if ours or name == ABOUT or name.endswith(".part.told"):
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _remove_files(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(folder):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _about(folder: Path) -> tuple[str, str]:
    try:
        found = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return str(found["dataset"]), str(found["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return folder.name, "unknown"
