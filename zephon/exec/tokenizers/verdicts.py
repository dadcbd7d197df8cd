"""What the probe found, kept on disk: later starts need neither the probe nor the reference.

One small file a verdict, named by everything that could change it. A file that is broken, or a
place that cannot be written, costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import logging
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from zephon.exec.tokenizers.encoder import Template

CACHE_VARIABLE = "ZEPHON_TOKENIZER_CACHE_DIR"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a probe found.

    equal: the fast back end gave the ids of the reference.
    reason: one clause that says why, for people.
    template: what the tokenizer's own template puts around a document; None: nothing so simple.
    doubtful: runs of characters; a document that holds one is left to the reference.
    """

    equal: bool
    reason: str
    template: Template | None
    doubtful: tuple[tuple[int, int], ...] = ()


def cache_root() -> Path:
    """Return the tokenizer cache: ``ZEPHON_TOKENIZER_CACHE_DIR``, or ~/.cache/zephon/tokenizers.

    Raises:
        RuntimeError: there is no such variable and no home directory.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else Path.home() / ".cache" / "zephon" / "tokenizers"


def verdict_key(*parts: str | bool) -> str:
    """Name a verdict by ``parts``, the versions of both libraries, and the kind of machine."""
    versions = [library_version(library) for library in ("gigatoken", "tokenizers")]
    everything = [*parts, *versions, platform.machine()]
    return hashlib.sha256(msgspec.json.encode(everything)).hexdigest()


def library_version(library: str) -> str:
    """Return the installed version of a library, "none" where it is not installed."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def recall(key: str) -> Verdict | None:
    """Return the verdict kept under ``key``, None if there is none that can be read."""
    try:
        return msgspec.json.decode(_file(key).read_bytes(), type=Verdict)
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError, msgspec.DecodeError) as exc:
        _logger.debug("tokenizer cache: no verdict from %s: %s", key, exc)
        return None


def remember(key: str, verdict: Verdict) -> None:
    """Keep a verdict; it appears whole or not at all."""
    try:
        target = _file(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".verdict-", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(verdict))
            os.replace(temporary, target)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except (OSError, RuntimeError) as exc:
        _logger.debug("tokenizer cache: verdict not kept: %s", exc)


def _file(key: str) -> Path:
    return cache_root() / "verdicts" / f"{key}.json"
