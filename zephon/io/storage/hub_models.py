"""Files of a model on the hub, such as its tokenizer: through the library's own cache.

The cache is the one that every tool of Hugging Face shares, below HF_HOME; in offline mode it alone
is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zephon.errors import AccessError, StorageError
from zephon.io.storage.globs import matches
from zephon.io.storage.hub_client import HubClient
from zephon.io.storage.hub_login import hub_library
from zephon.io.storage.patience import PassingFault, Patience, patiently


@dataclass(frozen=True, slots=True)
class HubFiles:
    """Files of a repository at a commit, on this machine.

    commit: of all of them.
    folder: in which they lie; holds other files too.
    names: those that were asked for and are there.
    """

    commit: str
    folder: Path
    names: tuple[str, ...]


def hub_files(
    repo: str,
    patterns: Sequence[str],
    *,
    revision: str = "main",
    token: str | bool | None = None,
    patience: Patience = Patience(),  # noqa: B008 it is frozen
) -> HubFiles:
    """Have those files of a model's repository here that patterns name.

    A repository of which everything is in the cache still costs a request, for its commit, unless
    offline mode is on.

    Args:
        repo: "org/name", or "name".
        patterns: of names; see ``globs``.
        revision: a branch, a tag or a commit.
        token: see ``find_login``.
        patience: with requests that fail.

    Raises:
        DatasetNotFoundError: there is no such repository or revision.
        AccessError: the hub refuses.
        StorageError: it does not answer, or offline mode is on and the cache has none of that.
        MissingExtraError: huggingface_hub is not installed.
    """
    hub = hub_library(f"{repo!r}")
    if hub.constants.HF_HUB_OFFLINE:
        return _cached(hub, repo, patterns, revision)
    client = HubClient(repo, kind="model", token=token, patience=patience)

    def attempt() -> HubFiles:
        found = client.info(revision)
        commit = found["sha"]
        names = [each["rfilename"] for each in found.get("siblings", ())]
        wanted = sorted(each for each in names if any(matches(one, each) for one in patterns))
        folder = Path()
        for number, name in enumerate(wanted):
            # By its own name at first, so that the cache learns what that means, for offline mode.
            told = revision if number == 0 else commit
            path = _downloaded(hub, client, repo, name, told)
            folder = path.parents[name.count("/")]
            if folder.name != commit:
                # The library takes what the cache has when the hub does not answer.
                raise PassingFault(f"{revision!r} is another commit in the cache than on the hub")
        return HubFiles(commit, folder, tuple(wanted))

    return patiently(f"{repo}@{revision}", patience, attempt)


def _downloaded(hub: Any, client: HubClient, repo: str, name: str, revision: str) -> Path:
    token = client.login.token or False
    try:
        return Path(hub.hf_hub_download(repo, name, revision=revision, token=token))
    except Exception as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        what = f"{repo}@{revision}: {name}"
        if status in (401, 403):
            raise AccessError(
                f"{what}: the hub refuses ({status}; tried with {client.login.source}); look at "
                f"{client.page}, accept conditions that it may have, and log in: set HF_TOKEN, or "
                "run 'hf auth login'"
            ) from None
        if isinstance(error, PermissionError | FileExistsError) or (
            isinstance(error, OSError) and error.errno is not None
        ):
            raise StorageError(
                f"{what}: the cache below HF_HOME cannot be written: {type(error).__name__} "
                f"{error.errno}; set HF_HOME to a directory that can, with room in it"
            ) from None
        told = f"{status}" if status else type(error).__name__
        raise PassingFault(told) from None


def _cached(hub: Any, repo: str, patterns: Sequence[str], revision: str) -> HubFiles:
    try:
        folder = Path(hub.snapshot_download(repo, revision=revision, local_files_only=True))
    except Exception as error:
        raise StorageError(
            f"{repo}@{revision}: offline mode is on (HF_HUB_OFFLINE), and the cache below HF_HOME "
            f"has nothing of it ({type(error).__name__}); unset it, or fetch it where there is a "
            f"network with 'hf download {repo}'"
        ) from None
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    wanted = tuple(sorted(each for each in names if any(matches(one, each) for one in patterns)))
    if not wanted:
        raise StorageError(
            f"{repo}@{revision}: offline mode is on (HF_HUB_OFFLINE), and the cache has no file "
            f"named {' or '.join(patterns)}; unset it, or fetch it where there is a network with "
            f"'hf download {repo}'"
        )
    return HubFiles(folder.name, folder, wanted)
