"""The grammar of `hf://org/name[@[revision][~source]]/[config/]split`.

A revision is a branch, a tag or a commit, `main` by default. One with other signs than letters,
digits, `_`, `.` and `-` stands in double quotes, as in `@"release/2024-01"`, or is percent-encoded,
as in `@release%2F2024-01`. The source is `original`, the uploaded files, or `parquet`, the hub's
conversion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from zephon.errors import DatasetError

SCHEME = "hf://"
SOURCES = ("original", "parquet")

_FORM = "hf://org/name[@[revision][~source]]/[config/]split"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)
_ENCODED = re.compile(r"(?:[\w.-]|%[0-9A-Fa-f]{2})+", re.ASCII)
_INSIDE = re.compile(r"[^\"\\\x00-\x1f]+")
_OTHERS = ("datasets", "models", "spaces", "buckets", "kernels")  # kinds of repositories
_APART = re.compile(
    rf"(?P<repo>(?:(?:{'|'.join(_OTHERS)})/)?[^/@]*(?:/[^/@]*)?)"
    r'(?P<at>@(?:"[^"]*"[^/]*|[^/"]*))?(?:/(?P<tail>.*))?'
)
_PAGES = ("resolve", "blob", "raw", "tree")  # of the hub's web pages
_FILE = re.compile(r"\.(parquet|jsonl?|ndjson|csv|tsv|txt|arrow|zst|gz|bz2|xz|zip|tar)$", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubUrl:
    """A split of a dataset on the hub.

    repo: "org/name".
    revision: a branch, a tag, a commit, or any other ref.
    source: "original", "parquet", or None for the better of both.
    config: its name; None for the only one or the default.
    split: its name.
    """

    repo: str
    revision: str = "main"
    source: str | None = None
    config: str | None = None
    split: str

    def __str__(self) -> str:
        plain = _PLAIN.fullmatch(self.revision)
        at = self.revision if plain else f'"{self.revision}"'
        source = f"~{self.source}" if self.source else ""
        at = f"@{at}{source}" if source or at != "main" else ""
        config = f"{self.config}/" if self.config else ""
        return f"{SCHEME}{self.repo}{at}/{config}{self.split}"

    def pinned(self, commit: str, source: str, config: str) -> HubUrl:
        """Give the url that says what was found, and stays true."""
        return replace(self, revision=commit, source=source, config=config)


def parse_hub_url(url: str) -> HubUrl:
    """Read a url.

    Raises:
        DatasetError: it is not of the form; says what to write.
    """
    taken = _APART.fullmatch(url[len(SCHEME) :])
    if "?" in url or "#" in url or "\0" in url:
        raise _wrong(url.partition("?")[0], "a url has no query and no fragment")
    if taken is None or url.count('"') == 1:
        raise _wrong(url, "the revision has no closing quote")
    at, tail = taken["at"] or "", (taken["tail"] or "").strip("/")
    parts = [*taken["repo"].split("/"), *(tail.split("/") if tail else ())]
    if parts[0] in _OTHERS:
        raise _wrong(
            url, f"only datasets are read, and {parts[0]!r} is left out", _without(parts, at)
        )
    if "" in parts:
        raise _wrong(url, "a part is empty")
    if len(parts) == 2 and not at:
        raise _wrong(url, "the split is missing", f"{SCHEME}{'/'.join(parts)}/train")
    if len(parts) < 3:
        raise _wrong(url, f"its parts are {len(parts)}, and at least three are needed")
    org, name, *inside = parts
    for each in (org, name):
        if not _NAME.fullmatch(each):
            raise _wrong(url, f"{each!r} is no name of a repository")
    revision, source = _revision(url, at)
    train = f"{SCHEME}{org}/{name}/train"
    if inside[0] in _PAGES:
        raise _wrong(url, "a page of a file is no split", train)
    if _FILE.search(inside[-1]):
        raise _wrong(url, f"a file is no split, and {'/'.join(inside)!r} is one", train)
    if len(inside) > 2:
        many = f"{len(inside)} parts follow the repository, and it is a config and a split at most"
        raise _wrong(
            url, f"{many}; a revision with slashes stands in double quotes" if at else many
        )
    config = inside[0] if len(inside) == 2 else None
    return HubUrl(
        repo=f"{org}/{name}", revision=revision, source=source, config=config, split=inside[-1]
    )


def _revision(url: str, at: str) -> tuple[str, str | None]:
    if not at:
        return "main", None
    quoted_one, closed, behind = at[2:].partition('"') if at.startswith('@"') else ("", "", at[1:])
    before, tilde, source = behind.partition("~")
    if tilde and source not in SOURCES:
        raise _wrong(url, f"the source is ~original or ~parquet, and {'~' + source!r} is neither")
    if closed:
        if before or not _INSIDE.fullmatch(quoted_one):
            raise _wrong(url, "what stands in the quotes, or after them, is no revision")
        return quoted_one, source or None
    if not before and not tilde:
        raise _wrong(url, "the revision after the @ is empty")
    if before and not _ENCODED.fullmatch(before):
        raise _wrong(
            url,
            f"the revision {before!r} has signs that need quotes",
            url.replace(f"@{before}", f'@"{before}"', 1),
        )
    return unquote(before) or "main", source or None


def _without(parts: list[str], at: str) -> str | None:
    """Correct the path of a file or a repository to that of a split, as far as it can be known."""
    if parts[0] != "datasets" or len(parts) < 3:
        return None
    org, name, *inside = parts[1:]
    if len(inside) > 2 or not inside or inside[0] in _PAGES or _FILE.search(inside[-1]):
        inside = ["train"]
    return f"{SCHEME}{org}/{name}{at}/{'/'.join(inside)}"


def _wrong(url: str, why: str, instead: str | None = None) -> DatasetError:
    end = f"write {instead!r}" if instead else "name a repository and a split"
    return DatasetError(f"{url!r}: must be {_FORM}; {why}; {end}")


def quoted(revision: str) -> str:
    """Encode a revision for the path of a request."""
    return quote(revision, safe="")
