"""The command `zephon index`: writes the index, or the catalogue, of a directory of shards."""

from __future__ import annotations

import argparse
import json
from typing import Any

from zephon.build_index import build_catalog, build_index, format_of_files
from zephon.io.formats.registering import FILE_FORMATS

SUMMARY = "write an index of a directory's shards, so that opening it reads none of them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `zephon index` takes."""
    formats = " or ".join(sorted(FILE_FORMATS))
    parser.add_argument("directory", metavar="DIR", help="the directory of the data files")
    parser.add_argument(
        "--format", help=f"{formats}; where files of several lie there, and for json and text"
    )
    parser.add_argument(
        "--catalog", action="store_true", help="write a catalogue, for very many files"
    )
    parser.add_argument(
        "--recursive", action="store_true", help="look at the files of all folders below, too"
    )
    parser.add_argument(
        "--glob",
        action="append",
        metavar="PATTERN",
        help="look only at files that a pattern matches, such as '**/train-*'; may be repeated",
    )
    parser.add_argument(
        "--options",
        type=_options,
        metavar="JSON",
        help='format_options, such as \'{"delimiter": ";"}\' for CSV',
    )
    parser.add_argument("--output", metavar="PATH", help="write to this file, not into DIR")


def run(arguments: argparse.Namespace) -> int:
    """Write the file and print its path; return 0."""
    wanted = {"recursive": arguments.recursive, "glob": arguments.glob}
    options = arguments.options
    if arguments.catalog:
        path = build_catalog(
            arguments.directory,
            format_name=arguments.format,
            output_path=arguments.output,
            format_options=options,
            **wanted,
        )
    else:
        fmt = arguments.format or format_of_files(arguments.directory, **wanted)
        path = build_index(
            fmt,
            arguments.directory,
            output_path=arguments.output,
            format_options=options,
            **wanted,
        )
    print(path)
    return 0


def _options(text: str) -> dict[str, Any]:
    """Read options from the command line; what they are is checked with the format."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object of options by name, got {text!r}")
    return found
