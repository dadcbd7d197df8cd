"""Types of fields that only rows tell, as in JSON lines: in an index, and over all shards.

In an index, ``extra.types`` gives for each top-level field what its values are, and the first row
of that: one Arrow type if there is one for all values of the file, else several; words such as "an
object" stand for what needs a ``schema``. Values are never converted to find a type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from zephon.column_steps import can_name_a_column
from zephon.io.column_types import joined
from zephon.io.field_types import FoundType, TypesSeen
from zephon.io.seen_types import SeenTypes, Sights
from zephon.io.type_names import type_of_text

Types = dict[str, list[tuple[str, str, int]]]
"""By field: what was met, and the shard and row where it was first."""

FileTypes = Mapping[str, Sequence[tuple[str, int]]]
"""The same of one file: by field, what was met, and the row where it was first."""


def summed(seen: SeenTypes) -> dict[str, list[tuple[str, int]]] | None:
    """Sum up what the rows of a file have; None if they have too many fields.

    A field whose name no column can have is left out.

    >>> seen = SeenTypes(objects=False)
    >>> seen.look([{"n": None}, {"n": 1}, {"n": "x"}, {"n": 0.5}], 0)
    >>> summed(seen)
    {'n': [('double', 3), ('large_string', 2)]}
    """
    if seen.too_many:
        return None
    return {
        name: _summed(sights) for name, sights in seen.fields.items() if can_name_a_column(name)
    }


def joined_types(shards: Iterable[tuple[str, FileTypes | None]]) -> Types | None:
    """Join what is known of some shards, by name; None if nobody looked at one of them."""
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for name, types in shards:
        if types is None:
            return None
        for field, sights in types.items():
            seen = found.setdefault(field, {})
            for what, row in sights:
                if what not in seen:
                    seen[what] = (name, row)
    return {
        field: [(what, *place) for what, place in seen.items()] for field, seen in found.items()
    }


def stored_types(saved: object) -> Types:
    """Take up types that were stored as JSON.

    Raises:
        ValueError: they are something else.
    """
    try:
        return msgspec.convert(saved, Types)
    except msgspec.ValidationError as exc:
        raise ValueError(f"types are not as they are stored: {exc}") from exc


def found_types(types: Types | None) -> Mapping[str, FoundType]:
    """Give the type of each field, or why there is none; nothing where nobody looked."""
    seen = TypesSeen()
    for field, sights in (types or {}).items():
        for what, shard, row in sights:
            seen.add_sight(field, type_of_text(what) or what, shard, row)
    return seen.found()


def _summed(sights: Sights) -> list[tuple[str, int]]:
    """Join types that go together; a joined one is said of the row that has it."""
    found: list[tuple[pa.DataType | str, int]] = []
    for what, row in sights.items():
        for place, (known, first) in enumerate(found):
            wider = _joined(known, what)
            if wider is not None:
                found[place] = (wider, row if wider == what != known else first)
                break
        else:
            found.append((what, row))
    return [(str(what), row) for what, row in found]


def _joined(first: pa.DataType | str, second: pa.DataType | str) -> pa.DataType | str | None:
    if isinstance(first, str) or isinstance(second, str):
        return first if first == second else None
    return joined(first, second)
