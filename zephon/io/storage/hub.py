"""A split of a dataset on the Hugging Face hub: found once, and pinned to a commit from then on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from zephon.errors import DatasetError, DatasetNotFoundError
from zephon.io.storage.hub_choice import Found, MissingPart, UnusableSource
from zephon.io.storage.hub_client import HubClient
from zephon.io.storage.hub_conversion import find_conversion, is_conversion
from zephon.io.storage.hub_grammar import HubUrl, parse_hub_url
from zephon.io.storage.hub_original import find_original
from zephon.io.storage.hub_place import HubPlace
from zephon.io.storage.patience import Patience

_CONVERTED = "parquet"


def find_on_hub(
    url: str,
    formats: Mapping[str, Collection[str]],
    *,
    fmt: str | None = None,
    token: str | bool | None = None,
    patience: Patience = Patience(),  # noqa: B008 it is frozen
) -> HubPlace:
    """Find what a url means now; the place that comes back always means that.

    The uploaded files are preferred if they are of one format that is read; else the conversion is
    taken, if it is whole and of that commit.

    Args:
        url: see ``hub_grammar``.
        formats: suffixes of each format that can be read.
        fmt: the one that is wanted; None for any.
        token: see ``find_login``.
        patience: with requests that fail.

    Raises:
        DatasetError: the url is none, a config has to be named, or neither source can be read.
        DatasetNotFoundError: there is no such repository, revision, config or split.
        AccessError: the hub refuses.
        StorageError: it does not answer, or offline mode is on.
        MissingExtraError: huggingface_hub is not installed.
    """
    asked = parse_hub_url(url)
    client = HubClient(asked.repo, token=token, patience=patience)
    commit = client.info(asked.revision)["sha"]
    tries: list[tuple[str, Callable[[], Found]]] = []
    if asked.source != "parquet":
        tries.append(("original", lambda: find_original(client, asked, commit, formats, fmt)))
    if asked.source != "original" and (fmt in (None, _CONVERTED) or asked.source is not None):
        tries.append(("parquet", lambda: _converted(client, asked, commit)))
    reasons: list[tuple[str, UnusableSource]] = []
    for source, attempt in tries:
        try:
            found = attempt()
        except UnusableSource as reason:
            reasons.append((source, reason))
            continue
        if fmt is not None and found.kind != fmt:
            reasons.append((source, UnusableSource(f"it is {found.kind}, and not {fmt}")))
            continue
        pinned = asked.pinned(found.commit, source, found.config)
        return HubPlace(pinned, found.kind, found.files, token=token, patience=patience)
    if asked.source is None and len(tries) == 1:
        reasons.append(("parquet", UnusableSource(f"it is parquet, and not {fmt}")))
    told = "; ".join(f"~{source}: {reason}" for source, reason in reasons)
    missing = [each for each in reasons if isinstance(each[1], MissingPart)]
    if missing and missing[0] == reasons[0]:
        raise DatasetNotFoundError(f"{url}: {told}; name one that is there")
    raise DatasetError(
        f"{url}: neither the uploaded files nor the conversion can be read: {told}"
        if asked.source is None
        else f"{url}: the source that is asked for cannot be read: {told}"
    )


def _converted(client: HubClient, asked: HubUrl, commit: str) -> Found:
    pinned = asked.source == "parquet" and is_conversion(client, asked.revision)
    return find_conversion(client, asked, commit, pinned=pinned)
