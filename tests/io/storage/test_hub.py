"""The uploaded files of a split: by the card or by their names, of one format, and pinned."""

import re

import pytest

from tests.io.storage.hub_here import found, names
from zephon.errors import DatasetError, DatasetNotFoundError

CARD = """---
configs:
- config_name: en
  data_files:
  - split: train
    path: data/en/*.jsonl
  - split: test
    path: [data/en-test/a.jsonl]
  default: true
- config_name: by-folder
  data_dir: other
- config_name: mixed
  data_files: mixed/*
- config_name: table
  data_files: table.csv
- config_name: twice
  data_files: [data/en/a.jsonl, data/en/*.jsonl]
- config_name: outside
  data_files: hf://datasets/b/c/x.jsonl
- config_name: above
  data_files: ../x.jsonl
- config_name: gone
  data_files: gone/*.jsonl
---
# A dataset
"""


@pytest.fixture(scope="module")
def repository(served_hub):
    made = served_hub.dataset("acme/carded")
    files = [
        "data/en/b.jsonl", "data/en/a.jsonl", "data/en/.hidden.jsonl", "data/en/deep/c.jsonl",
        "data/en-test/a.jsonl", "other/train-1.parquet", "other/x/test.parquet", "mixed/a.jsonl",
        "mixed/b.parquet", "mixed/README.md", "table.csv",
    ]  # fmt: skip
    made.commit({"README.md": CARD, **dict.fromkeys(files, '{"text": "hi"}\n')})
    made.tag("release/2024-01")
    return made


def refusal(url, kind=DatasetError, **more):
    with pytest.raises(kind) as raised:
        found(url, **more)
    assert str(raised.value).startswith("hf://acme/")
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_the_cards_default_config_is_read_and_pinned(hub, repository):
    sha = repository.resolve("main").sha
    place = found("hf://acme/carded/train")
    assert place.url == f"hf://acme/carded@{sha}~original/en/train"
    assert names(place) == ["data/en/a.jsonl", "data/en/b.jsonl"]
    assert place.kind == "jsonl"
    assert len(hub.log) == 3  # the commit, the card, one folder
    assert names(found(place.url)) == names(place)


def test_a_pinned_one_stays_what_it_was(hub):
    made = hub.dataset("acme/growing")
    made.commit({"train.jsonl": "{}\n"})
    place = found("hf://acme/growing/train")
    made.commit({"train-2.jsonl": "{}\n"})
    assert names(found("hf://acme/growing/train")) == ["train-2.jsonl", "train.jsonl"]
    assert names(found(place.url)) == names(place) == ["train.jsonl"]


@pytest.mark.parametrize("revision", ['"release/2024-01"', "release%2F2024-01", '"main"'])
def test_revisions_with_slashes(hub, repository, revision):
    place = found(f"hf://acme/carded@{revision}~original/by-folder/test")
    assert names(place) == ["other/x/test.parquet"]
    assert "@" + repository.resolve("main").sha in place.url


def test_files_of_a_listed_split_and_of_a_folder(hub, repository):
    assert names(found("hf://acme/carded/en/test")) == ["data/en-test/a.jsonl"]
    assert names(found("hf://acme/carded/by-folder/train")) == ["other/train-1.parquet"]


