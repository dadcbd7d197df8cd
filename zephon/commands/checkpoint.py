"""The command `zephon checkpoint`: what a checkpoint is of and where it stands, or what differs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from zephon.errors import CheckpointError, told
from zephon.exec.checkpoint import from_any
from zephon.exec.saved_values import DAMAGE
from zephon.exec.state_told import told_differences, told_state

SUMMARY = "show what a checkpoint is of, or in what two of them differ"

_SAME, _DIFFERENT, _UNUSABLE = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `zephon checkpoint` takes."""
    actions = parser.add_subparsers(dest="action", metavar="show|diff", required=True)
    show = actions.add_parser("show", help="print what it is of, where it stands, what it holds")
    show.add_argument("files", metavar="FILE", nargs=1, help="a checkpoint, as JSON or as bytes")
    diff = actions.add_parser("diff", help="print in what two differ; 1 if they do")
    diff.add_argument("files", metavar="FILE", nargs=2, help="two of them")


def run(arguments: argparse.Namespace) -> int:
    """Print lines; return 0, 1 if two checkpoints differ, 2 if a file is no sound checkpoint."""
    try:
        states = [_read(Path(file)) for file in arguments.files]
        if arguments.action == "diff":
            found = told_differences(*states)
            print("\n".join(found or ["they are the same"]))
            return _DIFFERENT if found else _SAME
        size = Path(arguments.files[0]).stat().st_size
        print(
            f"checkpoint   {arguments.files[0]}, {size:,} bytes", *told_state(states[0]), sep="\n"
        )
    except CheckpointError as error:
        print(f"zephon checkpoint: {str(error).removeprefix('restore: ')}", file=sys.stderr)
        return _UNUSABLE
    except DAMAGE as error:  # its digest is right, and what it says cannot be
        print(f"zephon checkpoint: it says what no release writes: {told(error)}", file=sys.stderr)
        return _UNUSABLE
    return _SAME


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
