"""Where the benchmark's text comes from: Debian's documentation and sources, or Python's own.

Debian packages are downloaded and unpacked, never installed; one file is one document. Their
versions move with security updates, so no test may count on exact sizes. Elsewhere the sources of
the running Python are repeated, their paragraphs in another order each time.
"""

from __future__ import annotations

import gzip
import html.parser
import itertools
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

DEBIAN_PACKAGES = (
    "anarchism",
    "debian-handbook",
    "fortunes",
    "golang-1.19-src",
    "libreoffice-help-en-us",
    "linux-doc-6.1",
    "python3.11-doc",
)
_PLAIN = (".rst", ".txt", ".go", ".md", ".py", ".s", ".c", ".h")
_SHORTEST = 40  # characters; shorter files are stubs
_LONGEST_SOURCE = 100_000  # bytes; what is longer was mostly written by a program


def debian_documents() -> list[str] | None:
    """Return the text of every file in the packages, or None where they cannot be had."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return None
    with tempfile.TemporaryDirectory(prefix="zephon-bench-") as scratch:
        room = Path(scratch)
        # root drops to another user for downloads, who may not write into a private folder
        download = ("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *DEBIAN_PACKAGES)
        done = subprocess.run(download, cwd=room, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None
        texts: dict[str, None] = {}  # a set that keeps its order: exact doubles are dropped
        for package in sorted(room.glob("*.deb")):
            unpacked = room / package.stem
            subprocess.run(("dpkg-deb", "-x", package, unpacked), check=True)
            texts.update(dict.fromkeys(_texts_below(unpacked)))
            shutil.rmtree(unpacked)
    return list(texts)


def python_documents(*, least_bytes: int, least_documents: int) -> list[str]:
    """Return Python's sources, then their paragraphs in other orders, until there is enough."""
    roots = {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}
    files = sorted({path for root in roots for path in Path(root).rglob("*.py")})
    originals = [
        text
        for path in files
        if path.stat().st_size <= _LONGEST_SOURCE and (text := _read_plain(path)) is not None
    ]
    shuffle = np.random.default_rng(7).permutation
    texts, size = list(originals), sum(len(text.encode()) for text in originals)
    for original in itertools.cycle(originals):
        if size >= least_bytes and len(texts) >= least_documents:
            break
        paragraphs = original.split("\n\n")
        texts.append("\n\n".join(paragraphs[i] for i in shuffle(len(paragraphs))))
        size += len(texts[-1].encode())
    return texts


def _texts_below(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        name = path.name.removesuffix(".gz")
        if name.endswith((".html", ".htm")) and "/html/" in str(path) and _is_foreign(path):
            continue
        if name.endswith((".html", ".htm")):
            parts = [_text_of_html(_open(path).decode("utf-8", "replace"))]
        elif name.endswith(_PLAIN) and "changelog" not in name.lower():
            parts = [_read_plain(path) or ""]
        elif "/games/fortunes/" in str(path) and "." not in name:
            parts = _open(path).decode("utf-8", "replace").split("\n%\n")
        else:
            continue
        yield from (text for part in parts if len(text := part.strip()) >= _SHORTEST)


def _is_foreign(path: Path) -> bool:
    language = re.search(r"/html/([a-z]{2})-[A-Z]{2}/", str(path))
    return language is not None and language[1] != "en"


def _open(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _read_plain(path: Path) -> str | None:
    try:
        text = _open(path).decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    return text if len(text) >= _SHORTEST else None


def _text_of_html(page: str) -> str:
    reader = _HtmlText()
    reader.feed(page)
    text = re.sub(r"[ \t]+", " ", "".join(reader.parts))
    return re.sub(r"\n{3,}", "\n\n", text)


class _HtmlText(html.parser.HTMLParser):
    """Collects what a reader of the page sees, one line a block element."""

    SKIPPED = frozenset({"script", "style", "head", "nav", "template"})
    BLOCKS = frozenset(
        {"p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "pre", "dt", "dd", "br", "table"}
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skipping = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start a line at a block; note when a part begins that nobody reads."""
        self._skipping += tag in self.SKIPPED
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End a line at a block; note when an unread part ends."""
        self._skipping -= tag in self.SKIPPED and self._skipping > 0
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep text that is seen."""
        if not self._skipping:
            self.parts.append(data)
