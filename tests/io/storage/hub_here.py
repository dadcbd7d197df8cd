"""A hub on this machine for the real client, with a home, a cache and tokens of its own."""

import socket
from contextlib import contextmanager

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import logging

from tests.hub_server import HubServer
from zephon.io.storage.hub import find_on_hub
from zephon.io.storage.patience import Patience

QUICK = Patience(attempts=3, seconds=60.0, stall=10.0, first_wait=0.02, longest_wait=0.1)
FORMATS = {"jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"), "parquet": (".parquet",)}
ALICE, BOB, WRONG = "hf_alicePlantedToken", "hf_bobPlantedToken", "hf_wrongPlantedToken"
TOKENS = {
    ALICE: {"name": "alice", "access": {"acme/gated", "acme/private", "acme/gated-model"}},
    BOB: {"name": "bob", "access": set()},
}


@contextmanager
def hub_here(home):
    """Serve an empty hub, and let the library of this process know no other."""
    patch = pytest.MonkeyPatch()
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE", "HF_HUB_OFFLINE"):
        patch.delenv(name, raising=False)
    resolve = socket.getaddrinfo

    def here(host, *rest, **more):
        # The viewer has a name that only the hub's own domain has.
        known = "127.0.0.1" if str(host).startswith("datasets-server.") else host
        return resolve(known, *rest, **more)

    with HubServer(tokens=TOKENS) as hub:
        template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        patch.setattr(constants, "ENDPOINT", hub.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
        patch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
        patch.setattr(constants, "HF_STORED_TOKENS_PATH", str(home / "stored_tokens"))
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", False)
        patch.setattr(socket, "getaddrinfo", here)
        logging.set_verbosity_error()
        try:
            yield hub
        finally:
            patch.undo()


def found(url, **more):
    """Find a split patiently enough for a test."""
    return find_on_hub(url, FORMATS, **{"patience": QUICK, **more})


def names(place):
    return [file.name for file in place.listed().files]
