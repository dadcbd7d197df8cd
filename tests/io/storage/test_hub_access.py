"""Who may read what, with a token from anywhere; a refusal says what is needed, never the token."""

import os
import subprocess
import sys

import pytest
from huggingface_hub import constants

from tests.io.storage.hub_here import ALICE, BOB, WRONG, found, names
from zephon.errors import AccessError, DatasetNotFoundError, StorageError

NONE = "no token: HF_TOKEN is not set, and nobody has logged in"


@pytest.fixture(autouse=True, scope="module")
def repositories(served_hub):
    for name, facts in (
        ("gated", {"gated": "manual"}),
        ("private", {"private": True}),
        ("off", {"disabled": True}),
        ("open", {}),
    ):
        served_hub.dataset(f"acme/{name}", **facts).commit({"train.jsonl": "{}\n"})


PASSED = "tried with the token that was passed)"


@pytest.mark.parametrize(
    ("token", "name", "error", "told"),
    [
        (None, "gated", AccessError, f"is gated (401; tried with {NONE}); accept its"),
        (None, "private", AccessError, "private and needs a token of who may read it (401; tried"),
        (None, "missing", AccessError, "there is no such dataset, or it is private"),
        (None, "off", AccessError, "the dataset is disabled (403; tried with"),
        (BOB, "gated", AccessError, f"the dataset is gated (403; {PASSED}"),
        (BOB, "private", DatasetNotFoundError, f"dataset that this user may see (404; {PASSED}"),
        (BOB, "missing", DatasetNotFoundError, "no such dataset that this user may see (404"),
        (WRONG, "open", AccessError, f"the hub does not accept the token (401; {PASSED}"),
        (WRONG, "gated", AccessError, "the hub does not accept the token"),
        (False, "gated", AccessError, "tried with no token, as was asked"),
    ],
)
def test_a_refusal_says_what_is_needed_and_is_not_tried_again(hub, token, name, error, told):
    with pytest.raises(error) as raised:
        found(f"hf://acme/{name}/train", token=token)
    text = str(raised.value)
    assert f"hf://acme/{name}" in text
    assert told in text
    assert len(hub.log) <= 2
    assert [each.status for each in hub.log[:-1]] in ([], [200])


@pytest.mark.parametrize("name", ["gated", "private", "open"])
def test_who_may_reads(hub, name):
    place = found(f"hf://acme/{name}/train", token=ALICE)
    (file,) = place.listed().files
    assert place.read(file, [(0, 2)]) == [b"{}"]
    assert {each.user for each in hub.log} == {"alice"}


@pytest.mark.parametrize("variable", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_a_token_of_the_environment(hub, monkeypatch, variable):
    monkeypatch.setenv(variable, ALICE)
    assert names(found("hf://acme/private/train"))
    monkeypatch.setenv(variable, BOB)
    with pytest.raises(AccessError, match=rf"\(403; tried with the token of {variable}\)"):
        found("hf://acme/gated/train")


def test_a_token_of_the_stored_login(hub, monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    (tmp_path / "token").write_text(f"{BOB}\n")
    with pytest.raises(AccessError, match=r"\(403; tried with the token of the stored login\)"):
        found("hf://acme/gated/train")
    (tmp_path / "token").write_text(ALICE)
    assert names(found("hf://acme/gated/train"))


def test_offline_mode_says_what_to_do(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(StorageError, match=r"offline mode is on .HF_HUB_OFFLINE.*--local-dir"):
        found("hf://acme/open/train")
    assert not hub.log


def test_without_the_extra_its_name_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"'hf://acme/open' needs huggingface_hub.*zephon\[hf\]"):
        found("hf://acme/open/train")


def test_endpoint_home_and_token_come_from_the_environment(hub, tmp_path):
    (tmp_path / "token").write_text(ALICE)
    program = (
        "from zephon.io.storage.hub import find_on_hub\n"
        "place = find_on_hub('hf://acme/private/train', {'jsonl': ('.jsonl',)})\n"
        "print(place.listed().files[0].name, place.read(place.listed().files[0], [(0, 2)]))\n"
    )
    environment = {name: each for name, each in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.strip() == "train.jsonl [b'{}']", ran.stderr
