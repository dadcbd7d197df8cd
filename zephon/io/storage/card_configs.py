"""The `configs` of a dataset card: which files are which split of which configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zephon.errors import DatasetError

_HEAD = re.compile(r"\A\ufeff?\s*---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_ONLY = "train"
"""The split of files that are named without one."""


@dataclass(frozen=True, slots=True)
class CardConfig:
    """A configuration.

    name: of it.
    folder: below which its files lie; empty for the root.
    splits: patterns of each split, below the folder; None where the names of the files decide.
    default: whether the card says that it is the default.
    """

    name: str
    folder: str
    splits: Mapping[str, tuple[str, ...]] | None
    default: bool


def card_configs(what: str, card: str | None) -> dict[str, CardConfig]:
    """Read the configurations of a card by their names; none if it has none.

    Args:
        what: the dataset, for messages.
        card: the text of README.md.

    Raises:
        DatasetError: the card cannot be read, or its configs are of no documented form.
    """
    found = _HEAD.match(card or "")
    if found is None:
        return {}
    # Imported late: huggingface_hub brings it, and only cards need it.
    import yaml

    try:
        head = yaml.safe_load(found[1])
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 2}" if mark else ""
        raise DatasetError(
            f"{what}: README.md must begin with YAML, and it is damaged{line}; name another "
            "revision, or the conversion with @~parquet"
        ) from None
    configs = head.get("configs") if isinstance(head, dict) else None
    if configs is None:
        return {}
    if isinstance(configs, dict):
        configs = [configs]
    if not isinstance(configs, list):
        raise _wrong(what, "configs", configs)
    made = [_config(what, each) for each in configs]
    return {each.name: each for each in made}


def _config(what: str, found: Any) -> CardConfig:
    if not isinstance(found, dict):
        raise _wrong(what, "a config", found)
    name = str(found.get("config_name", "default"))
    folder = found.get("data_dir")
    if folder is not None and not isinstance(folder, str):
        raise _wrong(what, f"data_dir of {name!r}", folder)
    files = found.get("data_files")
    splits = None if files is None else _splits(what, name, files)
    return CardConfig(name, _clean(folder or ""), splits, found.get("default") is True)


def _splits(what: str, name: str, files: Any) -> dict[str, tuple[str, ...]]:
    wrong = _wrong(what, f"data_files of {name!r}", files)
    if isinstance(files, str):
        return {_ONLY: (_clean(files),)}
    if isinstance(files, dict) and "path" in files:
        files = [files]
    if isinstance(files, dict):
        files = [{"split": split, "path": path} for split, path in files.items()]
    if not isinstance(files, list) or not files:
        raise wrong
    if all(isinstance(each, str) for each in files):
        return {_ONLY: tuple(_clean(each) for each in files)}
    splits: dict[str, tuple[str, ...]] = {}
    for each in files:
        paths = each.get("path") if isinstance(each, dict) else None
        paths = [paths] if isinstance(paths, str) else paths
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise wrong
        split = str(each.get("split", _ONLY))
        splits[split] = splits.get(split, ()) + tuple(_clean(path) for path in paths)
    return splits


def _clean(path: str) -> str:
    """Give a path below the repository in one form; one that leads out of it stays as it is."""
    if "://" in path:
        return path
    return "/".join(each for each in path.split("/") if each not in ("", "."))


def _wrong(what: str, which: str, found: Any) -> DatasetError:
    text = repr(found)
    return DatasetError(
        f"{what}: {which} in README.md must be of a form that the hub documents, got "
        f"{text[:100]}{'...' if len(text) > 100 else ''}; name another revision, or the conversion "
        "with @~parquet"
    )
