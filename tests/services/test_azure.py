"""Azure's blob store, as its emulator has it: listed, read by ranges, fetched, and refused."""

import base64
import io
import os

import pytest

from tests.services.azurite import ACCOUNT, KEY, azurite
from zephon.errors import AccessError, DatasetNotFoundError, ShardError
from zephon.io.storage.object_stores import open_store
from zephon.io.storage.object_urls import parse
from zephon.io.storage.objects import ObjectPlace
from zephon.io.storage.patience import Patience
from zephon.io.storage.ranges import LONGEST

QUICK = Patience(attempts=2, seconds=20.0, stall=5.0, first_wait=0.02, longest_wait=0.1)
ODD = ["100%.jsonl", "Z.jsonl", "a b+ü#?.jsonl", "~x*", "木.jsonl"]
LARGE = os.urandom(LONGEST + 1000)


@pytest.fixture(scope="module")
def given():
    """Credentials and endpoint; some blobs lie there."""
    with azurite("box") as endpoint:
        options = {"account_name": ACCOUNT, "account_key": KEY, "endpoint": endpoint}
        options["allow_http"] = True
        store = open_store(parse("az://box/d"), options, QUICK, "a test").store
        for name in ODD:
            store.put(name, name.encode())
        store.put("sub/deep", b"x")
        store.put("empty", b"")
        store.put("large", LARGE)
        yield options


@pytest.fixture(params=["az", "azure", "abfs", "abfss"])
def place(given, request):
    at = f"@{ACCOUNT}.dfs.core.windows.net" if request.param == "abfss" else ""
    return ObjectPlace(f"{request.param}://box{at}/d", given, QUICK)


def test_it_is_listed_and_read_under_every_spelling(place):
    found = place.listed()
    assert [file.name for file in found.files] == sorted([*ODD, "empty", "large"], key=str.encode)
    assert found.folders == ("sub",)
    assert {file.name for file in place.listed(deep=True).files} > {"sub/deep"}
    for file in found.files:
        out = io.BytesIO()
        place.fetch(file, out)
        wanted = {"empty": b"", "large": LARGE}.get(file.name, file.name.encode())
        assert out.getvalue() == wanted
        assert place.read(file, [(0, min(3, file.size))]) == [wanted[:3]]


def test_a_blob_that_is_replaced_or_gone_is_noticed(given):
    store = open_store(parse("az://box/changing"), given, QUICK, "a test").store
    store.put("a", b"old")
    place = ObjectPlace("az://box/changing", given, QUICK)
    (file,) = place.listed().files
    store.put("a", b"new")
    with pytest.raises(ShardError, match="of another version"):
        place.read(file, [(0, 2)])
    store.delete("a")
    with pytest.raises(ShardError, match="or took it away"):
        place.read(file, [(0, 2)])


def test_what_is_not_there_is_told(given):
    with pytest.raises(DatasetNotFoundError, match="nothing lies there"):
        ObjectPlace("az://box/nowhere", given, QUICK).listed()
    with pytest.raises(DatasetNotFoundError, match="is a file; pass its folder 'az://box/d'"):
        ObjectPlace("az://box/d/large", given, QUICK).listed()
    with pytest.raises(DatasetNotFoundError, match=r"no such bucket or container .404 Container"):
        ObjectPlace("az://nobox/d", given, QUICK).listed()


def test_wrong_credentials_are_refused_and_not_shown(given):
    wrong = base64.b64encode(b"x" * 64).decode()
    keyless = {name: each for name, each in given.items() if name != "account_key"}
    for options in ({**given, "account_key": wrong}, {**keyless, "skip_signature": True}):
        with pytest.raises(AccessError, match="az://box/d: the store refuses") as raised:
            ObjectPlace("az://box/d", options, QUICK).listed()
        assert wrong not in str(raised.value)
        assert KEY not in str(raised.value)


def test_a_connection_string_of_the_environment_is_enough(given, monkeypatch):
    for name in list(os.environ):
        if name.startswith("AZURE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv(
        "AZURE_STORAGE_CONNECTION_STRING",
        f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={given['endpoint']}",
    )
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert ObjectPlace("az://box/d", patience=QUICK).listed().folders == ("sub",)
