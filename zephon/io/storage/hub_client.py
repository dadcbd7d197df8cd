"""What is asked of the hub: commits, listings, small files; and what its refusals mean."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from zephon.errors import AccessError, DatasetNotFoundError, StorageError
from zephon.io.storage.hub_grammar import quoted
from zephon.io.storage.hub_login import Login, find_login, hub_library
from zephon.io.storage.hub_requests import Answer, send
from zephon.io.storage.patience import PassingFault, Patience, patiently
from zephon.io.storage.place import StoredFile

T = TypeVar("T")

_NEXT = re.compile(r'<([^>]+)>;\s*rel="?next"?')
_KINDS = {"dataset": "datasets/", "model": ""}
_LARGEST_TEXT = 64 << 20


class NoEntryError(Exception):
    """A repository has no such revision, file or folder; ``part`` says which of them."""

    def __init__(self, part: str) -> None:
        self.part = part
        super().__init__(part)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder of a repository at a commit; a file has a version."""

    name: str
    file: StoredFile | None


class HubClient:
    """Asks one hub about one repository, as one user."""

    def __init__(
        self, repo: str, *, kind: str = "dataset", token: str | bool | None, patience: Patience
    ) -> None:
        """Name a repository; makes no request.

        Args:
            repo: "org/name", or for a model also "name".
            kind: "dataset" or "model".
            token: see ``find_login``.
            patience: with requests that fail.

        Raises:
            MissingExtraError: huggingface_hub is not installed.
            StorageError: offline mode is on.
        """
        self.told = f"hf://{repo}" if kind == "dataset" else repo
        hub = hub_library(repr(self.told))
        self.repo, self.kind, self.patience = repo, kind, patience
        self.endpoint: str = hub.constants.ENDPOINT.rstrip("/")
        if hub.constants.HF_HUB_OFFLINE:
            raise StorageError(
                f"{self.told}: offline mode is on (HF_HUB_OFFLINE), and the hub cannot be asked; "
                f"unset it, or where there is a network run 'hf download {repo} --repo-type {kind} "
                "--local-dir DIRECTORY' and pass the folder in it that holds the files"
            )
        self.login: Login = find_login(token, repr(self.told))

    def __repr__(self) -> str:
        return f"HubClient({self.told!r})"

    def at(self, endpoint: str, patience: Patience) -> HubClient:
        """Give the same client for another address of the same hub, with other patience."""
        other = copy.copy(self)
        other.endpoint, other.patience = endpoint, patience
        return other

    def info(self, revision: str) -> dict[str, Any]:
        """Tell what a revision is; "sha" is its commit.

        Raises:
            DatasetNotFoundError: there is no such repository or revision.
            AccessError: the hub refuses.
            StorageError: it does not answer.
        """
        what = f"{self.told}@{revision}"
        path = f"/api/{self.kind}s/{self.repo}/revision/{quoted(revision)}"
        expand = "?expand=sha" if self.kind == "dataset" else ""
        try:
            found = self.json(f"{self.endpoint}{path}{expand}", what)[0]
        except NoEntryError:
            raise DatasetNotFoundError(
                f"{what}: there is no such revision; name a branch, a tag or a commit of "
                f"{self.page}, in double quotes if it has slashes"
            ) from None
        if not isinstance(found.get("sha"), str):
            raise StorageError(f"{what}: the hub tells no commit; is {self.endpoint} a hub?")
        return found

    @property
    def page(self) -> str:
        """Where people look at the repository."""
        return f"{self.endpoint}/{_KINDS[self.kind]}{self.repo}"

    def tree(self, commit: str, folder: str = "", *, deep: bool = True) -> list[Entry]:
        """List a folder, a request for each thousand of entries.

        Raises:
            NoEntryError: there is no such folder or commit.
            AccessError, StorageError: as ``info``.
        """
        path = f"/{quote(folder, safe='')}" if folder else ""
        url = f"{self.endpoint}/api/{self.kind}s/{self.repo}/tree/{quoted(commit)}{path}"
        found: list[Entry] = []
        for page in self._pages(f"{url}?recursive={str(deep).lower()}", f"{self.told}@{commit}"):
            found += [_entry(each) for each in page]
        return found

    def commits(self, revision: str, most: int) -> Iterator[str]:
        """Give the commits of a branch, newest first, of the first ``most`` pages.

        Raises:
            NoEntryError: there is no such branch.
        """
        url = f"{self.endpoint}/api/{self.kind}s/{self.repo}/commits/{quoted(revision)}"
        for number, page in enumerate(self._pages(url, f"{self.told}@{revision}")):
            yield from (each["id"] for each in page)
            if number + 1 == most:
                return

    def text(self, commit: str, name: str) -> str | None:
        """Read a small text file; None if there is none."""
        what = f"{self.told}@{commit}: {name}"

        def ask() -> str | None:
            answer = self.ask(self.file_url(commit, name), what)
            content = bytearray()
            for chunk in answer.chunks():
                content += chunk
                if len(content) > _LARGEST_TEXT:
                    answer.close()
                    raise StorageError(
                        f"{what} must be at most {_LARGEST_TEXT} bytes, and is larger"
                    )
            told = answer.headers.get("content-length")
            if told is not None and int(told) != len(content):
                raise PassingFault(f"{len(content)} bytes of {told}")
            return content.decode("utf-8", "replace")

        try:
            return patiently(what, self.patience, ask)
        except NoEntryError:
            return None

    def file_url(self, commit: str, name: str) -> str:
        """Say where a file is got."""
        return (
            f"{self.endpoint}/{_KINDS[self.kind]}{self.repo}/resolve/{quoted(commit)}/{quote(name)}"
        )

    def json(self, url: str, what: str) -> tuple[Any, Answer]:
        """Ask for a JSON document, patiently."""

        def ask() -> tuple[Any, Answer]:
            answer = self.ask(url, what)
            try:
                return json.loads(answer.body()), answer
            except ValueError:
                raise PassingFault(f"{answer.status} with a body that is no JSON") from None

        return patiently(what, self.patience, ask)

    def ask(self, url: str, what: str, headers: dict[str, str] | None = None) -> Answer:
        """Make one request; see ``send``.

        Raises:
            NoEntryError: there is no such revision, file or folder.
            DatasetNotFoundError: there is no such repository, as far as this user may know.
            AccessError: the hub refuses.
            PassingFault: it is worth another try.
        """
        answer = send(
            url, self.login, home=self.endpoint, stall=self.patience.stall, headers=headers
        )
        if answer.status < 400:
            return answer
        answer.close()
        raise self._refusal(answer, what)

    def _pages(self, url: str, what: str) -> Iterator[list[Any]]:
        while url:
            page, answer = self.json(url, what)
            if not isinstance(page, list):
                raise StorageError(f"{what}: the hub's listing is no list; is it a hub?")
            yield page
            found = _NEXT.search(answer.headers.get("link", ""))
            url = found[1] if found else ""

    def _refusal(self, answer: Answer, what: str) -> Exception:
        status, code = answer.status, answer.headers.get("x-error-code", "")
        tried = f"{status}; tried with {self.login.source}"
        if code == "GatedRepo":
            return AccessError(
                f"{what}: the {self.kind} is gated ({tried}); accept its conditions at "
                f"{self.page}, and log in as that user: set HF_TOKEN, or run 'hf auth login'"
            )
        if status == 404 and code in ("EntryNotFound", "RevisionNotFound"):
            return NoEntryError("revision" if code == "RevisionNotFound" else "file")
        if status == 404 and not code and "/resolve/" in answer.url:
            return NoEntryError("file")
        if status == 404:
            may = " that this user may see" if self.login.token else ""
            return DatasetNotFoundError(
                f"{what}: there is no such {self.kind}{may} ({tried}); look at the name, and if it "
                "is private at who may read it"
            )
        if status == 401 and (code == "RepoNotFound" or self.login.token is None):
            return AccessError(
                f"{what}: there is no such {self.kind}, or it is private and needs a token of who "
                f"may read it ({tried}); set HF_TOKEN, or run 'hf auth login'"
            )
        if status == 401:
            return AccessError(
                f"{what}: the hub does not accept the token ({tried}); it is wrong or has ended: "
                "make one at https://huggingface.co/settings/tokens, and set HF_TOKEN"
            )
        if status == 403:
            disabled = "disabled" in answer.headers.get("x-error-message", "").lower()
            why = "is disabled" if disabled else "may not be read with that token"
            return AccessError(
                f"{what}: the {self.kind} {why} ({tried}); look at {self.page}, and at the rights "
                "of the token"
            )
        return StorageError(
            f"{what}: the hub answers {status}, which is not understood; look at {self.page}"
        )


def _entry(found: dict[str, Any]) -> Entry:
    name = found["path"]
    if found["type"] != "file":
        return Entry(name, None)
    lfs = found.get("lfs")
    version = lfs["oid"] if lfs else found["oid"]
    size = lfs["size"] if lfs else found["size"]
    return Entry(name, StoredFile(name, size, version.removeprefix("sha256:")))
