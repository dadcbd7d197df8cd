"""The hub's conversion is read where it is whole and of that commit, and pinned as it is."""

import pytest

from tests.io.storage.hub_here import ALICE, found, names
from zephon.errors import DatasetError, DatasetNotFoundError

ALLOW = "ZEPHON_HF_ALLOW_PARTIAL"


@pytest.fixture
def repository(hub, monkeypatch):
    """A dataset of CSV, which is read converted."""
    monkeypatch.delenv(ALLOW, raising=False)
    made = hub.dataset("acme/tables")
    made.refs.clear()
    sha = made.commit({"train.csv": "a\n1\n"})
    made.convert(
        {
            "default/train/0001.parquet": b"PAR1b",
            "default/train/0000.parquet": b"PAR1a",
            "default/partial-test/0000.parquet": b"PAR1c",
            "default/many-part0/0000.parquet": b"PAR1d",
            "default/many-part1/0000.parquet": b"PAR1e",
            "README.md": "x",
        }
    )
    hub.made_from["acme/tables"] = sha
    return made


def refusal(url, kind=DatasetError):
    with pytest.raises(kind) as raised:
        found(url)
    return str(raised.value)


def test_it_is_taken_when_the_uploaded_files_are_not_read(hub, repository):
    place = found("hf://acme/tables/train")
    sha = repository.resolve("refs/convert/parquet").sha
    assert place.url == f"hf://acme/tables@{sha}~parquet/default/train"
    assert names(place) == ["default/train/0000.parquet", "default/train/0001.parquet"]
    assert place.kind == "parquet"
    assert place.read(place.listed().files[1], [(0, 5)]) == [b"PAR1b"]


def test_a_pinned_one_stays_what_it_was(hub, repository):
    place = found("hf://acme/tables@~parquet/train")
    old = repository.resolve("refs/convert/parquet")
    repository.commit({"default/train/0002.parquet": b"PAR1f"}, "refs/convert/parquet")
    hub.made_from["acme/tables"] = repository.commit({"train.csv": "a\n2\n"})
    again = found(place.url)
    assert again.url == place.url
    assert old.sha in place.url
    assert names(again) == names(place)
    assert len(names(found("hf://acme/tables@~parquet/train"))) == 3


def test_a_split_in_many_folders_is_one(hub, repository):
    assert len(names(found("hf://acme/tables/many"))) == 2


def test_a_part_of_a_split_is_refused_until_it_is_asked_for(hub, repository, monkeypatch):
    told = refusal("hf://acme/tables@~parquet/test")
    assert f"it holds only a part of the split 'test'; to read that part set {ALLOW}=1" in told
    monkeypatch.setenv(ALLOW, "1")
    assert names(found("hf://acme/tables@~parquet/test")) == ["default/partial-test/0000.parquet"]


def test_one_of_another_commit_is_refused_until_it_is_asked_for(hub, repository, monkeypatch):
    made_from = hub.made_from["acme/tables"]
    sha = repository.commit({"train.csv": "a\n2\n"})
    told = refusal("hf://acme/tables/train")
    assert f"it was made from commit {made_from}, and not from {sha}" in told
    assert names(found(f"hf://acme/tables@{made_from}/train"))
    monkeypatch.setenv(ALLOW, "1")
    assert names(found("hf://acme/tables/train"))


def test_one_whose_commit_nobody_tells_is_refused(hub, repository):
    hub.made_from["acme/tables"] = None
    told = refusal("hf://acme/tables/train")
    assert "nobody tells from which commit it was made: the hub's viewer at" in told
    hub.made_from["acme/tables"] = "soon"
    assert "the hub's viewer does not tell from which commit" in refusal("hf://acme/tables/train")


def test_one_that_is_not_done_is_refused(hub, repository):
    hub.pending.add("acme/tables")
    try:
        assert "1 parts are pending and 0 failed" in refusal("hf://acme/tables/train")
    finally:
        hub.pending.clear()


def test_one_of_a_private_dataset_is_asked_about_as_the_user(hub, repository):
    made = hub.dataset("acme/private", private=True)
    hub.made_from["acme/private"] = made.commit({"train.csv": "a\n1\n"})
    made.convert({"default/train/0.parquet": b"PAR1"})
    assert names(found("hf://acme/private/train", token=ALICE)) == ["default/train/0.parquet"]
    assert {each.user for each in hub.log} == {"alice"}


def test_what_is_not_there_is_told_with_what_is(hub, repository):
    told = refusal("hf://acme/tables@~parquet/dev", DatasetNotFoundError)
    assert "its splits are 'many', 'test', 'train'" in told
    told = refusal("hf://acme/tables@~parquet/en/train", DatasetNotFoundError)
    assert "there is no config 'en'; the configs are 'default'" in told
    hub.dataset("acme/unconverted").commit({"train.csv": "a\n"})
    told = refusal("hf://acme/unconverted/train")
    assert "such as 'train.csv'; ~parquet: the hub has made no conversion" in told


def test_several_configs_have_to_be_named(hub, repository):
    repository.convert({"de/train/0.parquet": b"x", "en/train/0.parquet": b"x"})
    told = refusal("hf://acme/tables@~parquet/train")
    assert "several configs and none is the default: 'de', 'en'" in told
    assert names(found("hf://acme/tables@~parquet/en/train")) == ["en/train/0.parquet"]
