"""The patterns that name data files on the hub: `*`, `?`, `[abc]`, and `**` for any folders."""

from __future__ import annotations

import re
from functools import lru_cache

_SIGNS = re.compile(r"[*?\[]")


def has_signs(pattern: str) -> bool:
    """Say whether a pattern may name more than one file."""
    return _SIGNS.search(pattern) is not None


def folder_of(pattern: str) -> str:
    """Give the deepest folder that holds everything a pattern can name.

    >>> folder_of("sample/10BT/*.parquet"), folder_of("data/a.jsonl"), folder_of("**/x")
    ('sample/10BT', 'data', '')
    """
    parts = pattern.split("/")
    fixed = next((number for number, each in enumerate(parts) if has_signs(each)), len(parts) - 1)
    return "/".join(parts[: min(fixed, len(parts) - 1)])


def matches(pattern: str, name: str) -> bool:
    """Say whether a pattern names a file.

    Hidden files, and those in hidden folders, only if the pattern says so.

    >>> [matches("data/**", each) for each in ("data/a", "data/b/c", "data/.git/c", "other")]
    [True, True, False, False]
    """
    asked = any(each.startswith((".", "__")) for each in pattern.split("/"))
    return bool(_compiled(pattern).fullmatch(name)) and (asked or not is_hidden(name))


def is_hidden(name: str) -> bool:
    """Say whether a file is for tools alone, or lies in a folder for them."""
    return any(each.startswith((".", "__")) for each in name.split("/"))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = pattern.split("/")
    written = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            written += ".*" if last else "(?:.*/)?"
        else:
            written += _part(part) + ("" if last else "/")
    return re.compile(written, re.DOTALL)


def _part(part: str) -> str:
    written, at = "", 0
    while at < len(part):
        sign = part[at]
        end = part.find("]", at + 2) if sign == "[" else -1
        if sign == "*":
            written += "[^/]*"
        elif sign == "?":
            written += "[^/]"
        elif end > 0:
            inside = part[at + 1 : end]
            outside = inside[0] in "!^"
            kept = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if outside else inside)
            written += f"[{'^/' if outside else ''}{kept}]"
            at = end
        else:
            written += re.escape(sign)
        at += 1
    return written
