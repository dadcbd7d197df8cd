"""Which Arrow type each field of a dataset has over all its shards, and why one has none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from zephon.io.column_types import joined, joined_all, may_become, plain
from zephon.io.seen_types import SeenTypes
from zephon.io.type_names import type_of_text

_NOBODY = "no row has it"
_MOST_TOLD = 6  # types in a message, each with a place that has it


@dataclass(frozen=True, slots=True)
class FoundType:
    """The type that holds all values of a field; None: there is none, and ``conflict`` says why."""

    type: pa.DataType | None
    conflict: str = ""


class TypesSeen:
    """Types of fields as they are met, each with the place where it was met first.

    >>> seen = TypesSeen()
    >>> seen.add("n", pa.int8(), "shard 'a'")
    >>> seen.add("n", pa.string(), "shard 'b'")
    >>> seen.found()["n"].conflict
    "shard 'a' has int8, shard 'b' has string; write all of them in one type"
    """

    def __init__(self) -> None:
        self._places: dict[str, dict[pa.DataType, str]] = {}
        self._odd: dict[str, str] = {}

    def add(self, name: str, dtype: pa.DataType, place: str) -> None:
        """Note a type."""
        self._places.setdefault(name, {}).setdefault(dtype, place)

    def add_odd(self, name: str, conflict: str) -> None:
        """Note why a field has no type; the first reason counts."""
        self._odd.setdefault(name, conflict)

    def add_sight(self, name: str, what: pa.DataType | str, shard: str, row: int) -> None:
        """Note a type, or a value without one, in a row."""
        place = f"row {row} of shard {shard!r}"
        if isinstance(what, pa.DataType):
            self.add(name, what, place)
        else:
            told = "pass its type with schema=, or write it in one that columns have"
            self.add_odd(name, f"{place} has {what}; {told}")

    def add_rows(self, seen: SeenTypes, shard: str) -> None:
        """Note what the rows of a shard have."""
        for name, sights in seen.fields.items():
            for what, row in sights.items():
                self.add_sight(name, what, shard, row)

    def found(self) -> dict[str, FoundType]:
        """Join what was seen, field by field; the order in which it was does not matter."""
        found = {name: _joined(name, places) for name, places in self._places.items()}
        return found | {name: FoundType(None, conflict) for name, conflict in self._odd.items()}


class FieldTypes:
    """The types of a dataset's fields; looked for when somebody asks first.

    find: what is found in the data. declared: types that the user has declared; they win.
    unknown: said of any field where nothing is found at all.
    """

    __slots__ = ("_declared", "_find", "_found", "_unknown")

    def __init__(
        self,
        find: Callable[[], Mapping[str, FoundType]],
        declared: Iterable[tuple[str, pa.DataType]] = (),
        unknown: str = _NOBODY,
    ) -> None:
        self._find = find
        self._declared = dict(declared)
        self._unknown = unknown
        self._found: Mapping[str, FoundType] | None = None

    def type_of(self, name: str) -> pa.DataType | None:
        """Give the type of a field; None: nobody knows, or there is none."""
        return self._of(name).type

    def conflict(self, name: str) -> str:
        """Say why a field has no type, and what to do; "" where it has one."""
        return self._of(name).conflict

    def found(self) -> Mapping[str, FoundType]:
        """Give what is found in the data, by field, whatever was declared."""
        if self._found is None:
            self._found = self._find()  # two threads that ask at once find the same
        return self._found

    def _of(self, name: str) -> FoundType:
        if name in self._declared:
            return FoundType(self._declared[name])
        found = self.found()
        if not found:
            return FoundType(None, self._unknown)
        return found.get(name) or FoundType(None, _NOBODY)


def _joined(name: str, places: Mapping[pa.DataType, str]) -> FoundType:
    dtypes = list(places)
    found = joined_all(dtypes)
    if found is not None:
        return FoundType(found)
    each: dict[pa.DataType, pa.DataType] = {}
    for dtype in (*_apart(dtypes), *dtypes):
        each.setdefault(plain(dtype), dtype)
    told = [f"{places[dtype]} has {dtype}" for dtype in each.values()]
    more = f", and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    settled = _settled(each)
    way_out = (
        "" if settled is None else f"read them as one with schema={{{name!r}: {settled!r}}}, or "
    )
    listed = ", ".join(told[:_MOST_TOLD])
    return FoundType(None, f"{listed}{more}; {way_out}write all of them in one type")


def _settled(dtypes: Collection[pa.DataType]) -> str | None:
    """Name one of some types that values of all of them may be read in, if there is one.

    Where there are several, that is text, or timestamps with a time zone.
    """
    fitting = [
        wanted
        for wanted in dtypes
        if type_of_text(str(wanted)) == wanted and all(may_become(each, wanted) for each in dtypes)
    ]
    named = [str(each) for each in fitting]
    return min(
        named, key=lambda text: ("string" not in text, "tz=" not in text, text), default=None
    )


def _apart(dtypes: list[pa.DataType]) -> tuple[pa.DataType, pa.DataType]:
    """Find two types that do not join, or that do not with those before them."""
    below = plain(dtypes[0])
    for stop, dtype in enumerate(dtypes[1:], 1):
        wider = joined(below, dtype)
        if wider is None:
            alone = (first for first in dtypes[:stop] if joined(first, dtype) is None)
            return next(alone, dtypes[0]), dtype
        below = wider
    return dtypes[0], dtypes[-1]
