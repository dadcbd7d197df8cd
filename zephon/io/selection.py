"""Which files of a directory are wanted: patterns of their names, relative to the directory.

A pattern is matched part by part, parts being what "/" separates: ``*`` stands for any signs within
one part, ``?`` for one sign, ``[abc]``, ``[a-z]`` and ``[!abc]`` for one of some, and a part ``**``
for any number of folders, none too; at the end it stands for any file below. All else stands for
itself; ``[*]``, ``[?]`` and ``[[]`` are the signs themselves. Case counts.

A name that begins with "." or "_" is matched only by a part that begins so, too, as such files and
folders are no data by custom; but a folder "_key=value" is one of data.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from zephon.errors import DatasetError

_ANY_FOLDERS = "**"

Places = frozenset[tuple[int, int]]
"""Where patterns stand in a folder: of each that may still match, its number and its next part."""


@dataclass(frozen=True)
class Selection:
    """The files that one of some patterns matches.

    patterns: ascending; ``("*",)`` is what lies in the directory itself.
    asked: the user named patterns.

    >>> some = Selection.of("d", recursive=False, glob="en/**/*.jsonl")
    >>> some.matches("en/2024/a.jsonl"), some.matches("en/a.jsonl"), some.matches("de/a.jsonl")
    (True, True, False)
    """

    patterns: tuple[str, ...] = ("*",)
    asked: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, name: str, *, recursive: Any, glob: Any) -> Selection:
        """Take up the arguments ``recursive`` and ``glob``.

        Args:
            name: of the dataset, for messages.
            recursive: look for files in all folders, too.
            glob: a pattern, some of them, or None for all files.

        Raises:
            DatasetError: they are none, or a pattern can match nothing.
        """
        if not isinstance(recursive, bool):
            raise DatasetError(
                f"dataset {name!r}: recursive must be True or False, got {recursive!r}; True reads "
                f"the files of all folders below"
            )
        given = [_checked(name, pattern) for pattern in _listed(glob)]
        if recursive:
            given = [
                pattern if pattern.split("/")[0] == _ANY_FOLDERS else f"**/{pattern}"
                for pattern in given
            ]
        return cls(tuple(sorted(set(given))), glob is not None)

    @property
    def is_direct(self) -> bool:
        """Whether all files of the directory are wanted, and none of its folders'."""
        return self.patterns == ("*",)

    @property
    def goes_deep(self) -> bool:
        """Whether folders of any depth may be looked into."""
        return any(part.is_any_folders for parts in self._parts for part in parts)

    @property
    def words(self) -> str:
        """How a command names these files, before the directory; "" or ends in a space."""
        if self.is_direct:
            return ""
        if self.patterns == ("**/*",):
            return "--recursive "
        return "".join(f"--glob {shlex.quote(pattern)} " for pattern in self.patterns)

    @property
    def start(self) -> Places:
        """Where patterns stand in the directory itself."""
        return self._closed((number, 0) for number in range(len(self.patterns)))

    def into(self, places: Places, folder: str) -> Places:
        """Say where patterns stand in a folder; nowhere if none matches any file in it.

        Args:
            places: where they stand in the folder that holds it.
            folder: its name, one part.
        """
        found = []
        for number, place in places:
            parts = self._parts[number]
            if parts[place].is_any_folders:
                if not is_hidden(folder, folder=True):
                    found.append((number, place))
            elif place + 1 < len(parts) and parts[place].matches(folder, folder=True):
                found.append((number, place + 1))
        return self._closed(found)

    def names_folder(self, places: Places, folder: str) -> bool:
        """Say whether a part that is not ``**`` matches a folder, standing as for ``into``."""
        here = ((self._parts[number], place) for number, place in places)
        return any(
            place + 1 < len(parts)
            and not parts[place].is_any_folders
            and parts[place].matches(folder, folder=True)
            for parts, place in here
        )

    def takes(self, places: Places, file: str) -> bool:
        """Say whether a pattern matches a file.

        Args:
            places: where they stand in the folder that holds it.
            file: its name, one part.
        """
        for number, place in places:
            parts = self._parts[number]
            if place + 1 == len(parts) and parts[place].matches(file):
                return True
        return False

    def matches(self, file: str) -> bool:
        """Say whether a pattern matches a name that may hold folders."""
        *folders, last = file.split("/")
        return self.takes(self.folder(folders), last)

    def folder(self, parts: Sequence[str]) -> Places:
        """Say where patterns stand in a folder below the directory."""
        places = self.start
        for part in parts:
            places = self.into(places, part)
        return places

    @cached_property
    def _parts(self) -> list[list[_Part]]:
        return [[_Part(part) for part in pattern.split("/")] for pattern in self.patterns]

    def _closed(self, places: Any) -> Places:
        """Add where a pattern stands if ``**`` is for no folder at all."""
        found = set()
        for number, place in places:
            parts, at = self._parts[number], place
            found.add((number, at))
            while parts[at].is_any_folders and at + 1 < len(parts):
                at += 1
                found.add((number, at))
        return frozenset(found)


