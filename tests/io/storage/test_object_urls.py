"""Each spelling of a prefix in an object store is understood, and none that holds a secret."""

import pytest

from zephon.errors import DatasetError
from zephon.io.storage.object_urls import ObjectUrl, bare, is_object_url, parse


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("s3://bucket", ObjectUrl("s3", "bucket", "")),
        ("s3a://bucket/a/b/", ObjectUrl("s3", "bucket", "a/b")),
        ("S3://bucket/a", ObjectUrl("s3", "bucket", "a")),
        ("gs://bucket/a b+%20", ObjectUrl("gcs", "bucket", "a b+%20")),
        ("gcs://bucket/a", ObjectUrl("gcs", "bucket", "a")),
        ("az://box/a", ObjectUrl("azure", "box", "a")),
        ("azure://box/a", ObjectUrl("azure", "box", "a")),
        ("abfs://box/a", ObjectUrl("azure", "box", "a")),
        (
            "abfss://box@ours.dfs.core.windows.net/a/b",
            ObjectUrl("azure", "box", "a/b", "ours", "https://ours.blob.core.windows.net"),
        ),
        ("abfs://box@ours/a", ObjectUrl("azure", "box", "a", "ours")),
    ],
)
def test_a_url_names_a_bucket_and_a_prefix(url, wanted):
    assert is_object_url(url)
    assert parse(url) == wanted


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://", "names no bucket or container; write s3://bucket/prefix"),
        ("az:///a", "write az://container/prefix"),
        ("abfss://@host/a", "write abfss://container@account.dfs.core.windows.net/prefix"),
        ("s3://bucket/a//b", "must have no empty part"),
        ("s3://key:secret@bucket/a", "'s3://bucket/a': the url must hold no user"),
        ("s3://key:secret/of/it@bucket/a", "'s3://bucket/a': the url must hold no user"),
        ("s3://bucket/a?X-Amz-Signature=secret", "'s3://bucket/a': the url must hold no user"),
        ("az://box/a?sig=secret", "'az://box/a': the url must hold no user"),
    ],
)
def test_a_wrong_one_is_refused_without_its_secrets(url, told):
    with pytest.raises(DatasetError) as raised:
        parse(url)
    assert told in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_url_is_told_without_what_may_be_secret():
    assert bare("s3://key:secret@bucket/a?b#c") == "s3://bucket/a"
    assert not is_object_url("hf://org/name/train")
    assert not is_object_url("/data")
