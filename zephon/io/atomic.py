"""Files that appear whole or not at all, whatever stops the process that writes them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def written_atomically(path: Path) -> Iterator[Path]:
    """Give a file to write to, in the same directory; move it to its place at the end.

    What was at ``path`` stays readable for those who have it open. Nothing is left behind if the
    body raises, and after a crash a hidden file that directory scans pass over.

    Args:
        path: where the file shall be; its directory exists.
    """
    parent = path.parent
    # A name of its own: containers and hosts that share the directory have the same process ids.
    draft = parent / f".{path.name}.{uuid.uuid4().hex}.tmp"
    draft.touch(exist_ok=False)  # refused here, not after the work, where writing is not allowed
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise
    directory = os.open(parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
