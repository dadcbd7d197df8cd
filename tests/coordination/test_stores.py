"""Each place to meet keeps values whole, and says in words when it does not answer."""

import multiprocessing
import os
import threading

import pytest

from tests.coordination.meetings import on_ranks
from tests.free_port import free_port
from tests.served_bucket import served_bucket
from zephon.coordination.c10d import C10dStore
from zephon.coordination.directory import DirectoryStore
from zephon.coordination.objects import ObjectStore
from zephon.coordination.shared_mapping import MappingStore
from zephon.errors import CoordinationError, PlanError

KINDS = ["directory", "bucket", "c10d", "dict", "hosted"]


@pytest.fixture(scope="module")
def bucket():
    with served_bucket() as url:
        yield url


@pytest.fixture
def stores(request, tmp_path):
    """Give what makes the store of a rank, of the kind that the test is called with."""
    match request.param:
        case "directory":
            yield lambda rank: DirectoryStore(tmp_path / "not yet there")
        case "bucket":
            url = request.getfixturevalue("bucket")
            yield lambda rank: ObjectStore(f"{url}/{tmp_path.name}")
        case "c10d":
            port = free_port()
            yield lambda rank: C10dStore(f"torch://127.0.0.1:{port}", leads=rank == 0, seconds=30.0)
        case "dict":
            shared = {}
            yield lambda rank: MappingStore(shared)
        case "hosted":
            with multiprocessing.get_context("spawn").Manager() as manager:
                served = manager.dict()
                yield lambda rank: MappingStore(served)


@pytest.mark.parametrize("stores", KINDS, indirect=True)
def test_a_value_is_there_whole_or_not_at_all(stores):
    one, other = stores(0), stores(1)
    assert other.get("a/b") is None
    for value in (b"", b"\x00\xff", os.urandom(9 << 20)):
        one.set("a/b", value)
        assert other.get("a/b") == value
    other.drop(["a/b", "a/never"])
    assert one.get("a/b") is None


@pytest.mark.parametrize("stores", KINDS, indirect=True)
def test_ranks_get_what_the_first_of_them_makes_of_all_parts(stores):
    long = os.urandom(5 << 20)

    def work(rounds):
        rank = rounds.participant.rank
        first = rounds.round("join", lambda: bytes([rank]) * rank, b"-".join)
        large = rounds.round("large", lambda: long if rank == 1 else b"", b"".join)
        return first, large == long, rounds.ask("count", 7 - rank).least()

    assert on_ranks(stores, 3, work) == [(b"-\x01-\x02\x02", True, 5)] * 3


def test_nobody_reads_a_half_written_value(tmp_path):
    store, done = DirectoryStore(tmp_path), threading.Event()
    values = [bytes([number]) * (1 << 18) for number in range(8)]
    store.set("key", values[0])

    def write():
        for number in range(200):
            store.set("key", values[number % 8])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert store.get("key") in values
    writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_directory_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(CoordinationError, match=r"aggregate_dir=.*cannot be used.*every rank"):
        DirectoryStore(tmp_path / "file").set("a", b"")


def test_a_bucket_that_is_not_there_is_refused_without_secrets(bucket):
    with pytest.raises(CoordinationError, match="'s3://nowhere' does not answer") as raised:
        ObjectStore("s3://nowhere").set("a", b"")
    assert "hidden-secret" not in str(raised.value) and raised.value.__cause__ is None


def test_a_mapping_in_which_others_write_is_refused():
    with pytest.raises(CoordinationError, match="holds int under 'zephon/a', expected bytes"):
        MappingStore({"zephon/a": 3}).get("a")


def test_a_mapping_that_does_not_answer_says_so():
    with multiprocessing.get_context("spawn").Manager() as manager:
        store = MappingStore(manager.dict())
        store.set("a", b"1")
    with pytest.raises(CoordinationError, match="DictProxy does not answer"):
        store.get("a")


@pytest.mark.parametrize("address", ["torch://host", "torch://:1", "torch://a:0", "torch://a:b"])
def test_an_address_needs_host_and_port(address):
    with pytest.raises(PlanError, match="is no address; write torch://host:port"):
        C10dStore(address, leads=False, seconds=1)


def test_torch_alone_means_the_address_that_torchrun_sets(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(PlanError, match="needs MASTER_ADDR and MASTER_PORT"):
        C10dStore("torch://", leads=True, seconds=1)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    store = C10dStore("torch://", leads=True, seconds=30)
    store.set("a", b"1")
    assert C10dStore("torch://", leads=True, seconds=30).get("a") == b"1"


def test_an_address_that_nobody_hosts_does_not_answer():
    with pytest.raises(CoordinationError, match="does not answer within 1 s; rank 0 hosts it"):
        C10dStore(f"torch://127.0.0.1:{free_port()}", leads=False, seconds=1)
