"""Files of a model come through the cache that all tools share, and out of it without a network."""

import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.io.storage.hub_here import ALICE, QUICK
from zephon.errors import AccessError, StorageError
from zephon.io.storage.hub_models import hub_files

PATTERNS = ["tokenizer*.json", "sub/*.txt"]


@pytest.fixture
def model(hub, monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    made = hub.model("tiny")
    made.refs.clear()
    made.commit(
        {
            "tokenizer.json": "{}",
            "tokenizer_config.json": "[]",
            "sub/a.txt": "a",
            "w.bin": "weights",
        }
    )
    return made


def have(repo="tiny", **more):
    return hub_files(repo, PATTERNS, **{"patience": QUICK, **more})


def test_what_patterns_name_is_here_at_one_commit(hub, model):
    files = have()
    assert files.names == ("sub/a.txt", "tokenizer.json", "tokenizer_config.json")
    assert files.commit == model.resolve("main").sha
    assert (files.folder / "sub/a.txt").read_text() == "a"
    assert not (files.folder / "w.bin").exists()
    hub.log.clear()
    assert have() == files
    assert not [each for each in hub.log if each.method == "GET" and "/resolve/" in each.path]


def test_a_new_commit_is_a_new_folder(hub, model):
    old = have()
    model.commit({"tokenizer.json": "new"})
    new = have()
    assert old.folder != new.folder
    assert (new.folder / "tokenizer.json").read_text() == "new"
    assert have(revision=old.commit) == old


def test_offline_the_cache_alone_is_asked(hub, model, monkeypatch):
    files = have()
    hub.log.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert have() == files
    with pytest.raises(StorageError, match=r"offline mode is on .HF_HUB_OFFLINE.*nothing of it"):
        have("other")
    with pytest.raises(StorageError, match=r"no file named vocab\.txt"):
        hub_files("tiny", ["vocab.txt"], patience=QUICK)
    assert not hub.log


def test_a_hub_that_fails_is_asked_again_and_never_replaced_by_an_old_commit(hub, model):
    have()
    new = model.commit({"tokenizer.json": "new"})
    hub.fail("HEAD /tiny/resolve", status=503)
    hub.fail("GET /tiny/resolve", status=503)
    hub.fail("/api/models", status=503)
    assert have().commit == new
    hub.fail("HEAD /tiny/resolve", status=503, times=100)
    newest = model.commit({"tokenizer.json": "newest"})
    with pytest.raises(StorageError, match="tiny@main: no whole answer after"):
        have()
    hub.faults.clear()
    assert have().commit == newest


def test_a_gated_model_needs_who_may(hub, model):
    hub.model("acme/gated-model", gated="auto").commit({"tokenizer.json": "{}"})
    with pytest.raises(
        AccessError, match=r"acme/gated-model@main: tokenizer\.json: the hub refuses"
    ):
        have("acme/gated-model")
    assert have("acme/gated-model", token=ALICE).names == ("tokenizer.json",)


def test_the_bytes_of_a_file_are_those_of_the_hub(hub, model):
    hub.model("acme/large").commit({"tokenizer.bin": b"x" * 200_000})
    hub.fail("/_cdn", cut=50_000)
    files = hub_files("acme/large", ["*.bin"], patience=QUICK)
    assert (files.folder / "tokenizer.bin").read_bytes() == b"x" * 200_000


def test_a_cache_that_cannot_be_written_is_told(hub, model, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "file" / "hub"))
    with pytest.raises(StorageError, match="the cache below HF_HOME cannot be written"):
        have()


def test_looking_for_places_loads_no_client():
    program = (
        "import sys; import zephon, zephon.io.storage.hub, zephon.io.storage.objects, "
        "zephon.io.storage.hub_models\n"
        "print([name for name in ('huggingface_hub', 'obstore', 'yaml', 'httpx2') "
        "if name in sys.modules])"
    )
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=root, timeout=60
    )
    assert ran.stdout.strip() == "[]", ran.stderr
