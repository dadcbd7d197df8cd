"""The command `zephon checkpoint`: what a checkpoint is of and where it stands, or what differs.

What several ranks saved of one moment, each its part, is one checkpoint here as for ``restore``.
"""

from __future__ import annotations

import argparse
import glob
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zephon.errors import CheckpointError, told
from zephon.exec.checkpoint import from_any
from zephon.exec.saved_values import DAMAGE
from zephon.exec.state_parts import merged
from zephon.exec.state_told import told_differences, told_state

SUMMARY = "show what a checkpoint is of, or in what two of them differ"

_SAME, _DIFFERENT, _UNUSABLE = 0, 1, 2
_MOST_NAMED = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `zephon checkpoint` takes."""
    actions = parser.add_subparsers(dest="action", metavar="show|diff", required=True)
    show = actions.add_parser("show", help="print what it is of, where it stands, what it holds")
    show.add_argument(
        "checkpoints",
        metavar="FILE",
        nargs="+",
        help="a checkpoint, as JSON or as bytes; several are the parts of several ranks, as are "
        "the files of a directory, and those that a quoted pattern such as 'rank-*.json' names",
    )
    diff = actions.add_parser("diff", help="print in what two differ; 1 if they do")
    diff.add_argument(
        "checkpoints",
        metavar="CHECKPOINT",
        nargs=2,
        help="a file; or a directory or a quoted pattern, whose files are the parts of several "
        "ranks",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print lines; return 0, 1 if two checkpoints differ, 2 if a file is no sound checkpoint."""
    try:
        if arguments.action == "diff":
            found = told_differences(*(_whole(_files(name)) for name in arguments.checkpoints))
            print("\n".join(found or ["they are the same"]))
            return _DIFFERENT if found else _SAME
        files = [file for name in arguments.checkpoints for file in _files(name)]
        files = list({file.resolve(): file for file in files}.values())
        lines = told_state(_whole(files, arguments.checkpoints))
        size = sum(file.stat().st_size for file in files)
        print(f"checkpoint   {_named(files)}, {size:,} bytes", *lines, sep="\n")
    except CheckpointError as error:
        print(f"zephon checkpoint: {str(error).removeprefix('restore: ')}", file=sys.stderr)
        return _UNUSABLE
    except DAMAGE as error:  # its digest is right, and what it says cannot be
        print(f"zephon checkpoint: it says what no release writes: {told(error)}", file=sys.stderr)
        return _UNUSABLE
    return _SAME


def _files(name: str) -> list[Path]:
    """Give the files of a checkpoint, those of a directory or a pattern in order of their names.

    Raises:
        CheckpointError: there are none in the directory, or none of the pattern.
    """
    path = Path(name)
    if path.is_dir():
        found = [each for each in path.iterdir() if not each.name.startswith(".")]
    elif glob.has_magic(name) and not path.exists():
        found = [Path(each) for each in glob.glob(name)]
    else:
        return [path]
    if not found:
        raise CheckpointError(f"{name}: there is no file; name a checkpoint, or all parts of one")
    return sorted(found)


def _whole(files: list[Path], shown: Sequence[str] = ()) -> dict[str, Any]:
    """Read a checkpoint, from its parts where there are several.

    Args:
        files: of it.
        shown: what the user named to have them shown; of two, each may be meant as a whole one.

    Raises:
        CheckpointError: a file cannot be read, or is none; or they are not parts of one.
    """
    states = [_read(file) for file in files]
    try:
        return merged(states, list(map(str, files)))
    except CheckpointError as exc:
        diff = f"zephon checkpoint diff {shlex.join(shown)}" if len(shown) == 2 else ""
        raise CheckpointError(f"{exc}; to compare two: {diff}" if diff else str(exc)) from exc


def _named(files: list[Path]) -> str:
    first = ", ".join(map(str, files[:_MOST_NAMED]))
    rest = len(files) - _MOST_NAMED
    return f"{first} and {rest} more" if rest > 0 else first


def _read(file: Path) -> dict[str, Any]:
    """Read a checkpoint.

    Raises:
        CheckpointError: the file cannot be read, or is none.
    """
    try:
        content = file.read_bytes()
        return from_any(_of_json(content) if content.lstrip()[:1] == b"{" else content)
    except OSError as exc:
        raise CheckpointError(f"{file}: it cannot be read: {exc.strerror or exc}") from exc
    except CheckpointError as exc:
        raise CheckpointError(f"{file}: {str(exc).removeprefix('restore: ')}") from exc


def _of_json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise CheckpointError(
            f"this is no checkpoint, its JSON is cut off or damaged: {exc}; name a file that holds "
            "all that checkpoint() returned"
        ) from exc
