"""A server of this machine that speaks as the Hugging Face hub does, for datasets and models.

The real huggingface_hub lists and downloads from it. Large files come by a redirect to another
origin with a signature, which refuses tokens; the viewer, which knows of conversions, answers at a
name of its own. Faults are played on demand, and every request is kept.
"""

import hashlib
import json
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub_repository import Repository


@dataclass
class Fault:
    """What to do with requests whose method and path hold ``part``; as many as ``times``.

    status: to answer with; 0 drops the connection.
    cut: bytes of the body after which the connection ends.
    wait: seconds before anything is sent.
    flip: sends the body with its first byte changed.
    """

    part: str
    status: int | None = None
    headers: dict = field(default_factory=dict)
    cut: int | None = None
    wait: float = 0.0
    flip: bool = False
    times: int = 1


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    status: int
    range: str | None
    user: str | None
    authorization: str | None


class Refusal(Exception):
    def __init__(self, status, message, code=None, headers=None):
        self.status, self.message, self.code, self.headers = status, message, code, headers or {}


class HubServer:
    """Serves repositories; `tokens` are those it knows, each with the repositories it may read."""

    def __init__(self, tokens=None, page=1000):
        self.tokens, self.page = tokens or {}, page
        self.datasets, self.models, self.faults, self.log = {}, {}, [], []
        self.made_from = {}  # what the viewer says a dataset's conversion was made from
        self.pending = set()  # datasets whose conversion is not done
        self._lock = threading.Lock()
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.other_origin = f"http://localhost:{self.port}"

    def dataset(self, name, **facts):
        return self.datasets.setdefault(name, Repository(name, **facts))

    def model(self, name, **facts):
        return self.models.setdefault(name, Repository(name, **facts))

    def fail(self, part, **what):
        self.faults.append(Fault(part, **what))

    def paths(self, part=""):
        """Give the paths that were asked for, in order."""
        return [each.path for each in self.log if part in each.path]

    def fault_for(self, line):
        with self._lock:
            for fault in self.faults:
                if fault.times and fault.part in line:
                    fault.times -= 1
                    return fault
        return None

    def signature(self, oid):
        return hashlib.sha256(f"{self.port}{oid}".encode()).hexdigest()[:16]

    def __enter__(self):
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that went away, as tests of faults let them


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: HubServer

    def log_message(self, *_):
        pass

    def do_GET(self):
        hub, line = self.server_hub, f"{self.command} {self.path}"
        self.user, self.fault = None, hub.fault_for(line)
        try:
            if self.fault is not None:
                time.sleep(self.fault.wait)
                if self.fault.status == 0:
                    self._keep(0)
                    self.close_connection = True
                    self.connection.shutdown(2)
                    return
                if self.fault.status:
                    raise Refusal(self.fault.status, "a fault", headers=self.fault.headers)
            self._route()
        except Refusal as refusal:
            code = {"X-Error-Code": refusal.code} if refusal.code else {}
            told = {"X-Error-Message": refusal.message, **code, **refusal.headers}
            self._send(refusal.status, json.dumps({"error": refusal.message}).encode(), told)
        except ConnectionError:
            pass

    do_HEAD = do_GET

    def _send(self, status, body, headers=None, kind="application/json; charset=utf-8"):
        fault = self.fault
        self._keep(status)
        told = {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}
        self.send_response(status)
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD" or status in (204, 304):
            return
        if fault is not None and fault.flip and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        self.wfile.write(body if fault is None or fault.cut is None else body[: fault.cut])
        if fault is not None and fault.cut is not None:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)

    def _keep(self, status):
        asked = self.headers.get("Range"), self.user, self.headers.get("Authorization")
        if self.path != "/api/agent-harnesses":  # the library asks that once a process
            self.server_hub.log.append(Request(self.command, self.path, status, *asked))

    def _json(self, found, headers=None):
        self._send(200, json.dumps(found).encode(), headers)

    def _route(self):
        url = urlsplit(self.path)
        raw, query = [part for part in url.path.split("/") if part], parse_qs(url.query)
        if raw[:1] == ["_cdn"]:
            self._signed(raw, query)
        elif raw[:1] == ["parquet"]:
            self._viewer(query["dataset"][0])
        elif raw[:2] in (["api", "datasets"], ["api", "models"]):
            kept = self.server_hub.datasets if raw[1] == "datasets" else self.server_hub.models
            ending = next((at for at, part in enumerate(raw) if part in _VERBS), len(raw))
            repository = self._repository(kept, unquote("/".join(raw[2:ending])))
            verb, rest = raw[ending] if ending < len(raw) else "revision", raw[ending + 1 :]
            revision, path = _revision(rest or ["main"])
            answer = getattr(self, f"_{verb}")
            answer(repository, self._commit(repository, revision), path, query)
        elif "resolve" in raw:
            at = raw.index("resolve")
            of_dataset = raw[0] == "datasets"
            kept = self.server_hub.datasets if of_dataset else self.server_hub.models
            name = unquote("/".join(raw[1 if of_dataset else 0 : at]))
            repository = self._repository(kept, name, content=True)
            self._resolve(repository, *_revision(raw[at + 1 :]))
        else:
            raise Refusal(404, "no such page")

    def _repository(self, kept, name, content=False):
        sent = self.headers.get("Authorization")
        known = None
        if sent:
            known = self.server_hub.tokens.get(sent.removeprefix("Bearer "))
            if known is None:
                raise Refusal(401, "Invalid credentials in Authorization header")
            self.user = known["name"]
        repository = kept.get(name)
        may = known is not None and name in known.get("access", ())
        if repository is None or (repository.private and not may):
            if known is None:
                raise Refusal(401, "Invalid username or password.", "RepoNotFound")
            raise Refusal(404, "Repository not found", "RepoNotFound")
        if repository.disabled:
            raise Refusal(403, "Access to this resource is disabled.")
        if content and repository.gated and not may:
            raise Refusal(403 if known else 401, f"Access to {name} is restricted.", "GatedRepo")
        return repository

    def _commit(self, repository, revision):
        commit = repository.resolve(revision)
        if commit is None:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def _revision(self, repository, commit, path, query):
        siblings = [{"rfilename": name} for name in sorted(commit.files)]
        told = {
            "id": repository.id,
            "sha": commit.sha,
            "siblings": siblings,
            "gated": repository.gated,
        }
        wanted = {"id", *query["expand"]} if "expand" in query else set(told)
        self._json({name: value for name, value in told.items() if name in wanted})

    def _tree(self, repository, commit, path, query):
        above = f"{path}/" if path else ""
        below = [name for name in commit.files if name.startswith(above)]
        if not below:
            raise Refusal(404, f"{path} does not exist", "EntryNotFound")
        deep = query.get("recursive", ["false"])[0].lower() == "true"
        names = set()
        for name in below:
            parts = name[len(above) :].split("/")
            depths = range(1, len(parts) + 1) if deep else (1,)
            names.update(above + "/".join(parts[:depth]) for depth in depths)
        ordered, start = sorted(names), int(query.get("cursor", ["0"])[0])
        page = ordered[start : start + self.server_hub.page]
        link = {}
        if start + len(page) < len(ordered):
            address = (
                f"{self.server_hub.url}{urlsplit(self.path).path}?recursive={str(deep).lower()}"
            )
            link["Link"] = f'<{address}&cursor={start + len(page)}>; rel="next"'
        folder = {"type": "directory", "oid": "0" * 40, "size": 0}
        self._json(
            [
                commit.files[name].entry(name) if name in commit.files else {**folder, "path": name}
                for name in page
            ],
            link,
        )

    def _commits(self, repository, commit, path, query):
        found = []
        while commit:
            found.append({"id": commit.sha, "title": "commit", "date": commit.date})
            commit = commit.parent
        self._json(found)

    def _viewer(self, name):
        self._repository(self.server_hub.datasets, name)
        made_from = self.server_hub.made_from.get(name)
        if made_from is None:
            raise Refusal(500, "The dataset viewer has no response for this dataset")
        pending = [{"dataset": name}] if name in self.server_hub.pending else []
        self._json({"pending": pending, "failed": []}, {"X-Revision": made_from})

    def _resolve(self, repository, revision, path):
        commit = self._commit(repository, revision)
        blob, told = commit.files.get(path), {"X-Repo-Commit": commit.sha}
        if blob is None:
            raise Refusal(404, "Entry not found", "EntryNotFound", told)
        if not blob.large:
            self._file(blob, told)
            return
        signature = self.server_hub.signature(blob.sha256)
        place = f"{self.server_hub.other_origin}/_cdn/{blob.sha256}?X-Signature={signature}"
        linked = {"X-Linked-Size": str(blob.size), "X-Linked-Etag": f'"{blob.sha256}"'}
        self._send(302, b"", {**told, **linked, "Location": place, "ETag": f'"{blob.sha256}"'})

    def _signed(self, raw, query):
        if self.headers.get("Authorization"):
            raise Refusal(400, "Only one auth mechanism allowed")
        if query.get("X-Signature", [""])[0] != self.server_hub.signature(raw[1]):
            raise Refusal(403, "Access denied")
        kept = [*self.server_hub.datasets.values(), *self.server_hub.models.values()]
        commits = (commit for repository in kept for commit in repository.commits.values())
        blobs = (blob for commit in commits for blob in commit.files.values())
        self._file(next(blob for blob in blobs if blob.sha256 == raw[1]), {})

    def _file(self, blob, told):
        told = {**told, "ETag": f'"{blob.etag}"', "Accept-Ranges": "bytes"}
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not found:
            self._send(200, blob.content, told, "application/octet-stream")
            return
        start, stop = int(found[1]), min(int(found[2] or blob.size) + 1, blob.size)
        if start >= stop:
            raise Refusal(416, "no such range", headers={"Content-Range": f"bytes */{blob.size}"})
        told["Content-Range"] = f"bytes {start}-{stop - 1}/{blob.size}"
        self._send(206, blob.content[start:stop], told, "application/octet-stream")


_VERBS = ("revision", "tree", "commits")


def _revision(parts):
    """Take apart revision and path; a slash of a revision is encoded."""
    return unquote(parts[0]), "/".join(unquote(part) for part in parts[1:])
