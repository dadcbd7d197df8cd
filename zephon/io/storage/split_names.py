"""Which split a file belongs to by its name alone, as the hub documents it.

The first of these that fits any file decides for all of them: `data/NAME-00000-of-00005.parquet`;
a folder named for a split; a file name with a split's name in it, set off by signs or digits; or
else every file is of `train`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_NUMBERED = re.compile(r"data/(\w+(?:\.\w+)*)-\d{5}-of-\d{5}[^/]*\.[^/]*", re.ASCII)
_SIGNS = re.compile(r"[-._ 0-9]")


def splits_by_name(names: Iterable[str]) -> dict[str, list[str]]:
    """Deal files out to splits; a file without a split's name is left out if others have one.

    Args:
        names: of data files, below the folder of their configuration.
    """
    files = list(names)
    numbered: dict[str, list[str]] = {}
    for each in files:
        if found := _NUMBERED.fullmatch(each):
            numbered.setdefault(found[1], []).append(each)
    if numbered:
        return numbered
    folders = {each: each.split("/")[:-1] for each in files}
    by_folder = _by_words(folders)
    if by_folder:
        return by_folder
    by_file = _by_words({each: each.split("/")[-1:] for each in files})
    if by_file:
        return by_file
    return {"train": files} if files else {}


def _by_words(parts: dict[str, list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each, some in parts.items():
        words = {word for part in some for word in _SIGNS.split(part)}
        for split, named in _WORDS.items():
            if not words.isdisjoint(named):
                found.setdefault(split, []).append(each)
    return found
