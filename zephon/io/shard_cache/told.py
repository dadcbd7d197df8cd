"""What is known of a shard in the cache, in a small file beside it, and when it was last held.

The shard itself stays as it came, its times included: they tell whether somebody wrote to it, and
decoded rows are known by them. So it is this file whose time says when the shard was last held.
It is written before the shard appears. Where it is missing or damaged, nothing can be verified and
the shard is the first to leave; no row is read by it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from zephon.io.own_directory import PRIVATE_FILE


@dataclass(frozen=True, slots=True)
class Told:
    """What was found when a shard was fetched.

    name: in its place. version: there. size: in bytes. mtime_ns: its time here. digest: that of
    its pages, in hexadecimal. hashes: what was checked besides, by algorithm.
    """

    name: str
    version: str
    size: int
    mtime_ns: int
    digest: str
    hashes: dict[str, str] = field(default_factory=dict)


def write_told(path: str, told: Told, draft: str) -> None:
    """Put it in its place, by way of a draft.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(told), file)
    os.replace(draft, path)


def read_told(path: str | Path) -> Told | None:
    """Read it; None where it is not there, or damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        told = Told(**found)
    except (OSError, ValueError, TypeError):
        return None
    kinds = (str, str, int, int, str, dict)
    values = (told.name, told.version, told.size, told.mtime_ns, told.digest, told.hashes)
    return told if all(map(isinstance, values, kinds)) else None
