"""Credentials, endpoints and who pays come from options and each cloud's own variables."""

import os

import pytest

from zephon.errors import PlanError
from zephon.io.storage.object_stores import open_store
from zephon.io.storage.object_urls import parse
from zephon.io.storage.patience import Patience

CLOUDS = ("AWS_", "S3_", "GOOGLE_", "GCS_", "AZURE_", "STORAGE_EMULATOR", "ZEPHON_AWS")


@pytest.fixture(autouse=True)
def no_cloud(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(CLOUDS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def opened(url, **options):
    return open_store(parse(url), options, Patience(), "a test")


def config(url, **options):
    return opened(url, **options).store.config


@pytest.fixture
def aws(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")


def test_aws_by_its_variables(aws, monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    found = opened("s3://bucket/a")
    assert found.credentials == "AWS_ACCESS_KEY_ID and the rest"
    assert found.store.prefix == "a"
    assert "request_payer" not in str(found.store.config)


@pytest.mark.parametrize("name", ["S3_ENDPOINT_URL", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_an_endpoint_by_each_of_its_names(aws, monkeypatch, name):
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert config("s3://bucket")["endpoint"] == "http://127.0.0.1:9"
    assert config("s3://bucket", endpoint="http://127.0.0.1:8")["endpoint"] == "http://127.0.0.1:8"


def test_plain_http_has_to_be_allowed(aws, monkeypatch):
    assert "allow_http" not in opened("s3://bucket").store.client_options
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert opened("s3://bucket").store.client_options["allow_http"]
    assert "allow_http" not in opened("s3://bucket", allow_http=False).store.client_options


def test_plain_http_is_allowed_by_each_clouds_own_name(monkeypatch):
    for url, name in (("gs://bucket", "GOOGLE"), ("az://box", "AZURE")):
        options = {"skip_signature": True} | ({"account_name": "ours"} if url[0] == "a" else {})
        assert "allow_http" not in opened(url, **options).store.client_options
        monkeypatch.setenv(f"{name}_ALLOW_HTTP", "true")
        assert opened(url, **options).store.client_options["allow_http"]


@pytest.mark.parametrize(("said", "pays"), [("1", True), ("other,bucket", True), ("other", False)])
def test_who_asks_may_pay(aws, monkeypatch, said, pays):
    monkeypatch.setenv("ZEPHON_AWS_REQUESTER_PAYS", said)
    assert ("request_payer" in config("s3://bucket")) == pays


def test_a_profile_is_read_by_boto3(monkeypatch, tmp_path):
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id = one\naws_secret_access_key = a\n"
        "[work]\naws_access_key_id = two\naws_secret_access_key = b\n"
    )
    (folder / "config").write_text("[profile work]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    found = opened("s3://bucket")
    assert found.credentials == "the default profile of ~/.aws"
    assert found.store.credential_provider()["access_key_id"] == "one"
    monkeypatch.setenv("AWS_PROFILE", "work")
    found = opened("s3://bucket")
    assert found.credentials == "AWS_PROFILE='work'"
    assert found.store.credential_provider()["access_key_id"] == "two"
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(PlanError, match="boto3 finds no credentials by AWS_PROFILE='nobody'"):
        opened("s3://bucket")


def test_google_by_keys_of_its_s3_interface(monkeypatch):
    monkeypatch.setenv("GCS_KEY", "key")
    monkeypatch.setenv("GCS_SECRET", "hidden")
    found = opened("gs://bucket/a")
    assert type(found.store).__name__ == "S3Store"
    assert found.credentials == "GCS_KEY and GCS_SECRET"
    assert found.store.config["endpoint"] == "https://storage.googleapis.com"


def test_google_without_a_signature(monkeypatch):
    found = opened("gcs://bucket", skip_signature=True, base_url="http://127.0.0.1:9")
    assert found.credentials == "none, as skip_signature says"
    assert type(found.store).__name__ == "GCSStore"


def test_azure_by_a_connection_string(monkeypatch):
    monkeypatch.setenv(
        "AZURE_STORAGE_CONNECTION_STRING",
        "AccountName=ours;AccountKey=aGlkZGVu;BlobEndpoint=http://127.0.0.1:9/ours;",
    )
    found = opened("az://box/a")
    assert found.credentials == "AZURE_STORAGE_CONNECTION_STRING"
    assert found.store.config["account_name"] == "ours"
    assert found.store.config["endpoint"] == "http://127.0.0.1:9/ours"


def test_azure_by_the_names_of_its_own_tools(monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "ours")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "aGlkZGVu")
    found = opened("azure://box")
    assert found.store.config["account_name"] == "ours"
    assert found.credentials == "AZURE_STORAGE_KEY"


def test_azure_needs_an_account():
    with pytest.raises(PlanError, match="the storage account is not known"):
        opened("az://box/a")
    assert (
        config("abfss://box@ours.dfs.core.windows.net/a", account_key="aGlkZGVu")["account_name"]
        == "ours"
    )


def test_an_option_that_obstore_does_not_know_is_refused_without_its_value():
    with pytest.raises(PlanError, match="known options are endpoint, region") as raised:
        opened("s3://bucket", acces_key_id="hidden")
    assert "hidden" not in str(raised.value)
    assert raised.value.__cause__ is None
