"""Repositories as a hub keeps them: blobs, commits, branches and tags, all in memory."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

LARGE = (".parquet", ".arrow", ".zst", ".gz", ".bin", ".mds", ".lance")
"""Suffixes of files that the hub keeps apart from Git."""


class Blob:
    """The content of a file; a large one has a pointer in Git, and its SHA-256 as its version."""

    def __init__(self, content, large):
        self.content, self.large = content, large
        self.size, self.sha256 = len(content), hashlib.sha256(content).hexdigest()
        kept = content
        if large:
            kept = (
                "version https://git-lfs.github.com/spec/v1\n"
                f"oid sha256:{self.sha256}\nsize {self.size}\n"
            ).encode()
        self.pointer_size = len(kept)
        self.oid = hashlib.sha1(b"blob %d\0" % len(kept) + kept).hexdigest()

    @property
    def etag(self):
        return self.sha256 if self.large else self.oid

    def entry(self, path):
        """Give what a listing says of it."""
        told = {"type": "file", "oid": self.oid, "size": self.size, "path": path}
        if self.large:
            told["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": self.pointer_size}
        return told


@dataclass
class Commit:
    sha: str
    files: dict
    parent: object
    date: str


@dataclass
class Repository:
    """A dataset or a model; ``refs`` are full names with what they point to."""

    id: str
    private: bool = False
    gated: object = False
    disabled: bool = False
    refs: dict = field(default_factory=dict)
    commits: dict = field(default_factory=dict)

    def commit(self, files, ref="refs/heads/main", base="parent"):
        """Write files on top of a branch, or of nothing with ``base=None``; gives its commit."""
        parent = self.refs.get(ref) if base == "parent" else None
        tree = dict(parent.files) if parent else {}
        for path, content in files.items():
            if content is None:
                tree.pop(path)
            else:
                content = content.encode() if isinstance(content, str) else content
                tree[path] = Blob(content, path.endswith(LARGE))
        date = datetime.now(UTC).isoformat()
        named = [
            self.id,
            len(self.commits),
            date,
            [(path, blob.oid) for path, blob in tree.items()],
        ]
        made = Commit(hashlib.sha1(json.dumps(named).encode()).hexdigest(), tree, parent, date)
        self.commits[made.sha] = self.refs[ref] = made
        return made.sha

    def convert(self, files):
        """Write the hub's conversion, as it does: without a past."""
        return self.commit(files, "refs/convert/parquet", base=None)

    def tag(self, name, revision="main"):
        self.refs[f"refs/tags/{name}"] = self.resolve(revision)

    def resolve(self, revision):
        """Give the commit of a branch, a tag, a full ref or a hash; None if there is none."""
        for ref in (f"refs/heads/{revision}", f"refs/tags/{revision}", revision):
            if ref in self.refs:
                return self.refs[ref]
        if re.fullmatch(r"[0-9a-f]{5,40}", revision):
            hits = [each for sha, each in self.commits.items() if sha.startswith(revision)]
            return hits[0] if len(hits) == 1 else None
        return None
