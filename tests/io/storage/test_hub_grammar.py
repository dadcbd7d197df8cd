"""Urls of the hub are read as documented, and a wrong one says what to write."""

import pytest

from zephon.errors import DatasetError
from zephon.io.storage.hub_grammar import HubUrl, parse_hub_url

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("hf://a/b/train", HubUrl(repo="a/b", split="train")),
        ("hf://a/b/en/train/", HubUrl(repo="a/b", config="en", split="train")),
        ("hf://a/b.c-d@v1.0/train", HubUrl(repo="a/b.c-d", revision="v1.0", split="train")),
        ("hf://a/b@~parquet/train", HubUrl(repo="a/b", source="parquet", split="train")),
        (
            f"hf://a/b@{COMMIT}~original/en/train",
            HubUrl(repo="a/b", revision=COMMIT, source="original", config="en", split="train"),
        ),
        (
            'hf://a/b@"release/2024-01"/en/train',
            HubUrl(repo="a/b", revision="release/2024-01", config="en", split="train"),
        ),
        (
            'hf://a/b@"refs/pr/7"~parquet/train',
            HubUrl(repo="a/b", revision="refs/pr/7", source="parquet", split="train"),
        ),
        (
            "hf://a/b@release%2F2024-01~original/train",
            HubUrl(repo="a/b", revision="release/2024-01", source="original", split="train"),
        ),
        ('hf://a/b@"a~b"/train', HubUrl(repo="a/b", revision="a~b", split="train")),
        ("hf://a/b/20231101.en/train", HubUrl(repo="a/b", config="20231101.en", split="train")),
        ("hf://a/b/x@y/train", HubUrl(repo="a/b", config="x@y", split="train")),
    ],
)
def test_each_form_is_read_and_told_again(url, wanted):
    assert parse_hub_url(url) == wanted
    assert parse_hub_url(str(wanted)) == wanted


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("hf://a", "its parts are 1, and at least three are needed"),
        ("hf://a/b", "the split is missing; write 'hf://a/b/train'"),
        ("hf://a/b@main", "its parts are 2"),
        ("hf://a/b@/train", "the revision after the @ is empty"),
        ("hf://a/b@~/train", "the source is ~original or ~parquet, and '~' is neither"),
        ("hf://a/b@main~jsonl/train", "and '~jsonl' is neither"),
        ("hf://a/b/c/d/train", "3 parts follow the repository, and it is a config and a split"),
        ('hf://a/b@"v1/train', "the revision has no closing quote"),
        ("hf://a/b@v 1/train", "has signs that need quotes; write 'hf://a/b@\"v 1\"/train'"),
        ("hf://a/b@release/2024-01/en/train", "a revision with slashes stands in double quotes"),
        ("hf://a//train", "a part is empty"),
        ('hf://a/b@"v1"x/train', "what stands in the quotes, or after them, is no revision"),
        ('hf://a/b@""/train', "what stands in the quotes, or after them, is no revision"),
        ("hf://a/b!/train", "'b!' is no name of a repository"),
        ("hf://a/b/train?token=secret", "a url has no query"),
        ("hf://datasets/a/b", "'datasets' is left out; write 'hf://a/b/train'"),
        ("hf://datasets/a/b/en/test", "'datasets' is left out; write 'hf://a/b/en/test'"),
        ("hf://datasets/a/b@v1/data/x.parquet", "write 'hf://a/b@v1/train'"),
        ("hf://datasets/a/b/resolve/main/x.jsonl", "write 'hf://a/b/train'"),
        ("hf://models/a/b", "only datasets are read"),
        ("hf://a/b/data/x.parquet", "a file is no split, and 'data/x.parquet' is one; write"),
        ("hf://a/b/data/c/x.jsonl.gz", "a file is no split"),
        ("hf://a/b/x.jsonl", "a file is no split, and 'x.jsonl' is one; write 'hf://a/b/train'"),
        ("hf://a/b/tree/main", "a page of a file is no split; write 'hf://a/b/train'"),
    ],
)
def test_a_wrong_url_is_told_what_to_write(url, told):
    with pytest.raises(DatasetError) as raised:
        parse_hub_url(url)
    assert told in str(raised.value)
    assert "must be hf://org/name[@[revision][~source]]/[config/]split" in str(raised.value)
    assert "secret" not in str(raised.value)
