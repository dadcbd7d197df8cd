"""The uploaded files of a dataset on the hub: by the card's configs, or else by their names.

One request asks for the card, and one for each thousand files in the folders that its patterns
lead to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from zephon.errors import DatasetError
from zephon.io.storage.card_configs import CardConfig, card_configs
from zephon.io.storage.globs import folder_of, is_hidden, matches
from zephon.io.storage.hub_choice import Found, UnusableSource, choose_config, choose_split, some
from zephon.io.storage.hub_client import HubClient, NoEntryError
from zephon.io.storage.hub_grammar import HubUrl
from zephon.io.storage.place import StoredFile
from zephon.io.storage.split_names import splits_by_name

_MOST_LISTINGS = 16
"""Of folders, for one split."""

_BESIDE = (".md", ".py", ".yaml", ".yml", ".ipynb", ".sh", ".cff", ".bib", ".toml")
_BESIDE_NAMES = (
    "config.json", "dataset_dict.json", "dataset_info.json", "dataset_infos.json", "dummy_data.zip",
    "COPYING", "LICENSE", "LICENSE.txt", "NOTICE", "requirements.txt",
)  # fmt: skip
"""What lies beside data and is none, as the hub has it."""


def find_original(
    client: HubClient,
    url: HubUrl,
    commit: str,
    formats: Mapping[str, Collection[str]],
    fmt: str | None,
) -> Found:
    """Find the uploaded files of a split.

    Args:
        client: of the repository.
        url: what is asked for.
        commit: of its revision.
        formats: suffixes of each format that can be read.
        fmt: the one that is wanted; None for whichever it is.

    Raises:
        UnusableSource: they cannot be read; says why.
        DatasetError: several configs are there, and none is named.
        AccessError, StorageError: as ``HubClient.info``.
    """
    what = str(url)
    try:
        configs = card_configs(what, client.text(commit, "README.md"))
    except DatasetError as error:
        raise UnusableSource(str(error).removeprefix(f"{what}: ")) from None
    files = None
    if not configs:
        files = _files(client, commit, "")
        _refuse_script(client.repo, files)
        configs = {"default": CardConfig("default", "", None, default=True)}
    default = next((name for name, each in configs.items() if each.default), None)
    name = choose_config(what, list(configs), url.config, default, split=url.split)
    config = configs[name]
    if config.splits is None:
        found = _by_names(config, files or _files(client, commit, config.folder))
    else:
        choose_split(config.splits, name, url.split)
        found = {url.split: _by_patterns(client, commit, config, config.splits[url.split])}
    choose_split(found, name, url.split)
    kind, files = _one_format(found[url.split], formats, fmt)
    ordered = sorted(files, key=lambda file: file.name.encode("utf-8", "surrogatepass"))
    return Found(commit, name, kind, tuple(ordered))


def _by_names(config: CardConfig, files: Iterable[StoredFile]) -> dict[str, list[StoredFile]]:
    cut = len(config.folder) + 1 if config.folder else 0
    named = {
        file.name[cut:]: file
        for file in files
        if not is_hidden(file.name[cut:]) and not _beside(file.name)
    }
    splits = splits_by_name(named)
    return {split: [named[name] for name in names] for split, names in splits.items()}


def _by_patterns(
    client: HubClient, commit: str, config: CardConfig, patterns: Iterable[str]
) -> list[StoredFile]:
    listed: dict[tuple[str, bool], list[StoredFile]] = {}
    found: dict[str, StoredFile] = {}
    above = _common_folder(config, patterns)
    for pattern in patterns:
        if "://" in pattern or ".." in pattern.split("/"):
            raise UnusableSource(
                f"the card's config {config.name!r} names {pattern.partition('?')[0]!r}, which "
                "lies outside of the repository"
            )
        whole = f"{config.folder}/{pattern}".strip("/")
        folder = folder_of(whole) if above is None else above
        down = _goes_down(whole, folder)
        if (folder, down) not in listed:
            listed[folder, down] = _files(client, commit, folder, deep=down)
        named = [file for file in listed[folder, down] if matches(whole, file.name)]
        if not named:
            raise UnusableSource(
                f"the card's config {config.name!r} names {whole!r}, and there is no such file"
            )
        for file in named:
            if file.name in found:
                raise UnusableSource(
                    f"the card's config {config.name!r} names the file {file.name!r} twice"
                )
            found[file.name] = file
    return [file for file in found.values() if not _beside(file.name)]


def _common_folder(config: CardConfig, patterns: Iterable[str]) -> str | None:
    """Give the folder to list once, where patterns lead to so many that each would be a request."""
    folders = {folder_of(f"{config.folder}/{pattern}".strip("/")) for pattern in patterns}
    if len(folders) <= _MOST_LISTINGS:
        return None
    depth = 0
    parts = [folder.split("/") for folder in folders]
    while all(len(each) > depth for each in parts) and len({each[depth] for each in parts}) == 1:
        depth += 1
    return "/".join(parts[0][:depth])


def _goes_down(pattern: str, folder: str) -> bool:
    """Say whether a pattern leads into folders below the one that it is listed from."""
    below = pattern[len(folder) :].strip("/")
    return "/" in below or "**" in below


def _files(client: HubClient, commit: str, folder: str, *, deep: bool = True) -> list[StoredFile]:
    try:
        entries = client.tree(commit, folder, deep=deep)
    except NoEntryError:
        return []
    return [entry.file for entry in entries if entry.file is not None]


def _beside(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.lower().endswith(_BESIDE) or last in _BESIDE_NAMES


def _refuse_script(repo: str, files: Iterable[StoredFile]) -> None:
    script = f"{repo.rpartition('/')[2]}.py"
    if any(file.name == script for file in files):
        raise UnusableSource(
            f"it is made by a script, {script!r}, and its files alone do not say what is in it"
        )


def _one_format(
    files: list[StoredFile], formats: Mapping[str, Collection[str]], fmt: str | None
) -> tuple[str, list[StoredFile]]:
    kinds: dict[str | None, list[StoredFile]] = {}
    for file in files:
        kinds.setdefault(_kind(file.name, formats), []).append(file)
    if fmt is not None and fmt in kinds:
        return fmt, kinds[fmt]
    read = [kind for kind in kinds if kind is not None]
    if None in kinds:
        example = kinds[None][0].name
        raise UnusableSource(
            f"{len(kinds[None])} of its {len(files)} files are of no format that is read, such as "
            f"{example!r}"
        )
    if fmt is not None:
        raise UnusableSource(f"its files are {some(read)}, and fmt={fmt!r} is asked for")
    if len(read) > 1:
        raise UnusableSource(f"its files are of several formats, {some(read)}; fmt= picks one")
    return read[0], files


def _kind(name: str, formats: Mapping[str, Collection[str]]) -> str | None:
    lowered = name.lower()
    return next(
        (kind for kind, suffixes in formats.items() if lowered.endswith(tuple(suffixes))), None
    )
