"""Files of the hub: read by ranges, fetched and verified, whatever happens on the way."""

import io
import os
import pickle
import threading

import pytest

from tests.io.storage.hub_here import ALICE, QUICK, found
from zephon.errors import AccessError, ShardError, StorageError
from zephon.io.storage.hub_requests import send
from zephon.io.storage.patience import PassingFault, Patience

LARGE = os.urandom(600_000)
SMALL = b'{"text": "small"}\n' * 3


@pytest.fixture(scope="module")
def content(served_hub):
    made = served_hub.dataset("acme/private", private=True)
    made.commit(
        {
            "a/train-é #1.parquet": LARGE,
            "b/train.jsonl": SMALL,
            "b/train-2.jsonl": b"",
            "README.md": "---\nconfigs:\n- config_name: large\n  data_files: a/*\n"
            "- config_name: small\n  data_files: b/*\n---\n",
        }
    )
    return made


@pytest.fixture
def large(hub, content):
    place = found("hf://acme/private/large/train", token=ALICE)
    hub.log.clear()
    return place


def fetched(place, file=None):
    out, told = io.BytesIO(b"before"), []
    out.seek(6)
    place.fetch(file or place.listed().files[0], out, told.append)
    assert sum(told) == len(out.getvalue()) - 6
    return out.getvalue()[6:]


def test_the_token_goes_to_the_hub_and_not_to_the_network_behind_it(hub, large):
    (file,) = large.listed().files
    assert large.read(file, [(10, 20)]) == [LARGE[10:20]]
    assert [(each.path.split("/")[1], each.status) for each in hub.log] == [
        ("datasets", 302),
        ("_cdn", 206),
    ]
    assert [each.authorization for each in hub.log] == [f"Bearer {ALICE}", None]
    assert hub.log[1].range == "bytes=10-19"


def test_a_signed_address_is_used_again_and_renewed_when_it_ends(hub, large):
    (file,) = large.listed().files
    wanted = [(0, 100_000), (200_000, 300_000), (500_000, 600_000), (7, 7)]
    assert large.read(file, [(0, 1)]) == [LARGE[:1]]
    hub.log.clear()
    assert large.read(file, wanted) == [LARGE[start:stop] for start, stop in wanted]
    assert {each.path.split("/")[1] for each in hub.log} == {"_cdn"}
    assert len(hub.log) == 3
    hub.fail("/_cdn", status=403)
    hub.log.clear()
    assert large.read(file, [(3, 9)]) == [LARGE[3:9]]
    assert [each.status for each in hub.log] == [403, 302, 206]


def test_a_file_comes_whole(hub, large, content):
    assert fetched(large) == LARGE
    small = found("hf://acme/private/small/train", token=ALICE)
    empty, other = small.listed().files
    assert (fetched(small, other), fetched(small, empty)) == (SMALL, b"")
    assert [len(file.version) for file in (other, large.listed().files[0])] == [40, 64]


def test_a_stream_that_breaks_is_taken_up_where_it_broke(hub, large):
    hub.fail("/_cdn", cut=200_000, times=2)
    assert fetched(large) == LARGE
    ranges = [each.range for each in hub.log if each.path.startswith("/_cdn")]
    assert ranges[0] is None
    assert len(ranges) == 3
    starts = [int(each.removeprefix("bytes=").split("-")[0]) for each in ranges[1:]]
    assert 0 < starts[0] <= 200_000 < starts[1] <= 400_000


def test_one_that_brings_next_to_nothing_is_given_up(hub, large):
    hub.fail("/_cdn", cut=10, times=1000)
    with pytest.raises(StorageError, match="no whole answer after 3 attempts"):
        fetched(large)
    assert len(hub.log) < 10


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 503, "times": 2},
        {"status": 429, "headers": {"Retry-After": "1"}},
        {"status": 429, "headers": {"RateLimit": '"resolvers";r=0;t=1'}},
        {"status": 0, "times": 2},
        {"cut": 5},
        {"wait": 1.3},
    ],
    ids=str,
)
@pytest.mark.parametrize("where", ["/resolve/", "/_cdn"])
def test_a_fault_that_passes_is_not_seen(hub, large, fault, where):
    (file,) = large.listed().files
    hub.fail(where, **fault)
    assert large.read(file, [(5, 50), (590_000, 600_000)]) == [LARGE[5:50], LARGE[590_000:]]


