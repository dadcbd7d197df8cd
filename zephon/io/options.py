"""The documented options of storage: caches, Arrow, and one class a format.

Each class remembers which of its fields were given, so that ``merge`` overlays those alone. All of
them say how rows are read, never which: none is part of a recipe. Of the documented fields, those
that mean nothing here yet are accepted; ``StoreOptions.without_effect`` lists the ones given.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from zephon.errors import PlanError
from zephon.io.given import Options
from zephon.io.own_directory import ROW_GROUP_FOLDER, default_root
from zephon.options import parse_size

QUARANTINE_FOLDER = "quarantine"
LEAST_ROW_GROUP_LIMIT = 4 << 30
_ROW_GROUP_SHARE = 10  # one part in so many of the shard cache's limit


def parse_size_bytes(size: int | str | None) -> int | None:
    """Read a size in bytes; suffixes are powers of 1,024, and None stays None.

    >>> parse_size_bytes("750gb"), parse_size_bytes(None)
    (805306368000, None)

    Raises:
        TypeError: it is neither a number nor text.
        PlanError: it is no size.
    """
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise TypeError(f"a size must be bytes or text such as '512mb', got {size!r}")
    return parse_size(size, least=0)


@dataclass(frozen=True)
class CacheOptions(Options):
    """The shard cache, below whose root the spill of decoded row groups lies by default.

    enabled: turns the spill on, as documented, and has far datasets read through the cache.
    root: where caches lie.
    limit_bytes: of shards; bytes or text such as "750gb". A tenth of it may be spilled. What is
        being read stays even where it is more.
    rg_cache_bytes: deprecated; the spill's ``limit_bytes``, 0 for none.
    keep_zip: without effect: compressed shards are kept as they are, and read as they are.
    validate_hash: an algorithm such as "sha256": where an index tells this hash of a shard, the
        shard is checked against it. Sizes are always checked.
    download_retry: times that a shard is asked for before it is an error.
    download_timeout: seconds without a byte after which a shard is an error.
    open_retry_attempts, open_retry_initial_backoff, open_retry_max_backoff: times, and seconds
        between them, that a shard in the cache is read anew where its disk fails, or where it was
        removed or changed.
    min_slack_bytes, max_slack_bytes: bounds of what is freed beyond need: a part of the limit.
    """

    where = "io_options.cache"
    switch = "enabled"
    in_effect = frozenset({"enabled", "root", "limit_bytes", "rg_cache_bytes"})

    enabled: bool = False
    root: str | os.PathLike[str] = field(default_factory=default_root)
    limit_bytes: int | None = None
    rg_cache_bytes: int | None = None
    keep_zip: bool = False
    validate_hash: str | None = None
    download_retry: int = 12
    download_timeout: float = 180.0
    open_retry_attempts: int = 5
    open_retry_initial_backoff: float = 0.1
    open_retry_max_backoff: float = 2.0
    min_slack_bytes: int = 512 << 10
    max_slack_bytes: int = 64 << 20

    def _check(self) -> None:
        self._flag("enabled")
        self._flag("keep_zip")
        self._directory("root")
        for name in ("limit_bytes", "rg_cache_bytes"):
            if getattr(self, name) is not None:
                self._size(name, least=0)
        for name in ("min_slack_bytes", "max_slack_bytes"):
            self._size(name, least=0)
        if self.validate_hash is not None:
            self._hash("validate_hash")
        self._number("download_retry", 0)
        self._number("open_retry_attempts", 0)
        for name in ("download_timeout", "open_retry_initial_backoff", "open_retry_max_backoff"):
            self._seconds(name)
        if self.rg_cache_bytes is not None:
            warnings.warn(
                "io_options: cache.rg_cache_bytes is deprecated; use parquet.rg_cache.limit_bytes",
                DeprecationWarning,
                stacklevel=4,
            )


@dataclass(frozen=True)
class ParquetRGCacheOptions(Options):
    """The spill: decoded row groups that left memory, as memory-mapped files.

    It serves Parquet and JSONL alike, whatever its documented name says.

    enabled: None turns it on where the order needs it, where the shard cache is on, or where
        ``root`` is given; False keeps it off; True insists, and wants one of the two.
    root: a directory of the spill's own; None: ``.parquet-rg-cache`` below the shard cache's root.
        It is made for this user alone (mode 0700) and its files are (0600). Where neither root is
        named, a directory that others made or may write is not used.
    limit_bytes: of all its files, whoever wrote them; None: 4 GiB, or a tenth of the shard
        cache's limit if that is more.
    min_free_bytes: it leaves at least so much free on the disk.
    """

    where = "io_options.parquet.rg_cache"
    switch = "enabled"
    in_effect = frozenset({"enabled", "root", "limit_bytes", "min_free_bytes"})

    enabled: bool | None = None
    root: str | os.PathLike[str] | None = None
    limit_bytes: int | None = None
    min_free_bytes: int = 1 << 30

    def _check(self) -> None:
        if self.enabled is not None:
            self._flag("enabled")
        if self.root is not None:
            self._directory("root")
        if self.limit_bytes is not None:
            self._size("limit_bytes", least=1)
        self._size("min_free_bytes", least=0)


@dataclass(frozen=True)
class ArrowOptions(Options):
    """Arrow's thread pools; None leaves them alone. Row groups are decoded by our own threads."""

    where = "io_options.arrow"
    keeps_none = frozenset({"cpu_threads", "io_threads"})

    cpu_threads: int | None = 1
    io_threads: int | None = 1

    def _check(self) -> None:
        self._threads("cpu_threads")
        self._threads("io_threads")


