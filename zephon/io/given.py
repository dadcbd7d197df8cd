"""Options that remember which of their fields were given, so that two of them can be joined."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Self

from zephon.errors import PlanError, nearest
from zephon.options import parse_size


class Options:
    """Base of frozen dataclasses whose fields all have defaults.

    A field given as None gets its default, and stays one that was given.

    where: what messages call it. switch: the field that a bare True or False sets. keeps_none:
    fields for which None is a value. in_effect: fields that mean something here.
    """

    where: ClassVar[str] = "io_options"
    switch: ClassVar[str | None] = None
    keeps_none: ClassVar[frozenset[str]] = frozenset()
    in_effect: ClassVar[frozenset[str]] = frozenset()
    _given: frozenset[str]
    _emptied: frozenset[str]  # of the given ones, those given as None

    def __new__(cls, *values: Any, **named: Any) -> Self:
        """Note which fields are given, whatever their values."""
        made = super().__new__(cls)
        names = [f.name for f in fields(cls)]  # type: ignore[arg-type]  # all are dataclasses
        given = {**dict(zip(names, values, strict=False)), **named}
        emptied = {name for name, value in given.items() if value is None}
        object.__setattr__(made, "_given", frozenset(given))
        object.__setattr__(made, "_emptied", frozenset(emptied - cls.keeps_none))
        return made

    @classmethod
    def from_any(cls, obj: Any) -> Self:
        """Make options of None, a mapping, options of this class, or a switch where there is one.

        Raises:
            TypeError: it is none of these, or a mapping has a name that was replaced.
            PlanError: an unknown name or a value that cannot be; names the nearest right one.
        """
        if obj is None:
            return cls()
        if isinstance(obj, cls):
            return obj
        if isinstance(obj, bool) and cls.switch is not None:
            return cls(**{cls.switch: obj})
        if not isinstance(obj, Mapping):
            raise TypeError(
                f"{cls.where}: expected {cls.__name__}, a dict or None, got {obj!r}; name the "
                f"fields, such as {fields(cls)[0].name}"  # type: ignore[arg-type]
            )
        known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        for name in obj:
            cls._refuse_replaced(name)
            if name not in known:
                raise PlanError(
                    f"{cls.where}: unknown option {name!r}; {nearest(str(name), known)}"
                )
        return cls(**obj)

    def merge(self, other: Any) -> Self:
        """Overlay the fields that ``other`` was given; a field given as None is at its default.

        Args:
            other: whatever ``from_any`` takes.
        """
        cls = type(self)
        overlay = cls.from_any(other)
        values: dict[str, Any] = {}
        for name in [f.name for f in fields(cls) if f.init]:  # type: ignore[arg-type]
            mine, theirs = getattr(self, name), getattr(overlay, name)
            if name in overlay._emptied:
                values[name] = None
            elif name in overlay._given and not isinstance(theirs, Options):
                values[name] = theirs
            elif isinstance(mine, Options) and name in overlay._given | self._given:
                values[name] = mine.merge(theirs)
            elif name in self._given:
                values[name] = None if name in self._emptied else mine
        return cls(**values)

    def given_without_effect(self) -> list[str]:
        """List the given fields that mean nothing here, with where they stand."""
        inner = [getattr(self, f.name) for f in fields(self)]  # type: ignore[arg-type]
        lists = [each.given_without_effect() for each in inner if isinstance(each, Options)]
        plain = {
            name for name in self._given if not isinstance(getattr(self, name), Options)
        } - self.in_effect
        prefix = self.where.removeprefix("io_options").removeprefix(".")
        return [
            *(f"{prefix}.{name}" if prefix else name for name in sorted(plain)),
            *(name for names in lists for name in names),
        ]

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            if getattr(self, f.name) is None and f.name not in self.keeps_none:
                made = f.default_factory
                default = f.default if made is MISSING else made()
                object.__setattr__(self, f.name, default)
        self._check()

    def _check(self) -> None:
        """Refuse values that cannot be."""

    @classmethod
    def _refuse_replaced(cls, name: str) -> None:
        """Refuse names of older versions, with their successors."""

    def _flag(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, bool):
            raise PlanError(f"{self.where}.{name}: expected True or False, got {value!r}")

    def _size(self, name: str, least: int) -> None:
        """Read a size, given in bytes or as text, and put it back in bytes."""
        value = getattr(self, name)
        try:
            size = parse_size(value, least=least)
        except PlanError as exc:
            raise PlanError(f"{self.where}.{name}: {exc}") from None
        object.__setattr__(self, name, size)

    def _number(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise PlanError(
                f"{self.where}.{name}: expected a whole number of at least {least}, got {value!r}"
            )

    def _seconds(self, name: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
            raise PlanError(
                f"{self.where}.{name}: expected seconds, a number of at least 0, got {value!r}"
            )

    def _hash(self, name: str) -> None:
        """Check the name of an algorithm of hashes that gives a digest of one length."""
        value = getattr(self, name)
        known = {each for each in hashlib.algorithms_guaranteed if not each.startswith("shake")}
        if value not in known:
            raise PlanError(
                f"{self.where}.{name}: expected the name of a hash, got {value!r}; "
                f"{nearest(str(value), known)}"
            )

    def _threads(self, name: str) -> None:
        if getattr(self, name) is not None:
            self._number(name, 1)

    def _directory(self, name: str) -> None:
        value = getattr(self, name)
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
        try:
            Path(os.fsdecode(text)).expanduser()
        except RuntimeError:  # the home of a user that is not there
            text = ""
        if not text or "\0" in os.fsdecode(text):
            raise PlanError(f"{self.where}.{name}: expected a directory, got {value!r}")
