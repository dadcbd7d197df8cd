"""Whole rows on their way to the spill and back: as Arrow columns, and a few words about them.

Rows of Parquet are columns already. Rows of JSON lines are the text of their block and where each
line stands in it, so a mapped block is decoded line by line as one that was read. Keys of folders
are one value each. Rows in memory are the user's own objects, which no file can hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from zephon.io.folder_groups import FolderRows
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.line_rows import LineRows
from zephon.io.payload import RowSource


@dataclass(frozen=True, slots=True, eq=False)
class SpilledRows:
    """Whole rows of a group.

    arrays: columns of one length, that of the group.
    about: JSON values that, with them, make the rows again.
    """

    arrays: list[pa.Array]
    about: dict[str, Any]


_KINDS: dict[str, type[TableRows] | type[LineRows]] = {"table": TableRows, "lines": LineRows}


def spilled_rows(source: RowSource) -> SpilledRows | None:
    """Turn the whole rows of a group into columns; None where that cannot be."""
    if isinstance(source, FolderRows):
        return _with_keys(source)
    for kind, known in _KINDS.items():
        if isinstance(source, known):
            found = source.to_columns()
            return None if found is None else SpilledRows(found[0], {"kind": kind, **found[1]})
    return None


def restored_rows(about: dict[str, Any], arrays: list[pa.Array]) -> RowSource:
    """Make the rows again; they share the columns' memory."""
    if "keys" in about:
        first = len(arrays) - len(about["keys"])
        found = zip(about["keys"], arrays[first:], strict=True)
        keys = {key: array.dictionary for key, array in found}
        return FolderRows(restored_rows(about["inner"], arrays[:first]), keys)
    facts = dict(about)
    return _KINDS[facts.pop("kind")].of_columns(arrays, facts)


def _with_keys(source: FolderRows) -> SpilledRows | None:
    """Write each key as a dictionary of one value, after the columns of the rows."""
    inner = spilled_rows(source.inner)
    if inner is None or not inner.arrays:
        return None
    places = pa.repeat(pa.scalar(0, pa.int8()), len(inner.arrays[0]))
    keys = [pa.DictionaryArray.from_arrays(places, one) for one in source.keys.values()]
    about = {"inner": inner.about, "keys": list(source.keys)}
    return SpilledRows(inner.arrays + keys, about)
