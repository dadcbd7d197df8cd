"""A named collection of shards. It knows where rows lie and how many; it reads none.

The file is long because one public class stands here, with all that it documents.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.io.counted import Counted
from zephon.io.far_opening import open_place
from zephon.io.field_types import FieldTypes, FoundType
from zephon.io.fields import Column, Field, Seen
from zephon.io.folder_keys import FolderKeys, check_hive, folder_keys
from zephon.io.formats import FORMATS, register
from zephon.io.formats.arrow_columns import kind_of_type
from zephon.io.formats.format import Format
from zephon.io.formats.memory import Memory, in_memory_shard
from zephon.io.in_memory import InMemoryShard, check_shards
from zephon.io.location import check_name, far_place, local_directory
from zephon.io.near_shards import first_rows_here
from zephon.io.opening import check_format, formats_with, open_directory
from zephon.io.recorded import recorded_manifest
from zephon.io.row_policy import RAISES, RowPolicy
from zephon.io.selection import Selection
from zephon.io.shard import Shard
from zephon.io.shards import Shards
from zephon.io.splits import MOST_FILES, warn_of_splits
from zephon.io.type_names import declared_types
from zephon.io.unseen_fields import warn_of_unseen

__all__ = ["Dataset", "InMemoryShard", "Shard"]


@dataclass(frozen=True, slots=True, repr=False)
class Dataset(Counted):
    """A descriptor of a dataset; make one with ``from_path`` or ``from_dict``.

    name: how mixtures, checkpoints and messages call it.
    kind: the format, such as "parquet" or "jsonl"; or "in_memory".
    path: the absolute directory, or the pinned url; None for rows in memory.
    shards: in bytewise order of their names; for rows in memory, ascending by key.
    passed_over: entries of the directory that are not read, each with the reason.
    shard_ids: the user's ids of rows in memory; None where ids are positions.
    seen_fields: what ``fields()`` gives, but for declared fields that were not seen.
    fields_complete: True if every row is known to have all those fields and no other; False if
        only some rows were looked at, or shards differ.
    declared: what the user said of the types of fields, by name.
    format: what reads the shards, with its options; None: that of the kind.
    policy: what becomes of bad rows, and of nulls where text is wanted.
    folder_keys: what the names of folders say of rows; None: nothing.
    types: of all fields, found when somebody asks.

    >>> dataset = Dataset.from_dict("toy", {7: InMemoryShard([{"text": "a"}, {"text": "b"}])})
    >>> dataset
    Dataset('toy', in_memory, 2 rows in 1 shard)
    >>> dataset.ids().tolist(), dataset.counts().tolist(), dataset.total()
    ([7], [2], 2)
    """

    name: str
    kind: str
    path: str | None
    shards: Shards
    passed_over: tuple[str, ...] = ()
    shard_ids: tuple[int, ...] | None = None
    seen_fields: tuple[Field, ...] = field(default=(), compare=False)
    fields_complete: bool = field(default=False, compare=False)
    declared: tuple[tuple[str, pa.DataType], ...] = ()
    format: Format = None  # type: ignore[assignment]  # never None once it is made
    policy: RowPolicy = RAISES
    folder_keys: FolderKeys | None = None
    types: FieldTypes = field(init=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.format is None:
            object.__setattr__(self, "format", FORMATS[self.kind])
        elif self.kind not in FORMATS:  # in a process that the dataset was sent to
            register(type(self.format)())
        find = partial(self.format.types, self.name, self.shards)
        keys = () if self.folder_keys is None else self.folder_keys.types.items()
        types = FieldTypes(find, (*self.declared, *keys), self._unknown_type())
        object.__setattr__(self, "types", types)

    @classmethod
    def from_path(
        cls,
        name: str,
        path: str | os.PathLike[str],
        *,
        fmt: str | None = None,
        on_error: str = "raise",
        null_text: str = "error",
        schema: Mapping[str, Any] | pa.Schema | None = None,
        recursive: bool = False,
        glob: str | Sequence[str] | None = None,
        hive: bool | str = True,
        format_options: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Open a directory of data files of one format: a local one, or one in a far place.

        Far places are `s3://bucket/prefix`, `gs://`, `gcs://`, `az://`, `azure://`, `abfs://`,
        `abfss://` (extra "cloud"), and `hf://org/name[@[revision][~source]]/[config/]split` (extra
        "hf"). What they mean now is pinned: by the versions of objects, or by a commit that stands
        in ``path`` afterwards. Credentials are those of the environment.

        Rows are counted by the first of these that is there: ``_catalog.arrow``, ``index.json``,
        ``_index.json``, the files themselves. One that cannot be right is passed by with a
        ``RuntimeWarning``, and so is said, once a directory, that 64 files or more have neither.
        ``zephon index`` makes them.

        Args:
            name: usable as one part of a path.
            path: the directory; only its direct children are read, unless ``recursive`` or
                ``glob`` says more.
            fmt: "parquet", "jsonl" or another format (``zephon.io.formats``); None decides by the
                index, or by the files' suffixes.
            on_error: what a bad row does, be it so when it is read, tokenized or given to a
                function: "raise" ends the run there; "skip" leaves the row out, counts it and says
                so at the end; "quarantine" also writes it down, in ``options(quarantine=...)``. The
                others are delivered as if it were filtered out. A run that ended at a bad row can
                be restored with another word. An error that is not of one row always raises: a
                shard that cannot be read, an operator that sees rows together or remembers some.
            null_text: what a null, or no such field, means where ``tokenize`` reads text: "error",
                a bad row; "drop", a row that is left out and counted by itself; or "empty", "".
                Part of the recipe. A null among tokens or in a conversation is always a bad row.
            schema: types of fields, as expressions see them, by name; "a.b" is field b inside the
                object a. A type is one of Arrow, Polars or Python, or a name such as "list<int64>".
                For JSONL, it is what values must be, without any conversion but from integers to
                the same floats. For Parquet, it wins over the type that joins all shards. A value
                that does not fit is an error of its row; null and no value are both null. A
                ``RuntimeWarning`` names fields that neither the first rows nor an index have.
            recursive: read the files of all folders below, too; a shard's name is relative to
                ``path``, with "/" on every system.
            glob: read the files alone that a pattern, or one of a list, matches: "train-*.jsonl",
                "en/**/*.parquet". It is relative to ``path``; ``*``, ``?`` and ``[a-z]`` stand for
                signs within one part, ``**`` for any folders, ``[[]`` for "[". With ``recursive``,
                a pattern is looked for in every folder. Hidden, temporary and marker files and
                folders are data only if a part that begins with their "." or "_" names them.
            hive: whether folders named "key=value" below ``path`` are columns, after those of
                files. Values are text, percent-decoded, unless ``schema`` declares another type,
                which each must fit exactly; ``__HIVE_DEFAULT_PARTITION__`` is null, as is a key in
                a shard without such a folder; "key=" is "", and "=value" a plain folder. False:
                they are plain folders. Where a key is a column of files, too: "path" or "file", the
                one that wins for the whole dataset; True refuses. A key in a row of JSON lines
                where no earlier look had found it makes that row bad, but for "path".
            format_options: how files are to be read, for formats that have options, by name.

        Raises:
            DatasetNotFoundError: nothing lies at the path.
            DatasetError: a wrong name, format, option, word, pattern or schema, no data file, files
                of two formats, a folder that cannot be read, or a file that the index names is not
                there.
            NotYetError: a format that is documented but not there yet.
            ShardError: a data file cannot be read, or is not what the index says.
            AccessError: a far place refuses; says what is needed.
            StorageError: it does not answer.
            MissingExtraError: what reads far places is not installed; names the extra.
        """
        check_name(name)
        check_format(name, fmt)
        policy = RowPolicy.checked(name, on_error, null_text)
        declared = declared_types(name, schema)
        check_hive(name, hive)
        selection = Selection.of(name, recursive=recursive, glob=glob)
        place = far_place(name, path, fmt)
        formats = formats_with(name, fmt, format_options)
        if place is None:
            directory = local_directory(name, path)
            opened = open_directory(name, directory, fmt, formats, selection)
        else:
            opened = open_place(name, place, fmt, formats, selection)
        told = (opened.format, opened.shards, opened.fields)
        keys = folder_keys(name, hive, *told, declared)
        made = cls(
            name=name,
            kind=opened.format.kind,
            path=opened.shards.directory,
            shards=opened.shards,
            passed_over=opened.passed_over,
            seen_fields=opened.fields if keys is None else keys.fields(opened.fields),
            fields_complete=opened.fields_complete,
            declared=_checked(name, opened.format, opened.shards, declared, keys),
            format=opened.format,
            policy=policy,
            folder_keys=keys,
        )
        made._warn_of_unseen()
        if len(made.shards) <= MOST_FILES and not (place is not None and place.is_split):
            names = map(str, made.shards.names)
            warn_of_splits(name, names, selection, stacklevel=2)
        return made

    @classmethod
    def from_dict(
        cls,
        name: str,
        shards: Mapping[int, InMemoryShard],
        *,
        on_error: str = "raise",
        null_text: str = "error",
        schema: Mapping[str, Any] | pa.Schema | None = None,
    ) -> Dataset:
        """Make a dataset of rows in memory.

        Args:
            name: usable as one part of a path.
            shards: rows by shard id.
            on_error, null_text: as for ``from_path``.
            schema: types of fields, as for ``from_path``; None: those that all values have.

        Raises:
            DatasetError: a wrong name, word or schema, an id that is no int of 64 bits, or rows in
                anything but an ``InMemoryShard``.
        """
        check_name(name)
        policy = RowPolicy.checked(name, on_error, null_text)
        check_shards(name, shards)
        keys = sorted(int(key) for key in shards)
        described = Shards.of([in_memory_shard(key, shards[key]) for key in keys], directory="")
        fields, complete = FORMATS[Memory.kind].fields(name, described)
        made = cls(
            name=name,
            kind=Memory.kind,
            path=None,
            shards=described,
            shard_ids=tuple(keys),
            seen_fields=fields,
            fields_complete=complete,
            declared=_checked(name, FORMATS[Memory.kind], described, declared_types(name, schema)),
            policy=policy,
        )
        made._warn_of_unseen()
        return made

    @property
    def backend(self) -> Mapping[str, Any]:
        """The kind, and the path or the shards in memory by id; read-only."""
        if self.shard_ids is None:
            return MappingProxyType({"kind": self.kind, "path": self.path})
        memory = (shard.memory for shard in self.shards)
        rows = dict(zip(self.shard_ids, memory, strict=True))
        return MappingProxyType({"kind": self.kind, "shards": rows})

    def ids(self) -> NDArray[np.int64]:
        """Shard ids in ascending order, shape [shards]: positions, or the keys of ``from_dict``."""
        if self.shard_ids is None:
            ids = np.arange(len(self.shards))
        else:
            ids = np.array(self.shard_ids, np.int64)
        ids.flags.writeable = False
        return ids

    def fields(self) -> tuple[Field, ...]:
        """Top-level columns: of all footers, or of the first 64 rows for JSONL and memory.

        Then those that were declared or that an index of JSONL tells of, and not seen. The type of
        each is found when it is asked for: from footers, from the index, or from all rows in
        memory.
        """
        kinds = self.kinds_without_index()
        for name, found in self._indexed().items():
            kinds.setdefault(name, "other" if found.type is None else kind_of_type(found.type))
        find, declared = self.types.type_of, dict(self.declared)
        return tuple(
            Field(name, kind, find_type=find, declared=name in declared)
            for name, kind in kinds.items()
        )

    def kinds_without_index(self) -> dict[str, str]:
        """Give the kinds of fields that were seen or declared: what may decide an order of rows."""
        kinds = {each.name: each.kind for each in self.seen_fields}
        for name, dtype in self.declared:
            kinds.setdefault(name, kind_of_type(dtype))
        return kinds

    def type_conflict(self, name: str) -> str:
        """Say why a field has no type, both places and what to do; "" where it has one."""
        return self.types.conflict(name)

    @property
    def declared_types(self) -> dict[str, str]:
        """Types that ``schema`` declared, by field, in words: what a recipe holds of them."""
        return {name: str(dtype) for name, dtype in self.declared}

    def first_lists(self, names: Sequence[str]) -> dict[str, Seen]:
        """Say what the first 64 rows of the first shard with rows hold in some fields.

        Args:
            names: of top-level fields.

        Returns:
            what was seen of each field; nothing of one that is known to be missing in a shard.

        Raises:
            ShardError: the shard cannot be read.
        """
        keys = {} if self.folder_keys is None else self.folder_keys.types
        asked = [name for name in names if name not in keys]
        with first_rows_here(self.format, self.shards) as here:
            found = self.format.first_lists(self.name, here, asked)
        odd = "folders have one value"
        return found | {name: Seen(None, (), odd=odd) for name in names if name in keys}

    def held_in(self, name: str) -> str:
        """Say what rows hold the numbers of a field in: "list", "tuple", "np" or "pt"."""
        everywhere = self.format.lists_in
        return self.first_lists([name])[name].container if everywhere is None else everywhere

    def recorded_manifest(self) -> list[Any] | dict[str, Any]:
        """What a checkpoint says of the data, as JSON values."""
        told = self.format.said_options()
        keys = () if self.folder_keys is None else tuple(self.folder_keys.types)
        null_text = self.policy.null_text
        return recorded_manifest(self.shards, self.declared_types, told, null_text, keys)

    def __repr__(self) -> str:
        rows, shards = (
            f"{count} {what}{'' if count == 1 else 's'}"
            for count, what in ((self.total(), "row"), (len(self.shards), "shard"))
        )
        told = [f", format_options={options}"] if (options := self.format.said_options()) else []
        for word in ("on_error", "null_text"):
            given = getattr(self.policy, word)
            told += [f", {word}={given!r}"] if given != getattr(RAISES, word) else []
        return f"Dataset({self.name!r}, {self.kind}, {rows} in {shards}{''.join(told)})"

    def __copy__(self) -> Dataset:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Dataset:
        return self  # frozen; rows in memory stay the user's

    def __reduce__(self) -> tuple[Any, ...]:
        made = (self.name, self.kind, self.path, self.shards, self.passed_over, self.shard_ids)
        more = (self.seen_fields, self.fields_complete, self.declared, self.format, self.policy)
        more = (*more, self.folder_keys)
        return Dataset, (*made, *more)

    def _warn_of_unseen(self) -> None:
        names = [name for name, _ in self.declared]
        seen = [each.name for each in self.seen_fields]
        warn_of_unseen(self.name, names, seen, self._indexed)

    def _indexed(self) -> Mapping[str, FoundType]:
        """Give the fields that an index tells of; nothing where rows or footers tell of them."""
        return self.types.found() if self.format.types_indexed else {}

    def _unknown_type(self) -> str:
        if not self.format.types_indexed:
            return "no row has it"
        return (
            "nobody has looked at all its values; pass schema= to Dataset.from_path, or run "
            f"`zephon index {self.path}`"
        )


def _checked(
    name: str,
    known: Format,
    shards: Shards,
    declared: tuple[tuple[str, pa.DataType], ...],
    keys: FolderKeys | None = None,
) -> tuple[tuple[str, pa.DataType], ...]:
    of_folders = {} if keys is None else keys.types
    columns = [
        Column(path, "any", values=dtype) for path, dtype in declared if path not in of_folders
    ]
    known.check_declared(name, shards, columns)
    return declared