def test_bytes_that_are_wrong_are_fetched_again_and_then_refused(hub, large):
    hub.fail("/_cdn", flip=True)
    assert fetched(large) == LARGE
    hub.fail("/_cdn", flip=True, times=2)
    with pytest.raises(ShardError, match="its hash is another, twice"):
        fetched(large)


def test_faults_of_the_listing_are_waited_out(hub, content):
    for part in ("/revision/", "/README.md", "/tree/"):
        hub.fail(part, status=503, times=2)
        hub.fail(part, status=0)
    assert found("hf://acme/private/large/train", token=ALICE, patience=PATIENT).listed()
    hub.faults.clear()
    hub.fail("/revision/", status=429, headers={"Retry-After": "500"})
    with pytest.raises(StorageError, match=r"after 1 attempt.*429, which asks to wait 500 s"):
        found("hf://acme/private/large/train", token=ALICE)


def test_a_page_that_is_no_listing_is_no_hub(hub, content):
    hub.fail("/tree/", status=200)
    with pytest.raises(StorageError, match="the hub's listing is no list"):
        found("hf://acme/private/large/train", token=ALICE)


def test_a_file_of_other_size_or_gone_is_refused(hub, large, content):
    (file,) = large.listed().files
    commit = content.resolve("main")
    kept = commit.files.pop(file.name)
    try:
        with pytest.raises(ShardError, match="the file is gone from its commit"):
            large.read(file, [(0, 5)])
        commit.files[file.name] = type(kept)(LARGE + b"more", large=True)
        with pytest.raises(ShardError, match="the answer must be bytes 0-4 of 600000"):
            large.read(file, [(0, 5)])
        with pytest.raises(ShardError, match="must have 600000 bytes at that commit, got 600004"):
            fetched(large)
    finally:
        commit.files[file.name] = kept


def test_many_threads_share_one(hub, large):
    (file,) = large.listed().files
    wrong = []

    def read(number):
        start = number * 1000
        if large.read(file, [(start, start + 500)]) != [LARGE[start : start + 500]]:
            wrong.append(number)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not wrong


def test_a_pickled_one_has_no_token_and_reads_with_what_its_process_has(hub, large, monkeypatch):
    written = pickle.dumps(large)
    assert ALICE.encode() not in written
    again = pickle.loads(written)
    (file,) = again.listed().files
    assert (again.url, again.kind, file) == (large.url, "parquet", large.listed().files[0])
    with pytest.raises(AccessError, match="tried with no token"):
        again.read(file, [(0, 5)])
    monkeypatch.setenv("HF_TOKEN", ALICE)
    assert pickle.loads(written).read(file, [(0, 5)]) == [LARGE[:5]]


def test_many_workers_list_nothing_again_and_wait_when_they_are_told_to(hub, content, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", ALICE)
    large = found("hf://acme/private/large/train", patience=Patience())
    written, (file,) = pickle.dumps(large), large.listed().files
    hub.log.clear()
    hub.fail("/resolve/", status=429, headers={"Retry-After": "1"}, times=20)
    came = []

    def work(number):
        came.append(pickle.loads(written).read(file, [(number, number + 9)]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sorted(part for (part,) in came) == sorted(LARGE[at : at + 9] for at in range(64))
    assert not hub.paths("/api/")
    assert len(hub.paths("/resolve/")) == 64 + 20


def test_a_process_that_was_forked_reads(hub, large):
    (file,) = large.listed().files
    assert large.read(file, [(0, 5)]) == [LARGE[:5]]
    child = os.fork()
    if child == 0:
        try:
            os._exit(7 if large.read(file, [(3, 9)]) == [LARGE[3:9]] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_name_below_the_root_lists_what_lies_there(hub, large):
    assert large.listed("a").files == large.listed().files
    with pytest.raises(FileNotFoundError, match="no file of the split lies in 'c'"):
        large.listed("c")


def test_redirects_end(hub, large):
    client = large._hub()
    hub.fail("/round", status=302, headers={"Location": "/round"}, times=100)
    answer = send(f"{hub.url}/round", client.login, home=hub.url, stall=5.0)
    assert answer.status == 302
    assert len(hub.log) < 10


def test_a_broken_connection_is_a_fault_that_may_pass(hub, large):
    with pytest.raises(PassingFault, match="no connection"):
        send("http://127.0.0.1:1/", large._hub().login, home=hub.url, stall=5.0)


PATIENT = type(QUICK)(attempts=5, seconds=20.0, stall=1.0, first_wait=0.02, longest_wait=0.1)
