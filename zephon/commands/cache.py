"""The command `zephon cache`: what lies in the shard cache, whether it is sound, and its end."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zephon.errors import CacheError, CacheInUseError
from zephon.io.own_directory import default_root
from zephon.io.shard_cache.contents import (
    Cached,
    cached,
    clear,
    marked_root,
    problem_of,
    remove,
    users,
)

SUMMARY = "list, verify or clear the cache of shards"

_SOUND, _UNSOUND, _UNUSABLE = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `zephon cache` takes."""
    actions = parser.add_subparsers(dest="action", metavar="ls|verify|clear", required=True)
    listing = actions.add_parser("ls", help="print which datasets lie there, and their bytes")
    verify = actions.add_parser("verify", help="read all shards; 1 if one is not as it came")
    clearing = actions.add_parser("clear", help="remove all that the cache made; 1 if it is used")
    for each in (listing, verify, clearing):
        each.add_argument(
            "--root", metavar="DIR", help=f"the cache's root ({default_root().absolute()})"
        )
        each.add_argument("--json", action="store_true", help="print JSON")
    verify.add_argument("--remove", action="store_true", help="remove what is not as it came")
    clearing.add_argument("--force", action="store_true", help="although a process uses it")


def run(arguments: argparse.Namespace) -> int:
    """Print what there is; return 0, 1 if shards are unsound or in use, 2 if there is no cache."""
    root = default_root().absolute() if arguments.root is None else Path(arguments.root)
    root = Path(os.path.abspath(root.expanduser()))
    action: Callable[[argparse.Namespace, Path], int] = _ACTIONS[arguments.action]
    try:
        if not marked_root(root):
            _print(arguments, {"root": str(root), "datasets": []}, f"{root}: there is no cache")
            return _SOUND
        return action(arguments, root)
    except CacheError as error:
        print(f"zephon cache: {str(error).removeprefix('shard cache: ')}", file=sys.stderr)
        return _UNSOUND if isinstance(error, CacheInUseError) else _UNUSABLE


def _list(arguments: argparse.Namespace, root: Path) -> int:
    datasets: dict[tuple[str, str], dict[str, Any]] = {}
    for shard in cached(root):
        entry = datasets.setdefault(
            (shard.dataset, shard.url),
            {
                "dataset": shard.dataset,
                "url": shard.url,
                "shards": 0,
                "bytes": 0,
                "used": 0.0,
            },
        )
        entry["shards"] += 1
        entry["bytes"] += shard.bytes
        entry["used"] = max(entry["used"], shard.used_s)
    found = list(datasets.values())
    using = [user.pid for user in users(root)]
    lines = [
        f"{entry['dataset']}: {entry['shards']:,} shards, {entry['bytes']:,} bytes, last used "
        f"{_date(entry['used'])}, of {entry['url']}"
        for entry in found
    ]
    total = sum(entry["bytes"] for entry in found)
    shards = sum(entry["shards"] for entry in found)
    used = f"; used by process {', '.join(map(str, using))}" if using else ""
    lines.append(f"{root}: {shards:,} shards, {total:,} bytes{used}")
    about = {"root": str(root), "bytes": total, "shards": shards, "processes": using}
    _print(arguments, {**about, "datasets": found}, "\n".join(lines))
    return _SOUND


def _verify(arguments: argparse.Namespace, root: Path) -> int:
    problems: list[tuple[Cached, str]] = []
    count = 0
    for shard in cached(root):
        count += 1
        problem = problem_of(shard)
        if problem is None:
            continue
        problems.append((shard, problem))
        if arguments.remove:
            try:
                remove(shard)
            except OSError as exc:
                raise CacheError(f"{shard.path!r} cannot be removed: {exc}") from exc
    done = "removed" if arguments.remove else "remove them with --remove, and they are fetched anew"
    lines = [f"{shard.path}: {problem}" for shard, problem in problems]
    lines.append(
        f"{root}: {count:,} shards, {len(problems):,} not as they came"
        + f"; {done}" * bool(problems)
    )
    found = [
        {
            "dataset": shard.dataset,
            "url": shard.url,
            "shard": shard.name,
            "path": shard.path,
            "problem": problem,
        }
        for shard, problem in problems
    ]
    about = {"root": str(root), "shards": count, "removed": arguments.remove}
    _print(arguments, {**about, "problems": found}, "\n".join(lines))
    return _UNSOUND if problems else _SOUND


def _clear(arguments: argparse.Namespace, root: Path) -> int:
    shards, size = clear(root, force=arguments.force)
    _print(
        arguments,
        {"root": str(root), "shards": shards, "bytes": size},
        f"{root}: removed {shards:,} shards, {size:,} bytes",
    )
    return _SOUND


def _print(arguments: argparse.Namespace, found: dict[str, Any], text: str) -> None:
    print(json.dumps(found) if arguments.json else text)


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "unknown"


_ACTIONS: dict[str, Callable[[argparse.Namespace, Path], int]] = {
    "ls": _list,
    "verify": _verify,
    "clear": _clear,
}