def test_fmt_picks_one_of_two_formats(hub, repository):
    assert names(found("hf://acme/carded/mixed/train", fmt="parquet")) == ["mixed/b.parquet"]
    assert names(found("hf://acme/carded/mixed/train", fmt="jsonl")) == ["mixed/a.jsonl"]
    told = refusal("hf://acme/carded/en/train", fmt="parquet")
    assert "~original: its files are 'jsonl', and fmt='parquet' is asked for; ~parquet: the" in told


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("mixed", "its files are of several formats, 'jsonl', 'parquet'; fmt= picks one"),
        ("table", "1 of its 1 files are of no format that is read, such as 'table.csv'"),
        ("twice", "the card's config 'twice' names the file 'data/en/a.jsonl' twice"),
        ("outside", "names 'hf://datasets/b/c/x.jsonl', which lies outside of the repository"),
        ("above", "names '../x.jsonl', which lies outside of the repository"),
        ("gone", "names 'gone/*.jsonl', and there is no such file"),
    ],
)
def test_files_that_cannot_be_read_are_told_with_every_reason(hub, repository, config, why):
    told = refusal(f"hf://acme/carded/{config}/train")
    assert "neither the uploaded files nor the conversion can be read: ~original: " in told
    assert why in told
    assert "~parquet: the hub has made no conversion of this dataset" in told
    told = refusal(f"hf://acme/carded@~original/{config}/train")
    assert "the source that is asked for cannot be read: ~original: " in told
    assert "~parquet" not in told


def test_what_is_not_there_is_told_with_what_is(hub, repository):
    told = refusal("hf://acme/carded/fr/train", DatasetNotFoundError)
    assert "there is no config 'fr'; the configs are 'above', 'by-folder', 'en', 'gone'" in told
    told = refusal("hf://acme/carded/valid", DatasetNotFoundError)
    assert "there is no split 'valid' in config 'en'; its splits are 'test', 'train'" in told
    told = refusal("hf://acme/carded@v9/train", DatasetNotFoundError)
    assert "hf://acme/carded@v9" in told
    assert "there is no such revision" in told


def test_several_configs_without_a_default_have_to_be_named(hub):
    configs = "".join(f"- config_name: {name}\n  data_files: a.jsonl\n" for name in ("de", "en"))
    hub.dataset("acme/several").commit({"README.md": f"---\nconfigs:\n{configs}---\n"})
    told = refusal("hf://acme/several/train")
    assert "has several configs and none is the default: 'de', 'en'; name one" in told


def test_without_a_card_names_decide(hub):
    made = hub.dataset("acme/plain")
    made.commit({"LICENSE": "x", "a.py": "x", "train.jsonl.gz": "x", "dev/x.jsonl.gz": "x"})
    assert names(found("hf://acme/plain/validation")) == ["dev/x.jsonl.gz"]
    assert "default/validation" in found("hf://acme/plain/default/validation").url
    told = refusal("hf://acme/plain/train", DatasetNotFoundError)
    assert "its splits are 'validation'" in told  # folders go before names of files


def test_a_script_says_more_than_its_files(hub):
    hub.dataset("acme/scripted").commit({"scripted.py": "x", "train.jsonl": "{}\n"})
    assert "it is made by a script, 'scripted.py'" in refusal("hf://acme/scripted/train")


def test_a_damaged_card_is_a_reason(hub):
    hub.dataset("acme/damaged").commit({"README.md": "---\na: [\n---\n", "train.jsonl": "{}"})
    assert "README.md must begin with YAML, and it is damaged" in refusal("hf://acme/damaged/train")


def test_a_thousand_files_come_in_pages(hub):
    made = hub.dataset("acme/large")
    made.commit({f"data/train-{number:05}-of-01200.parquet": b"x" for number in range(1200)})
    place = found("hf://acme/large/train")
    assert len(place.listed().files) == 1200
    assert [file.name for file in place.listed().files] == sorted(made.resolve("main").files)
    assert len(hub.log) == 4
    assert re.search("cursor=1000", hub.log[-1].path)


def test_many_folders_of_one_split_are_one_listing(hub):
    made = hub.dataset("acme/folders")
    paths = ", ".join(f"data/{number}/*.jsonl" for number in range(20))
    files = {f"data/{number}/a.jsonl": "{}" for number in range(20)}
    made.commit({"README.md": f"---\nconfigs:\n- data_files: [{paths}]\n---\n", **files})
    assert len(names(found("hf://acme/folders/train"))) == 20
    assert len(hub.log) == 3