@dataclass(frozen=True)
class ParquetOptions(Options):
    """How Parquet is read. A row group is decoded by one thread whatever ``use_threads`` says."""

    where = "io_options.parquet"

    use_threads: bool = False
    rg_cache: ParquetRGCacheOptions = field(default_factory=ParquetRGCacheOptions)

    def _check(self) -> None:
        self._flag("use_threads")
        object.__setattr__(self, "rg_cache", ParquetRGCacheOptions.from_any(self.rg_cache))


@dataclass(frozen=True)
class VortexOptions(Options):
    """How Vortex files would be read."""

    where = "io_options.vortex"
    keeps_none = frozenset({"worker_threads"})

    segment_cache_bytes: int = 64 << 20
    worker_threads: int | None = 1

    def _check(self) -> None:
        self._size("segment_cache_bytes", least=0)
        if self.worker_threads is not None:
            self._number("worker_threads", 0)


@dataclass(frozen=True)
class LanceOptions(Options):
    """How Lance datasets would be read."""

    where = "io_options.lance"
    keeps_none = frozenset({"worker_threads"})

    worker_threads: int | None = 2

    def _check(self) -> None:
        self._threads("worker_threads")


@dataclass(frozen=True)
class StoreOptions(Options):
    """All options of storage, as ``Pipeline.options(io_options=...)`` takes them."""

    where = "io_options"

    cache: CacheOptions = field(default_factory=CacheOptions)
    arrow: ArrowOptions = field(default_factory=ArrowOptions)
    parquet: ParquetOptions = field(default_factory=ParquetOptions)
    vortex: VortexOptions = field(default_factory=VortexOptions)
    lance: LanceOptions = field(default_factory=LanceOptions)
    metadata_cache_entries: int = 256
    direct: bool = False

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Names of the given fields that mean nothing here, such as "cache.keep_zip"."""
        return tuple(self.given_without_effect())

    def resolved_parquet_rg_cache(self) -> ParquetRGCacheOptions:
        """Fill in what follows from other options: root, limit, and whether the spill is on.

        Returns:
            Options with a root and a limit; ``enabled`` stays None where nothing decides it.

        Raises:
            PlanError: it must be on, and there is neither a shard cache nor a root.
        """
        spill, cache = self.parquet.rg_cache, self.cache
        enabled = spill.enabled
        if enabled and spill.root is None and not cache.enabled:
            raise PlanError(
                "io_options: parquet.rg_cache.enabled=True requires parquet.rg_cache.root when "
                "cache.enabled=False; name a root, or leave enabled out"
            )
        if enabled is None and cache.rg_cache_bytes == 0:
            enabled = False
        if enabled is None and (cache.enabled or spill.root is not None):
            enabled = True
        limit = spill.limit_bytes or cache.rg_cache_bytes
        if not limit:
            limit = max(LEAST_ROW_GROUP_LIMIT, (cache.limit_bytes or 0) // _ROW_GROUP_SHARE)
        root = Path(cache.root, ROW_GROUP_FOLDER) if spill.root is None else Path(spill.root)
        return ParquetRGCacheOptions(
            enabled=enabled,
            root=root.expanduser().absolute(),
            limit_bytes=limit,
            min_free_bytes=spill.min_free_bytes,
        )

    def quarantine_root(self) -> Path:
        """Give the directory where bad rows are written, if ``options`` names no other."""
        return Path(self.cache.root, QUARANTINE_FOLDER).expanduser().absolute()

    def _check(self) -> None:
        for name, kind in _GROUPS.items():
            object.__setattr__(self, name, kind.from_any(getattr(self, name)))
        self._number("metadata_cache_entries", 0)
        self._flag("direct")

    @classmethod
    def _refuse_replaced(cls, name: str) -> None:
        if name == "parquet_rg_cache":
            raise TypeError("io_options: parquet_rg_cache has moved to parquet.rg_cache")


def own_quarantine_root() -> Path:
    """Give the directory of bad rows where nobody names one."""
    return Path(default_root(), QUARANTINE_FOLDER).absolute()


_GROUPS: dict[str, type[Options]] = {
    "cache": CacheOptions,
    "arrow": ArrowOptions,
    "parquet": ParquetOptions,
    "vortex": VortexOptions,
    "lance": LanceOptions,
}
