"""The hub's own conversion of a dataset to Parquet: the branch `refs/convert/parquet`.

Its files lie at `config/split/0000.parquet`; a folder `partial-split` holds a part of the split
only, and `split-part0` a part of its many files. It belongs to one commit of the dataset, which
only the hub's viewer tells (header `X-Revision`), beside whether it is whole. A conversion is
pinned by its own commit, since another one may be made from the same commit of the dataset.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from urllib.parse import quote

from zephon.errors import AccessError, DatasetNotFoundError, StorageError
from zephon.io.storage.hub_choice import Found, UnusableSource, choose_config, choose_split
from zephon.io.storage.hub_client import HubClient, NoEntryError
from zephon.io.storage.hub_grammar import HubUrl
from zephon.io.storage.place import StoredFile

ALLOW_PARTIAL = "ZEPHON_HF_ALLOW_PARTIAL"

_BRANCH = "refs/convert/parquet"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FILE = re.compile(r"([^/]+)/(partial-)?([^/]+?)(-part\d+)?/[^/]+\.parquet")
_ASKED_PAGES = 4  # of the branch's commits: it is rewritten, and has few


def is_conversion(client: HubClient, revision: str) -> bool:
    """Say whether a revision is a conversion's own commit, as in a pinned url."""
    if not _COMMIT.fullmatch(revision):
        return False
    try:
        return revision in client.commits(_BRANCH, _ASKED_PAGES)
    except NoEntryError:
        return False


def find_conversion(client: HubClient, url: HubUrl, commit: str, *, pinned: bool) -> Found:
    """Find the converted files of a split.

    Args:
        client: of the repository.
        url: what is asked for.
        commit: of its revision.
        pinned: that is the conversion's own.

    Raises:
        UnusableSource: they must not be read, or are not there; says why.
        DatasetError: several configs are there, and none is named.
        AccessError, StorageError: as ``HubClient.info``.
    """
    own = commit if pinned else _head(client)
    files = _files(client, own, url.config)
    configs = sorted({config for config, *_ in files})
    if not configs and url.config is not None:
        configs = sorted({config for config, *_ in _files(client, own, None)})
    if not configs:
        raise UnusableSource(f"its branch {_BRANCH!r} has no files config/split/0000.parquet")
    config = choose_config(str(url), configs, url.config, None, split=url.split)
    splits: dict[str, list[tuple[bool, StoredFile]]] = {}
    for each, split, partial, file in files:
        if each == config:
            splits.setdefault(split, []).append((partial, file))
    choose_split(splits, config, url.split)
    found = splits[url.split]
    allowed = os.environ.get(ALLOW_PARTIAL, "").strip().lower() in ("1", "true", "yes", "on")
    if any(partial for partial, _ in found) and not allowed:
        raise UnusableSource(
            f"it holds only a part of the split {url.split!r}; to read that part set "
            f"{ALLOW_PARTIAL}=1"
        )
    if not pinned and not allowed:
        _refuse_other(client, config, commit)
    ordered = sorted((file for _, file in found), key=lambda file: file.name.encode())
    return Found(own, config, "parquet", tuple(ordered))


def _head(client: HubClient) -> str:
    try:
        return client.info(_BRANCH)["sha"]
    except DatasetNotFoundError:
        raise UnusableSource("the hub has made no conversion of this dataset") from None


def _files(
    client: HubClient, commit: str, config: str | None
) -> list[tuple[str, str, bool, StoredFile]]:
    """List files with their config, their split, and whether they are a part of it."""
    try:
        entries = client.tree(commit, config or "")
    except NoEntryError:
        return []
    found = []
    for entry in entries:
        named = _FILE.fullmatch(entry.name)
        if named is not None and entry.file is not None:
            found.append((named[1], named[3], named[2] is not None, entry.file))
    return found


def _refuse_other(client: HubClient, config: str, commit: str) -> None:
    """Refuse a conversion that was made from another commit, or from one that nobody tells."""
    instead = f"name that commit, or to read it anyway set {ALLOW_PARTIAL}=1"
    # The viewer has an address of its own, beside the hub's.
    viewer = client.endpoint.replace("://", "://datasets-server.", 1)
    asked = (
        f"{viewer}/parquet?dataset={quote(client.repo, safe='')}&config={quote(config, safe='')}"
    )
    short = replace(client.patience, attempts=min(3, client.patience.attempts))
    try:
        found, answer = client.at(viewer, short).json(asked, f"{client.told}: the hub's viewer")
    except (NoEntryError, DatasetNotFoundError, AccessError, StorageError):
        raise UnusableSource(
            f"nobody tells from which commit it was made: the hub's viewer at {viewer} does not "
            f"answer; name the uploaded files with ~original, or to read it anyway set "
            f"{ALLOW_PARTIAL}=1"
        ) from None
    told = answer.headers.get("x-revision", "")
    if not _COMMIT.fullmatch(told):
        raise UnusableSource(
            f"the hub's viewer does not tell from which commit it was made; to read it anyway set "
            f"{ALLOW_PARTIAL}=1"
        )
    if told != commit:
        raise UnusableSource(f"it was made from commit {told}, and not from {commit}; {instead}")
    if isinstance(found, dict) and (found.get("pending") or found.get("failed")):
        raise UnusableSource(
            f"the hub is not done with it: {len(found.get('pending') or ())} parts are pending and "
            f"{len(found.get('failed') or ())} failed; come back later, or to read it anyway set "
            f"{ALLOW_PARTIAL}=1"
        )
