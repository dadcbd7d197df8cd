"""The command `zephon verify`: a recipe on several topologies, with cuts, compared byte by byte."""

from __future__ import annotations

import argparse
import sys

from zephon.errors import ZephonError
from zephon.recipe import load_recipe
from zephon.verification import verify
from zephon.verification.verify import CUTS, RANKS, STEPS

SUMMARY = "run a recipe on several numbers of ranks, with restarts, and compare every byte"

_SAME, _DIFFERENT, _UNUSABLE = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `zephon verify` takes."""
    parser.add_argument(
        "recipe", metavar="RECIPE", help="file.py:function, which is run, or file.toml"
    )
    parser.add_argument("--steps", type=int, default=STEPS, help="global steps (%(default)s)")
    parser.add_argument(
        "--ranks",
        type=_numbers,
        default=RANKS,
        metavar="N,N,...",
        help=f"numbers of ranks, the first one without a cut ({','.join(map(str, RANKS))})",
    )
    parser.add_argument("--cuts", type=int, default=CUTS, help="restarts of a run (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="chooses the cuts (%(default)s)")
    parser.add_argument(
        "--runners",
        type=lambda text: text.split(","),
        default=["threads", "inline"],
        metavar="NAME,...",
        help="what runs go on with (threads,inline)",
    )
    parser.add_argument("--to-end", action="store_true", help="run to the end of the data")


def run(arguments: argparse.Namespace) -> int:
    """Print the hashes and the verdict; return 0 if all are the same, 1 if not, 2 if none came."""
    try:
        found = verify(
            load_recipe(arguments.recipe),
            steps=arguments.steps,
            ranks=arguments.ranks,
            cuts=arguments.cuts,
            seed=arguments.seed,
            to_end=arguments.to_end,
            runners=arguments.runners,
        )
    except ZephonError as error:
        print(f"zephon verify: {str(error).removeprefix('verify: ')}", file=sys.stderr)
        return _UNUSABLE
    print(found)
    return _SAME if found.same else _DIFFERENT


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers such as 1,2,4, got {text!r}") from None
