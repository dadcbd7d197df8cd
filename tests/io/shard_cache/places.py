"""Places for tests of the cache: files of a directory, given with faults, or over HTTP."""

import hashlib
import http.client
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from zephon.errors import AccessError, ShardError, StorageError
from zephon.io.shard_cache import CacheSettings, ShardCache
from zephon.io.storage.place import Listed, Place, StoredFile


class FolderPlace(Place):
    """Gives the files of a directory. It reads them, and never writes.

    faults: what goes wrong in the next fetches, one by one, as names of methods.
    """

    def __init__(self, folder, *, tell_time=True):
        self.folder = Path(folder)
        self.tell_time = tell_time
        self.faults = []
        self.fetched = []
        self.gate = threading.Event()
        self.gate.set()

    @property
    def url(self):
        return f"test://{self.folder}@1"

    def files(self):
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        found = [self.file(path.relative_to(self.folder).as_posix()) for path in paths]
        return sorted(found, key=lambda file: file.name.encode())

    def listed(self, folder="", *, deep=False):
        return Listed(tuple(self.files()))

    def file(self, name):
        path = self.folder / name
        status = path.stat()
        version = hashlib.md5(path.read_bytes()).hexdigest()
        return StoredFile(name, status.st_size, version, status.st_mtime_ns * self.tell_time)

    def read(self, file, ranges):
        content = (self.folder / file.name).read_bytes()
        return [content[start:stop] for start, stop in ranges]

    def fetch(self, file, target, told=None):
        self.fetched.append(file.name)
        fault = self.faults.pop(0) if self.faults else None
        assert self.gate.wait(60)
        content = (self.folder / file.name).read_bytes()
        if fault is not None:
            content = getattr(self, fault)(file, target, content, told)
        for at in range(0, len(content), 1 << 18):
            piece = content[at : at + (1 << 18)]
            target.write(piece)
            if told is not None:
                told(len(piece))

    def reset(self, file, target, content, told):
        target.write(content[: len(content) // 2])
        raise StorageError(f"{file.name}: the connection was reset")

    def plain_reset(self, file, target, content, told):
        raise ConnectionResetError("the connection was reset")

    def short(self, file, target, content, told):
        return content[:-1]

    def long(self, file, target, content, told):
        return content + b"!"

    def begun_again(self, file, target, content, told):
        target.write(b"?" * (len(content) + 100))
        told(len(content) + 100)
        told(-len(content) - 100)
        target.seek(0)
        target.truncate()
        return content

    def other(self, file, target, content, told):
        return bytes(len(content))

    def gone(self, file, target, content, told):
        raise ShardError(f"{file.name}: it is of another version now")

    def denied(self, file, target, content, told):
        raise AccessError(f"{file.name}: log in first")

    def silent(self, file, target, content, told):
        time.sleep(30)
        return content


def make_files(folder, sizes):
    """Write files of some sizes; their bytes differ."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, size in enumerate(sizes):
        block = hashlib.sha256(str(number).encode()).digest()
        (folder / f"{number:03}.bin").write_bytes((block * (size // 32 + 1))[:size])
    return folder


def digests(folder):
    """Give what lies in a directory: names, bytes, times and modes."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None,
            path.stat().st_mtime_ns,
            path.stat().st_mode,
        )
        for path in sorted(folder.rglob("*"))
    }


def settings(root, **given):
    fast = {"open_backoff_s": 0.001, "min_slack_bytes": 0, "max_slack_bytes": 0}
    return CacheSettings(root, **{**fast, **given})


@contextmanager
def opened(root, **given):
    cache = ShardCache.opened(settings(root, **given))
    try:
        yield cache
    finally:
        cache.close()


def lying(root):
    """Give the shards that lie in a cache, and everything else but what is told of them."""
    names = [path.name for path in root.rglob("*") if path.is_file()]
    shards = sorted(name[33:] for name in names if name[32:33] == "-")
    known = (".told", ".user", ".zephon-cache", ".dataset")
    others = [name for name in names if name[32:33] != "-" and not name.endswith(known)]
    return shards, others


class _Handler(BaseHTTPRequestHandler):
    """Serves a directory, now and then with a fault."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        with server.lock:
            server.requests.append(self.path)
            fault = server.faults.pop(0) if server.faults else None
        content = (server.folder / self.path.lstrip("/")).read_bytes()
        if fault == "unavailable":
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "cut":
            self.wfile.write(content[: len(content) // 3])
            self.close_connection = True
            return
        for at in range(0, len(content), 1 << 16):
            self.wfile.write(content[at : at + (1 << 16)])
            time.sleep(server.pause)

    def log_message(self, *words):
        pass


class ServedPlace(FolderPlace):
    """Gives the files of a directory over HTTP, once a call: what fails is for the cache."""

    def __init__(self, folder, port):
        super().__init__(folder)
        self.port = port

    def fetch(self, file, target, told=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", f"/{file.name}")
            answer = connection.getresponse()
            if answer.status != 200:
                raise StorageError(f"{file.name}: the server answered {answer.status}")
            while piece := answer.read(1 << 16):
                target.write(piece)
                if told is not None:
                    told(len(piece))
        except (OSError, http.client.HTTPException) as exc:
            raise StorageError(f"{file.name}: {type(exc).__name__}") from exc
        finally:
            connection.close()


@contextmanager
def served(folder, *, faults=(), pause=0.0):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.folder, server.faults, server.pause = folder, list(faults), pause
    server.requests, server.lock = [], threading.Lock()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def source(tmp_path):
    """Eight files of 100,000 bytes and more; they are the same after the test."""
    folder = make_files(tmp_path / "source", [100_000 + number for number in range(8)])
    before = digests(folder)
    yield FolderPlace(folder)
    assert digests(folder) == before


def in_thread(work):
    """Begin a thread; give what waits for it and gives what it returned or raised."""
    found = []

    def run():
        try:
            found.append((work(), None))
        except BaseException as exc:
            found.append((None, exc))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def end():
        thread.join(60)
        assert found, "the thread hangs"
        result, error = found[0]
        if error is not None:
            raise error
        return result

    return end
