"""Azure's blob store on this machine, by the emulator that its makers publish on npm."""

import base64
import hashlib
import hmac
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

from tests.free_port import free_port

VERSION = "3.35.0"  # the last that runs on Node 20
ACCOUNT = "devstoreaccount1"
KEY = base64.b64encode(hashlib.sha512(b"a key of this test alone").digest()).decode()
FOLDER = Path(__file__).parents[2] / "test-data" / f"azurite-{VERSION}"


def installed():
    """Give the program, from npm if it is not there yet."""
    program = FOLDER / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("azurite comes from npm, which is not on PATH")
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--silent", "--prefix", str(FOLDER), f"azurite@{VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return program


@contextmanager
def azurite(container):
    """Serve an empty container; give the endpoint of its account."""
    port = free_port()
    command = [
        str(installed()), "--silent", "--inMemoryPersistence", "--disableTelemetry",
        "--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", str(port),
    ]  # fmt: skip
    server = subprocess.Popen(command, env={"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}", **_path()})
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    try:
        _wait_for(server, endpoint)
        _make(endpoint, container)
        yield endpoint
    finally:
        server.terminate()
        server.wait()


def _path():
    node = shutil.which("node")
    return {"PATH": str(Path(node).parent) if node else ""}


def _wait_for(server, endpoint):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(endpoint)
        except urllib.error.HTTPError:
            return
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.1)
    raise RuntimeError(f"azurite did not start (exit code {server.poll()})")


def _make(endpoint, container):
    """Make a container, which no reader of blobs can: a request signed with the account's key."""
    date, version = formatdate(usegmt=True), "2021-08-06"
    signed = (
        f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:{version}\n"
        f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
    )
    digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
    }
    url = f"{endpoint}/{container}?restype=container"
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)):
        pass
