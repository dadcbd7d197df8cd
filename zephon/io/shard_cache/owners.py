"""Which process made a file, as a part of the file's name, and whether that process still lives.

A number of a process is given again, in another container, after a restart of the machine, or to
another process. So an owner is its machine, the machine's start, the space of its numbers, its
number, and when it began. Of a process that cannot be looked at from here, all that can be said is
how long ago it was heard of.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from pathlib import Path

UNHEARD_SECONDS = 3600.0
"""A process of another machine or container lives until it was silent for so long."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ENDED = ("Z", "X")


def this_process() -> str:
    """Name the calling process: hexadecimal digits in five parts, joined by dots."""
    return _named(os.getpid())


def lives(owner: str, heard_s: float) -> bool:
    """Tell whether the process that is named so may live.

    Args:
        owner: what ``this_process`` gave there.
        heard_s: the last time it did anything, in seconds since 1970.
    """
    here = this_process().split(".")
    machine, boot, space, pid, began, *_ = [*owner.split("."), *("",) * 5]
    if (boot, space) == (here[1], here[2]) and (boot != _short("") or machine == here[0]):
        return bool(pid) and _began(int(pid, 16)) in (int(began or "0", 16), None)
    if machine == here[0] and boot != here[1]:
        return False  # the machine was started anew
    return time.time() - heard_s < UNHEARD_SECONDS


@functools.lru_cache(maxsize=2)  # a fork is asked for by another number
def _named(pid: int) -> str:
    began = _began(pid) or 0
    machine = _short(os.uname().nodename)
    return f"{machine}.{_short(_text(_BOOT))}.{_space():x}.{pid:x}.{began:x}"


def _began(pid: int) -> int | None:
    """Say when a process began, in ticks of the system; -1 if there is none, None if unknown."""
    if not os.path.isdir("/proc/self"):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return -1
        except OSError:
            pass
        return None
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return -1
    except OSError:
        return -1 if not os.path.exists(f"/proc/{pid}") else None
    state, *rest = told.rpartition(")")[2].split()
    return -1 if state in _ENDED else int(rest[18])


def _space() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=4).hexdigest()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
