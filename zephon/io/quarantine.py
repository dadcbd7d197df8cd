"""Bad rows written down: one small file a row, that holds where it lies, why it is bad, and itself.

The file of row 5 of a shard ``a.jsonl`` is ``<dataset>/a.jsonl.rows/5.jsonl``, one line of JSON.
A file appears whole or not at all, and one that is there already is left alone, so that any number
of processes, passes and restarts write a row once. Where a row of other data has its place, as that
of another dataset of the same name, the new one stands beside it. Files are the user's alone, as
private as the data; they outlive the process, but nothing waits until they are on the disk.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from zephon.errors import ExecutionError
from zephon.io.dataset import Dataset
from zephon.io.far_reading import FAR, FarReading, raw_rows
from zephon.io.formats.format import GroupReader
from zephon.io.own_directory import PRIVATE_FILE, check_ours, make_directory
from zephon.io.raw_rows import RawRow

_ROWS = ".rows"  # a directory of rows is not called as a file of JSON lines is
_LONGEST = 180  # of a name: what is added to it must fit a file system's 255 bytes, too
_MOST_KNOWN = 1 << 16


class Condemned(NamedTuple):
    """A row to be written down. step: the call that raised; None: it was read so."""

    dataset: Dataset
    shard: int
    row: int
    reason: str
    step: str | None


class Quarantine:
    """A directory of rows; used by one thread.

    Args:
        root: made when it is opened.
        ours: nobody named it, so it must be this user's alone.
        far: how far datasets are read.
    """

    def __init__(self, root: Path, *, ours: bool = False, far: FarReading = FAR) -> None:
        self._far = far
        self._root = root
        self._ours = ours
        self._opened = False
        self._readers: dict[str, GroupReader] = {}
        self._known: set[tuple[str, int, int]] = set()

    def open(self) -> None:
        """Make the directory, and make sure that files can be made in it.

        Raises:
            ExecutionError: they cannot; names the directory and why.
        """
        if self._opened:
            return
        try:
            if self._ours:
                check_ours(self._root)
            make_directory(self._root)
            probe = self._root / f".probe.{uuid.uuid4().hex}"
            probe.touch(PRIVATE_FILE, exist_ok=False)
            probe.unlink()
        except OSError as exc:
            raise self._failed(exc) from exc
        self._opened = True

    def write(self, rows: Sequence[Condemned]) -> None:
        """Write rows down that were not yet.

        Raises:
            ExecutionError: one cannot be written; names the directory and why.
            ShardError: its shard cannot be read again.
        """
        self.open()
        groups: dict[tuple[str, int, int], list[Condemned]] = {}
        for each in rows:
            if (each.dataset.name, each.shard, each.row) not in self._known:
                starts = np.cumsum(each.dataset.shards[each.shard].group_rows)
                group = int(np.searchsorted(starts, each.row, side="right"))
                groups.setdefault((each.dataset.name, each.shard, group), []).append(each)
        for (_, shard, group), found in groups.items():
            dataset = found[0].dataset
            first = int(dataset.shards[shard].group_rows[:group].sum())
            places = [each.row - first for each in found]
            raws = raw_rows(dataset, self._reader(dataset), shard, group, places)
            for each, raw in zip(found, raws, strict=True):
                try:
                    self._write(each, raw)
                except OSError as exc:
                    raise self._failed(exc) from exc
                if len(self._known) < _MOST_KNOWN:
                    self._known.add((dataset.name, shard, each.row))

    def _reader(self, dataset: Dataset) -> GroupReader:
        if dataset.name not in self._readers:
            self._readers[dataset.name] = self._far.reader(dataset, (), payload=True)
        return self._readers[dataset.name]

    def _write(self, row: Condemned, raw: RawRow) -> None:
        shard = row.dataset.shards[row.shard].name
        directory = self._root / _safe(row.dataset.name) / _safe(f"{shard}{_ROWS}")
        told = _told(row, shard, raw)
        for name in (f"{row.row}.jsonl", f"{row.row}.{_digest(raw.raw)}.jsonl"):
            path = directory / name
            there = _raw_in(path)
            if there == raw.raw:
                return
            if there is None:
                make_directory(directory)
                _put(path, told)
                return

    def _failed(self, exc: OSError) -> ExecutionError:
        return ExecutionError(
            f"options: quarantine={str(self._root)!r} must be a directory in which files can be "
            f"made, got {exc}; name another, or pass on_error='skip'"
        )


def _told(row: Condemned, shard: str, raw: RawRow) -> bytes:
    told: dict[str, Any] = {"dataset": row.dataset.name, "shard": shard, "row": row.row}
    if raw.line is not None:
        told["line"] = raw.line
    if raw.byte is not None:
        told["byte"] = raw.byte
    told["reason"] = row.reason
    if row.step is not None:
        told["step"] = row.step
    try:
        told["raw"] = raw.raw.decode()
    except UnicodeDecodeError:
        told["raw_base64"] = base64.b64encode(raw.raw).decode("ascii")
    return json.dumps(told).encode() + b"\n"


def _raw_in(path: Path) -> bytes | None:
    """Give the row in a file; None if there is none, or what a crash of the machine left of one."""
    try:
        told = json.loads(path.read_bytes())
        if "raw" in told:
            return told["raw"].encode("utf-8", "surrogatepass")
        return base64.b64decode(told["raw_base64"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _put(path: Path, text: bytes) -> None:
    draft = path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(draft, flags, PRIVATE_FILE), "wb") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _safe(name: str) -> str:
    """Make a name one part of a path, different names different parts.

    None of them is found where files of JSON lines are looked for.

    >>> _safe("a/b%c.csv"), _safe(".."), _safe("web.jsonl")
    ('a%2Fb%25c.csv', '%2E%2E', 'web%2Ejsonl')
    """
    safe = quote(name.encode("utf-8", "surrogateescape"), safe=" #[]=,+@()")
    if safe.startswith(".") or safe.endswith(".jsonl"):
        safe = safe.replace(".", "%2E")
    return safe if len(safe) <= _LONGEST else f"{safe[:_LONGEST]}.{_digest(name.encode())}"


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=8).hexdigest()
