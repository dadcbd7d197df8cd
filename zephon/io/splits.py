"""Warns of a directory that holds several splits, such as train and test, which all are read."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

from zephon.io.selection import Selection

MOST_FILES = 1 << 16
"""Of more files nobody asks: a look at each takes half a microsecond."""

_WORDS = ("train", "training", "test", "validation", "valid", "val", "dev", "eval")
_SPLIT = re.compile(rf"(?:^|/)({'|'.join(_WORDS)})([-_./])", re.IGNORECASE)


def warn_of_splits(
    dataset: str, names: Iterable[str], selection: Selection, *, stacklevel: int
) -> None:
    """Warn if every file is of a split, and not all of the same; not if the user named patterns.

    Args:
        dataset: its name.
        names: of its files, relative to the directory.
        selection: the files that are wanted.
        stacklevel: of the caller of this function's caller, as ``warnings.warn`` counts.
    """
    if selection.asked:
        return
    splits: dict[str, tuple[str, str]] = {}
    for name in names:
        found = _SPLIT.search(name)
        if found is None:
            return
        splits.setdefault(found[1].lower(), (name, _pattern(name, found)))
    if len(splits) < 2 or not splits.keys() & {"train", "training"}:
        return
    told = " and ".join(f"{word} (such as {first!r})" for word, (first, _) in splits.items())
    pattern = next(one for word, (_, one) in splits.items() if word.startswith("train"))
    everything = "**" if selection.goes_deep else "*"
    warnings.warn(
        f"dataset {dataset!r}: files of several splits are read as one: {told}; pass "
        f"glob={pattern!r} for one split, or glob={everything!r} to read all without this warning",
        RuntimeWarning,
        stacklevel=stacklevel + 1,
    )


def _pattern(name: str, found: re.Match[str]) -> str:
    """Write a pattern of the files of a split; folders before its word are any."""
    if found[2] == "/":
        below = "/".join("*" for _ in name[: found.start(1)].split("/")[:-1])
        return f"{below}/{found[1]}/**" if below else f"{found[1]}/**"
    folders = "**/" if "/" in name[: found.start(1)] else ""
    return f"{folders}{found[1]}{found[2]}*"
