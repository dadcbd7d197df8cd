"""The command line, `zephon COMMAND`: a command is a line in a table and a module that runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zephon.commands import cache, checkpoint, index, verify
from zephon.demo import run as demo
from zephon.errors import ZephonError
from zephon.version import __version__


@dataclass(frozen=True, slots=True)
class Command:
    """One word after `zephon`.

    summary: what it does, in one line of `zephon --help`.
    add_arguments: declares its options.
    run: does it; returns the exit code.
    """

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = (
    Command("cache", cache.SUMMARY, cache.add_arguments, cache.run),
    Command("checkpoint", checkpoint.SUMMARY, checkpoint.add_arguments, checkpoint.run),
    Command("demo", demo.SUMMARY, demo.add_arguments, demo.run),
    Command("index", index.SUMMARY, index.add_arguments, index.run),
    Command("verify", verify.SUMMARY, verify.add_arguments, verify.run),
)

# what shells report for Ctrl-C, and for a reader that has gone
_INTERRUPTED, _BROKEN_PIPE = 130, 141


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        words: the command line without the program's name; None takes the process's own.

    Returns:
        The exit code: that of the command, 1 after an error of Zephon's or of the disk, 130 after
        Ctrl-C, 141 when nobody reads the output any more.
    """
    arguments = _parser().parse_args(words)
    try:
        return arguments.run(arguments)
    except ZephonError as error:
        print(f"zephon {arguments.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # what reads our output has gone; Python would complain once more when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except OSError as error:  # a disk that is full, a directory that nobody may write to
        print(f"zephon {arguments.command}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="zephon", description="Data loading for foundation-model training."
    )
    parser.add_argument("--version", action="version", version=f"zephon {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        own = commands.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[:1].upper()}{command.summary[1:]}.",
        )
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return parser