DIRECT = Selection()
"""What lies in a directory itself."""

GLOB = "glob"
"""What indexes and catalogues call the patterns of the files that they tell of, if these are not
those of the directory itself."""


def is_hidden(name: str, *, folder: bool = False) -> bool:
    """Say whether a file or folder is no data by custom, as its first sign tells.

    >>> is_hidden("_SUCCESS"), is_hidden("_day=1", folder=True), is_hidden(".git", folder=True)
    (True, False, True)
    """
    return name.startswith(".") or (name.startswith("_") and not (folder and "=" in name))


def escaped(name: str) -> str:
    """Write a name as a pattern of that name alone.

    >>> escaped("a[1]*.jsonl")
    'a[[]1][*].jsonl'
    """
    return re.sub(r"[*?\[]", r"[\g<0>]", name)


class _Part:
    """One part of a pattern."""

    __slots__ = ("_match", "_text", "is_any_folders")

    def __init__(self, text: str) -> None:
        self._text = text
        self.is_any_folders = text == _ANY_FOLDERS
        everything = text in ("*", _ANY_FOLDERS)
        self._match = None if everything else re.compile(_expression(text), re.DOTALL).fullmatch

    def matches(self, name: str, *, folder: bool = False) -> bool:
        """Say whether the part matches the name of a file or a folder."""
        if is_hidden(name, folder=folder) and name[0] != self._text[0]:
            return False
        return self._match is None or self._match(name) is not None


def _expression(text: str) -> str:
    """Write a part as a regular expression."""
    made, at = [], 0
    while at < len(text):
        sign = text[at]
        at += 1
        if sign == "*":
            made.append(".*")
        elif sign == "?":
            made.append(".")
        elif sign == "[" and (stop := _end_of_class(text, at)) > 0:
            inside = text[at:stop]
            no, inside = ("^", inside[1:]) if inside[0] == "!" else ("", inside)
            made.append(f"[{no}{_signs(inside)}]")
            at = stop + 1
        else:
            made.append(re.escape(sign))
    return "".join(made)


def _signs(inside: str) -> str:
    """Write the signs of a class; a range that runs backwards holds nothing."""
    made, at = [], 0
    while at < len(inside):
        first = inside[at]
        if at + 2 < len(inside) and inside[at + 1] == "-":
            last = inside[at + 2]
            at += 3
            if first <= last:
                made.append(f"{re.escape(first)}-{re.escape(last)}")
        else:
            at += 1
            made.append(re.escape(first))
    return "".join(made) or "^\\s\\S"


def _end_of_class(text: str, start: int) -> int:
    """Find the "]" that ends a class; -1 if none does. One that comes first is a sign of it."""
    first = start + text.startswith("!", start) + 1
    return text.find("]", first)


def _listed(glob: Any) -> Sequence[Any]:
    if glob is None:
        return ["*"]
    if isinstance(glob, str | bytes) or not isinstance(glob, Sequence) or not glob:
        return [glob]
    return glob


def _checked(name: str, pattern: Any) -> str:
    if not isinstance(pattern, str) or not pattern or "\0" in pattern:
        raise DatasetError(
            f"dataset {name!r}: glob must be a pattern of names, or a list of some, got "
            f"{pattern!r}; pass one such as '**/train-*.parquet'"
        )
    parts = pattern.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise DatasetError(
            f"dataset {name!r}: glob must name files below the directory, part by part, got "
            f"{pattern!r}, which has a part {next(p for p in parts if p in ('', '.', '..'))!r}; "
            f"write it relative to the directory, such as 'en/*.parquet', and pass another path "
            f"for files elsewhere"
        )
    for part in parts:
        if _ANY_FOLDERS in part and part != _ANY_FOLDERS:
            raise DatasetError(
                f"dataset {name!r}: ** in glob must be a part of its own, got {pattern!r}; write "
                f"'**/*.parquet', or * for signs within one part"
            )
    return pattern
