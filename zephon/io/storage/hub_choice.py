"""Why a source of a dataset on the hub cannot be read, and which config and split is meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zephon.errors import DatasetError, nearest
from zephon.io.storage.place import StoredFile


@dataclass(frozen=True, slots=True)
class Found:
    """A split as one source has it.

    commit: of the files.
    config: its name.
    kind: the format of the files.
    files: in bytewise order of their names.
    """

    commit: str
    config: str
    kind: str
    files: tuple[StoredFile, ...]


class UnusableSource(Exception):
    """One source cannot be read; its text says why."""


class MissingPart(UnusableSource):
    """A source can be read, and has no such configuration or split; its text lists what it has."""


def choose_config(
    what: str, configs: Sequence[str], asked: str | None, default: str | None, *, split: str
) -> str:
    """Say which configuration is meant.

    Args:
        what: the dataset, for messages.
        configs: those that are there, at least one.
        asked: the one in the url.
        default: the one that the dataset names as its default.
        split: in the url, for messages.

    Raises:
        MissingPart: there is none of that name.
        DatasetError: there are several, none is named, and none is the default.
    """
    if asked is not None:
        if asked not in configs:
            hint = nearest(asked, configs) if len(configs) > 20 else ""
            raise MissingPart(
                f"there is no config {asked!r}; the configs are {some(configs)}"
                + (f"; {hint}" if hint.startswith("did") else "")
            )
        return asked
    if default is not None:
        return default
    if len(configs) == 1:
        return configs[0]
    if "default" in configs:
        return "default"
    raise DatasetError(
        f"{what}: it has several configs and none is the default: {some(configs)}; name one before "
        f"the split, such as {configs[0] + '/' + split!r}"
    )


def choose_split(splits: Mapping[str, object], config: str, asked: str) -> None:
    """Refuse a split that is not there.

    Raises:
        MissingPart: lists those that are.
    """
    if asked not in splits:
        raise MissingPart(
            f"there is no split {asked!r} in config {config!r}; its splits are {some(splits)}"
        )


def some(names: Iterable[str]) -> str:
    """List names, and of very many the first."""
    listed = sorted(names)
    if not listed:
        return "none"
    more = f" and {len(listed) - 100} more" if len(listed) > 100 else ""
    return ", ".join(repr(each) for each in listed[:100]) + more
