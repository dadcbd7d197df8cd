"""Two real datasets out of a Python installation: its sources as code, its documentation as prose.

``code`` holds the modules of the standard library, as Parquet. ``prose`` holds the topics of
``help()`` and the docstrings of those modules, as JSON lines, compressed in two ways. Modules are
parsed, never imported.
"""

from __future__ import annotations

import ast
import gzip
import json
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from zephon.io.formats.zstd_module import zstd

Document: TypeAlias = dict[str, str]  # "text", and where it comes from

_SHARDS = 4
_ROWS_OF_A_GROUP = 100
_SHORTEST_DOCSTRING = 200  # characters; shorter ones say little more than a name
_PASSED_OVER = frozenset({"site-packages", "dist-packages", "__pycache__", "test", "tests"})


@dataclass(frozen=True, slots=True)
class Made:
    """A dataset that was written.

    path: its directory.
    texts: the text of every document, in the order of the rows.
    kind: what its files are, in words.
    """

    name: str
    path: Path
    texts: tuple[str, ...]
    kind: str

    @property
    def size(self) -> int:
        """Bytes of text in UTF-8."""
        return sum(len(text.encode()) for text in self.texts)


def modules() -> list[Document]:
    """Read the standard library's modules, tests left out, in the order of their paths."""
    root = Path(sysconfig.get_path("stdlib"))
    found = []
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if _PASSED_OVER.isdisjoint(relative.parts):
            try:
                with tokenize.open(path) as file:  # honours the coding line
                    found.append({"path": relative.as_posix(), "text": file.read().strip()})
            except (SyntaxError, UnicodeDecodeError):
                continue  # some files show on purpose what a bad source looks like
    return [document for document in found if document["text"]]


def make_code(directory: Path, sources: Sequence[Document], limit: int | None = None) -> Made:
    """Write modules as Parquet shards.

    Args:
        directory: where the shards go; made if it is not there.
        sources: what `modules` gives.
        limit: the most documents to take; None takes all.
    """
    parts = _dealt(sources[:limit])
    directory.mkdir(parents=True, exist_ok=True)
    for shard, part in enumerate(parts):
        table = pa.Table.from_pylist(part)
        path = directory / f"code-{shard}.parquet"
        pq.write_table(table, path, compression="zstd", row_group_size=_ROWS_OF_A_GROUP)
    return _made("code", directory, parts, f"{_SHARDS} Parquet shards")


def make_prose(directory: Path, sources: Sequence[Document], limit: int | None = None) -> Made:
    """Write documentation topics and docstrings as JSONL shards: two plain, one .gz, one .zst.

    Args:
        directory: where the shards go; made if it is not there.
        sources: what `modules` gives; their docstrings are taken.
        limit: the most documents to take; None takes all.
    """
    parts = _dealt(list(islice(chain(_topics(), _docstrings(sources)), limit)))
    directory.mkdir(parents=True, exist_ok=True)
    endings = ("jsonl", "jsonl", "jsonl.gz", "jsonl.zst")
    for shard, (part, ending) in enumerate(zip(parts, endings, strict=True)):
        data = "".join(json.dumps(document) + "\n" for document in part).encode()
        if ending.endswith("gz"):
            data = gzip.compress(data, mtime=0)
        elif ending.endswith("zst"):
            data = zstd.compress(data)
        (directory / f"prose-{shard}.{ending}").write_bytes(data)
    return _made("prose", directory, parts, f"{_SHARDS} JSONL shards, two of them compressed")


def _made(name: str, directory: Path, parts: Sequence[Sequence[Document]], kind: str) -> Made:
    texts = tuple(document["text"] for part in parts for document in part)
    return Made(name, directory, texts, kind)


def _dealt(documents: Sequence[Document]) -> list[list[Document]]:
    return [list(documents[shard::_SHARDS]) for shard in range(_SHARDS)]


def _topics() -> Iterator[Document]:
    """Yield what ``help("topic")`` would print, where this Python was installed with it."""
    try:
        from pydoc_data.topics import topics  # some systems put it into a package of its own
    except ImportError:
        return
    for name, text in sorted(topics.items()):
        yield {"source": f"help({name!r})", "text": text.strip()}


def _docstrings(sources: Sequence[Document]) -> Iterator[Document]:
    for source in sources:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # old escapes in strings are not our concern
                tree = ast.parse(source["text"])
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                if len(text) >= _SHORTEST_DOCSTRING:
                    where = f"{source['path']}: {getattr(node, 'name', 'module')}"
                    yield {"source": where, "text": text}
