"""Keys in the names of folders, as in "lang=en/day=1/a.parquet": which there are, and their values.

A folder is one of a key if "=" stands in its name behind something: "lang=" has an empty text as
its value, and "=en" is a plain folder. Both sides are percent-decoded, as Hive and Spark write
them, and ``__HIVE_DEFAULT_PARTITION__`` is null.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DatasetError, nearest
from zephon.io.fields import LOOKED_AT, TEXT, Column, Field
from zephon.io.formats.arrow_columns import kind_of_type
from zephon.io.formats.file_format import FileFormat
from zephon.io.shards import Shards

NULL = "__HIVE_DEFAULT_PARTITION__"

_CHOICES = (True, False, "path", "file")
_MOST_LOOKED_AT = 1000  # shards, for the values in a message

Declared = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True, slots=True)
class FolderKeys:
    """What the folders of a dataset's shards say of its rows.

    types: of each key, in order of first appearance.
    watches: rows may have fields that nobody knows of before, so each is looked at for the keys.
    refuses: a row that has a field of a key's name is bad; else the key wins.
    folder_of: which folder each shard lies in, shape [shards], int32.
    values: of each key, one a folder; null where it is null or not there.
    has: whether a folder has the key, shape [folders].
    """

    types: Mapping[str, pa.DataType] = field(hash=False)
    watches: bool
    refuses: bool
    folder_of: NDArray[np.int32] = field(compare=False, repr=False)
    values: Mapping[str, pa.Array] = field(compare=False, repr=False)
    has: Mapping[str, NDArray[np.bool_]] = field(compare=False, repr=False)

    def value(self, key: str, shard: int) -> pa.Array:
        """Give what a shard has of a key, as an array of one value."""
        return self.values[key].slice(int(self.folder_of[shard]), 1)

    def has_key(self, key: str, shard: int) -> bool:
        """Say whether a shard lies below a folder of a key."""
        return bool(self.has[key][self.folder_of[shard]])

    def told(self, shard: int) -> Hashable:
        """Give all that is said of a shard's rows: equal only if the same is said."""
        each = [
            (key, str(dtype), str(self.value(key, shard)[0].as_py()), self._state(key, shard))
            for key, dtype in self.types.items()
        ]
        return (self.watches, self.refuses, *each)

    def fields(self, seen: Sequence[Field]) -> tuple[Field, ...]:
        """Add the keys to the fields of files; one of a name takes the other's place."""
        found = {each.name: each for each in seen}
        found |= {key: Field(key, kind_of_type(dtype)) for key, dtype in self.types.items()}
        return tuple(found.values())

    def _state(self, key: str, shard: int) -> int:
        return self.has_key(key, shard) + self.value(key, shard).null_count


def check_hive(name: str, hive: object) -> None:
    """Refuse what ``hive`` cannot be.

    Raises:
        DatasetError: it is none of the choices.
    """
    if not isinstance(hive, bool) and not (isinstance(hive, str) and hive in _CHOICES):
        told = f"; {nearest(hive, ['path', 'file'])}" if isinstance(hive, str) else ""
        raise DatasetError(
            f"dataset {name!r}: hive must be True, False, 'path' or 'file', got {hive!r}{told}; "
            f"'path' or 'file' says which wins where a folder's key is a column of files, too"
        )


def folder_keys(
    name: str,
    hive: bool | str,
    known: FileFormat,
    shards: Shards,
    seen: Sequence[Field],
    declared: Declared,
) -> FolderKeys | None:
    """Find the keys of a dataset's folders; None if there are none, or none is wanted.

    Args:
        name: of the dataset, for messages.
        hive: see ``Dataset.from_path``.
        known: the format of the files.
        shards: of the dataset.
        seen: fields that files have.
        declared: what the user said of types.

    Raises:
        DatasetError: a key is a column of files, too, and nobody said which wins; a path has a key
            twice; a name does not decode to text; or a value does not fit the type declared.
    """
    if hive is False:
        return None
    codes, folders = _folders(shards.names)
    told = [_keys_of(name, folder) for folder in folders]
    keys = list(dict.fromkeys(key for each in told for key in each))
    if not keys:
        return None
    inside = {each.name for each in seen}
    if known.types_indexed:
        inside |= known.types(name, shards).keys()
    clashing = [key for key in keys if key in inside]
    if clashing and hive is True:
        raise DatasetError(_clash(name, clashing[0], known, shards, told, codes))
    if hive == "file":
        keys = [key for key in keys if key not in inside]
    if not keys:
        return None
    wanted = dict(declared)
    types = {key: wanted.get(key, TEXT) for key in keys}
    for path in wanted:
        above = next((key for key in keys if path.startswith(f"{key}.")), None)
        if above is not None and path not in types:
            raise DatasetError(
                f"dataset {name!r}: schema must name columns, got {path!r}, and {above!r} is a key "
                f"of folders, which holds no fields; leave it out"
            )
    return FolderKeys(
        types=types,
        watches=not known.names_all_fields,
        refuses=hive != "path",
        folder_of=codes,
        values={key: _typed(name, key, types[key], told, folders) for key in keys},
        has={key: np.array([key in each for each in told]) for key in keys},
    )


