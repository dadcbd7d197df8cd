"""Names in the cache: the folder of a dataset, and the files of one version of a shard.

A file begins with a digest of all that tells a shard from others, so that whatever a store calls
it, its name here is short and its own. The end of the shard's name follows for people, and for
whoever tells a format from a suffix.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from zephon.io.storage.place import StoredFile

KEY_BYTES = 16
"""Bytes of a shard's key; in a file's name it stands in hexadecimal."""

_KEY = rf"[0-9a-f]{{{2 * KEY_BYTES}}}"
FOLDER = re.compile(r"[A-Za-z0-9_%-][A-Za-z0-9._%-]*-[0-9a-f]{16}")
SHARD = re.compile(rf"({_KEY})-[A-Za-z0-9._%-]+")
TOLD = re.compile(rf"({_KEY})\.told")
PART = re.compile(rf"({_KEY})\.(\d+)\.([0-9a-f.]+)\.part")
CLAIM = re.compile(rf"({_KEY})\.claim")

_MOST_FOLDER, _MOST_TAIL = 100, 120  # signs: file names may have 255 bytes
_PLAIN = re.compile(rb"[A-Za-z0-9._-]")
_NO_TIME_NS = 10**18  # 2001: the time of files whose store tells none, and nobody's own


@dataclass(frozen=True, slots=True)
class ShardNames:
    """The files of one version of a shard, in its dataset's folder.

    key: tells it from all others. shard: its bytes. told: what is known of them. claim: which
    process fetches it. mtime_ns: when ``shard`` says that it was written: another time means that
    somebody wrote to it.
    """

    key: bytes
    shard: str
    told: str
    claim: str
    mtime_ns: int


def folder_name(dataset: str, url: str) -> str:
    """Name the folder of a dataset: its name, and a digest of the place with its pinned version.

    >>> folder_name("prose", "s3://b/prose").startswith("prose-"), folder_name(".", "")[:4]
    (True, '%2E-')
    """
    units = _escaped(dataset)
    if units and units[0] == ".":
        units[0] = "%2E"
    return f"{_first(units, _MOST_FOLDER)}-{_digest(url, size=8).hex()}"


def names_of(folder: str, file: StoredFile) -> ShardNames:
    """Name the files of a shard; another folder, name, size or version gives others.

    >>> names_of("prose-0123456789abcdef", StoredFile("a/b c.jsonl", 3, "v1")).shard[32:]
    '-a%2Fb%20c.jsonl'
    """
    key = _digest(folder, file.name, str(file.size), file.version, size=KEY_BYTES)
    text = key.hex()
    return ShardNames(
        key=key,
        shard=f"{text}-{_last(_escaped(file.name), _MOST_TAIL) or '_'}",
        told=f"{text}.told",
        claim=f"{text}.claim",
        mtime_ns=file.modified_ns or _NO_TIME_NS + int.from_bytes(key[:3], "big"),
    )


def part_name(names: ShardNames, size: int, owner: str) -> str:
    """Name a file that is being written; whoever counts what lies here takes its size from it."""
    return f"{names.key.hex()}.{size}.{owner}.part"


def _escaped(text: str) -> list[str]:
    """Give the signs of a name, those that a file system may not take as %XX."""
    signs = (bytes([sign]) for sign in text.encode("utf-8", "surrogatepass"))
    return [sign.decode() if _PLAIN.match(sign) else f"%{sign[0]:02X}" for sign in signs]


def _first(units: list[str], most: int) -> str:
    text = ""
    for unit in units:
        if len(text) + len(unit) > most:
            break
        text += unit
    return text


def _last(units: list[str], most: int) -> str:
    text = ""
    for unit in reversed(units):
        if len(text) + len(unit) > most:
            break
        text = unit + text
    return text


def _digest(*parts: str, size: int) -> bytes:
    found = hashlib.blake2b(digest_size=size)
    for part in parts:
        text = part.encode("utf-8", "surrogatepass")
        found.update(len(text).to_bytes(8, "little") + text)
    return found.digest()