def _folders(names: pa.LargeStringArray) -> tuple[NDArray[np.int32], list[str]]:
    """Find the folders that shards lie in: which of them each does, and their names."""
    import pyarrow.compute as pc  # late: few directories have folders

    if not pc.any(pc.match_substring(names, "=")).as_py():  # pyright: ignore[reportAttributeAccessIssue]
        return np.zeros(len(names), np.int32), []
    above = pc.replace_substring_regex(names, r"[^/]*\z", "", max_replacements=1)  # pyright: ignore[reportAttributeAccessIssue]
    found = above.dictionary_encode()
    return found.indices.to_numpy(), found.dictionary.to_pylist()


def _keys_of(name: str, folder: str) -> dict[str, str | None]:
    """Read the keys of a folder, which ends in "/", and of those above it."""
    found: dict[str, str | None] = {}
    for part in folder.split("/")[:-1]:
        key, sign, value = part.partition("=")
        if not sign or not key:
            continue
        key = _decoded(name, part, key)
        if key in found:
            raise DatasetError(
                f"dataset {name!r}: a path must have a key once, got {key!r} twice in {folder!r}; "
                f"rename a folder, or pass hive=False"
            )
        text = _decoded(name, part, value)
        found[key] = None if text == NULL else text
    return found


def _decoded(name: str, part: str, text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise DatasetError(
            f"dataset {name!r}: the folder {part!r} must be a key and a value in UTF-8 once it is "
            f"percent-decoded, and is not; rename it, or pass hive=False"
        ) from None


def _typed(
    name: str,
    key: str,
    dtype: pa.DataType,
    told: Sequence[Mapping[str, str | None]],
    folders: Sequence[str],
) -> pa.Array:
    """Give the values of a key in the type that is wanted."""
    texts = pa.array([each.get(key) for each in told], TEXT)
    try:
        return texts.cast(dtype)
    except (pa.ArrowException, ValueError):
        pass
    for place, folder in enumerate(folders):
        try:
            texts.slice(place, 1).cast(dtype)
        except (pa.ArrowException, ValueError):
            raise DatasetError(
                f"dataset {name!r}: key {key!r} must be of type {dtype}, as schema says, got "
                f"{texts[place].as_py()!r} in the folder {folder!r}; declare another type, or "
                f"leave it out for text"
            ) from None
    raise DatasetError(
        f"dataset {name!r}: key {key!r} comes from the names of folders, and cannot be of type "
        f"{dtype}; declare another type, or leave it out for text"
    )


def _clash(
    name: str,
    key: str,
    known: FileFormat,
    shards: Shards,
    told: Sequence[Mapping[str, str | None]],
    codes: NDArray[np.int32],
) -> str:
    """Say which key is a column of which file, and the values of both, if they are soon found."""
    most = _MOST_LOOKED_AT if shards.far is None else 0  # nothing is copied for a message
    places = [place for place in range(min(len(shards), most)) if shards.rows[place]]
    for place in sorted(places, key=lambda place: key not in told[int(codes[place])]):
        shard = shards[place]
        alone = Shards.of([shard], directory=shards.directory, layouts=known.layouts([shard]))
        if any(each.name == key for each in known.fields(name, alone)[0]):
            value = _first_value(name, key, known, alone)
            mine = told[int(codes[place])]
            path = f"{mine[key]!r} from its folder" if key in mine else "it in other folders"
            found = f"{path} and {value!r:.80} from the file"
            where = f", shard {shard.name!r}"
            break
    else:
        where, found = "", "it from folders and from the columns of files"
    return (
        f"dataset {name!r}{where}: {key!r} must come from one place, got {found}; pass "
        f"hive='path' or hive='file' for the one that wins, or hive=False if folders have no keys"
    )


def _first_value(name: str, key: str, known: FileFormat, alone: Shards) -> Any:
    """Give the first value of a column that is no null, of one shard's first row group."""
    found = known.types(name, alone).get(key)
    if found is not None and found.type is not None:
        column = Column(key, "any", values=found.type, named=True)
        read = known.reader(name, alone, (column,), payload=False).read(0, 0)
        values = read.columns.column(0).drop_null()[:1].to_pylist()
        return values[0] if values else None
    rows = known.reader(name, alone, (), payload=True).read(0, 0)
    for place in range(min(LOOKED_AT, rows.columns.num_rows)):
        row = None if rows.payload is None else rows.payload.row(place)
        if isinstance(row, Mapping) and row.get(key) is not None:
            return row[key]
    return None
