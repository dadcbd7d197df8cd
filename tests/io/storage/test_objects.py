"""S3 and Google's store: what lies there is listed once, and read as it was listed."""

import io
import os
import pickle
import sys
import traceback
from datetime import UTC, datetime, timedelta

import pytest

from tests.io.storage.served_stores import BUCKET, served_store
from zephon.errors import (
    AccessError,
    DatasetNotFoundError,
    ForkedError,
    PlanError,
    ShardError,
    StorageError,
)
from zephon.io.storage import object_reader
from zephon.io.storage.objects import ObjectPlace
from zephon.io.storage.patience import Patience
from zephon.io.storage.ranges import LONGEST

QUICK = Patience(attempts=3, seconds=20.0, stall=1.0, first_wait=0.02, longest_wait=0.1)
ODD = ["100%.jsonl", "Z.jsonl", "_$folder$", "a b+ü#?.jsonl", "b%20c.jsonl", "~x*", "é.jsonl", "木"]
KINDS = ["s3", "gs"]


@pytest.fixture(scope="module")
def served():
    with served_store() as store:
        for number, name in enumerate(ODD):
            store.put(f"odd/{name}", name.encode() * (number + 1))
        for name in ("odd/", "odd/sub/", "odd/sub/deep/x", "odd/empty", "oddly/other"):
            store.put(name, b"x" if name.endswith("x") else b"")
        yield store


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def store(served):
    served.faults.clear()
    served.log.clear()
    return served


def place(store, kind, prefix="odd", patience=QUICK, **options):
    return ObjectPlace(f"{kind}://{BUCKET}/{prefix}", store.options(kind, **options), patience)


def fresh(store, kind, name, content):
    """Put an object into a folder of its own; give its place and what is listed of it."""
    store.put(f"{kind}-{name}/{name}", content)
    found = place(store, kind, f"{kind}-{name}")
    return found, found.listed().files[0]


def reads(store):
    return [seen for line, seen in store.log if line.startswith("GET") and "list-type" not in line]


def test_one_traversal_lists_files_in_bytewise_order(store, kind):
    found = place(store, kind).listed()
    assert [file.name for file in found.files] == sorted([*ODD, "empty"], key=str.encode)
    assert found.folders == ("sub",)
    assert len(store.log) == 1
    assert all(file.version and file.modified_ns > 1e18 for file in found.files)


def test_folders_are_looked_into_on_demand_and_have_no_markers(store, kind):
    here = place(store, kind)
    assert "sub/deep/x" in [file.name for file in here.listed(deep=True).files]
    assert {file.name for file in here.listed(deep=True).files} == {*ODD, "empty", "sub/deep/x"}
    assert here.listed("sub").folders == ("sub/deep",)
    assert [file.name for file in here.listed("sub/deep").files] == ["sub/deep/x"]


def test_a_long_listing_comes_in_pages(store, kind):
    store.page = 3
    try:
        found = place(store, kind).listed()
    finally:
        store.page = None
    assert len(found.files) == len(ODD) + 1
    assert len(store.log) == 4


def test_every_odd_name_is_read_under_it(store, kind):
    here = place(store, kind)
    for file in here.listed().files:
        out = io.BytesIO()
        here.fetch(file, out)
        wanted = b"" if file.name == "empty" else file.name.encode() * (ODD.index(file.name) + 1)
        assert out.getvalue() == wanted == here.read(file, [(0, file.size)])[0]


def test_near_ranges_are_one_request_with_the_version(store, kind):
    content = os.urandom(400_000)
    here, file = fresh(store, kind, "ranges", content)
    store.log.clear()
    wanted = [(0, 100), (300_000, 300_010), (100, 150_000), (151_000, 290_000), (7, 7)]
    assert here.read(file, wanted) == [content[start:stop] for start, stop in wanted]
    assert sorted(seen["range"] for seen in reads(store)) == [
        "bytes=0-289999",
        "bytes=300000-300009",
    ]
    assert {seen["if-match"] for seen in reads(store)} == {file.version}


def test_a_large_file_comes_whole_and_in_order(store, kind):
    content = os.urandom(2 * LONGEST + 12_345)
    here, file = fresh(store, kind, "large", content)
    store.fail("/large", cut=100_000)
    out, told = io.BytesIO(b"before"), []
    out.seek(6)
    here.fetch(file, out, told.append)
    assert out.getvalue() == b"before" + content
    assert sum(told) == file.size


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 503, "times": 2},
        {"status": 500, "times": 2},
        {"status": 429, "headers": {"Retry-After": "0"}, "times": 2},
        {"cut": 3, "times": 1},
        {"cut": 0, "times": 2},
        {"wait": 1.3, "times": 1},
    ],
    ids=str,
)
def test_a_fault_that_passes_is_not_seen(store, kind, fault):
    here = place(store, kind)
    file = here.listed().files[0]
    store.fail("/odd/", **fault)
    assert here.read(file, [(0, file.size)]) == [b"100%.jsonl"]


def test_a_slow_line_is_none_that_stalls(store, kind):
    content = os.urandom(100_000)
    here, file = fresh(store, kind, "slow", content)
    store.log.clear()
    store.fail("/slow", slow=0.15)
    assert here.read(file, [(0, file.size)]) == [content]
    assert len(reads(store)) == 1


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"status": 503}, "no answer after 3 attempts; the last: 503; the store is too busy"),
        ({"status": 429}, "no answer after 3 attempts; the last: 429; the store is too busy"),
        ({"cut": 0}, "no whole answer after 3 attempts in"),
        ({"status": 400}, "no answer after 1 attempt; the last: 400"),
    ],
    ids=str,
)
def test_one_that_stays_is_one_clear_error(store, kind, fault, told):
    here = place(store, kind)
    file = here.listed().files[0]
    store.fail("/odd/", **fault, times=100)
    with pytest.raises(StorageError) as raised:
        here.read(file, [(0, 3)])
    assert f"{kind}://{BUCKET}/odd/100%.jsonl: " in str(raised.value)
    assert told in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_refusal_is_not_tried_again(store, kind):
    here = place(store, kind)
    file = here.listed().files[0]
    for status in (401, 403):
        store.log.clear()
        store.fail(
            "/odd/", status=status, times=100, body="<Error><Code>AccessDenied</Code></Error>"
        )
        with pytest.raises(
            AccessError, match=rf"refuses \({status} AccessDenied\).*credentials were"
        ):
            here.read(file, [(0, 3)])
        assert len(store.log) == 1
        store.faults.clear()


def test_wrong_credentials_are_told_and_not_shown(store, kind):
    soon = datetime.now(UTC) + timedelta(hours=1)
    wrong = {"token": "wrong-token", "expires_at": soon}
    given = (
        {"access_key_id": "WRONGKEY"} if kind == "s3" else {"credential_provider": lambda: wrong}
    )
    with pytest.raises(AccessError, match="credentials were those that were passed") as raised:
        place(store, kind, **given).listed()
    assert "rong" not in str(raised.value)


def test_who_gives_no_credentials_to_a_public_bucket_needs_none(store, kind):
    secrets = ("access_key_id", "secret_access_key", "credential_provider")
    given = {name: each for name, each in store.options(kind).items() if name not in secrets}
    given |= {"skip_signature": True}
    here = ObjectPlace(f"{kind}://{BUCKET}/odd", given, QUICK)
    with pytest.raises(AccessError, match="credentials were none, as skip_signature says"):
        here.listed()
    store.accepts.add("anonymous")
    try:
        assert len(here.listed().files) == len(ODD) + 1
    finally:
        store.accepts.remove("anonymous")
    assert not any("authorization" in seen for _, seen in store.log)


def test_an_object_that_is_replaced_or_gone_is_noticed(store, kind):
    here, file = fresh(store, kind, "changing", b"old content")
    store.put(f"{kind}-changing/changing", b"new content")
    for act in (lambda: here.read(file, [(0, 3)]), lambda: here.fetch(file, io.BytesIO())):
        with pytest.raises(ShardError, match="the object is of another version than when"):
            act()
    store.client.delete_object(Bucket=BUCKET, Key=f"{kind}-changing/changing")
    with pytest.raises(ShardError, match=r"the object is gone \(404 NoSuchKey\)"):
        here.read(file, [(0, 3)])


def test_an_empty_object_that_grew_is_noticed(store, kind):
    here, file = fresh(store, kind, "grown", b"")
    here.fetch(file, io.BytesIO())
    store.put(f"{kind}-grown/grown", b"more")
    with pytest.raises(ShardError, match="of another version"):
        here.fetch(file, io.BytesIO())


def test_a_prefix_without_anything_is_told_what_it_is(store, kind):
    with pytest.raises(DatasetNotFoundError, match="nowhere: nothing lies there; look at the path"):
        place(store, kind, "nowhere").listed()
    with pytest.raises(
        DatasetNotFoundError, match=rf"is a file; pass its folder '{kind}://.*/odd'"
    ):
        place(store, kind, "odd/Z.jsonl").listed()
    other = ObjectPlace(f"{kind}://no-such-bucket/a", store.options(kind), QUICK)
    with pytest.raises(
        DatasetNotFoundError, match=r"no such bucket or container \(404 NoSuchBucket"
    ):
        other.listed()


def test_names_that_no_client_can_ask_for_are_refused(store, kind):
    store.put(f"{kind}-slashes//a", b"x")
    with pytest.raises(StorageError, match="a name there has an empty part"):
        place(store, kind, f"{kind}-slashes").listed(deep=True)


def test_plain_http_is_refused_until_it_is_allowed(store, kind):
    with pytest.raises(StorageError, match="for an http:// endpoint set AWS_ALLOW_HTTP=true"):
        place(store, kind, allow_http=False).listed()


def test_who_pays_is_told_to_the_store(store):
    place(store, "s3", requester_pays=True).listed()
    assert store.log[-1][1]["x-amz-request-payer"] == "requester"


def test_a_pickled_place_reads_with_what_its_process_has(store, kind, monkeypatch):
    here = place(store, kind)
    again = pickle.loads(pickle.dumps(here))
    assert again.url == here.url == f"{kind}://{BUCKET}/odd"
    if kind == "s3":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.options("s3")["access_key_id"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.options("s3")["secret_access_key"])
        assert again.listed() == here.listed()


def in_a_fork(act):
    """Say whether something is true in a process that is forked from this one."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(7 if act() else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_process_that_was_forked_reads_by_another(store):
    content = os.urandom(5 * LONGEST // 4)
    here, file = fresh(store, "s3", "forked", content)
    listed = here.listed()

    def reads_alike():
        out = io.BytesIO()
        here.fetch(file, out)
        return (
            here.listed() == listed
            and here.read(file, [(5, 50), (7, 7)]) == [content[5:50], b""]
            and out.getvalue() == content
        )

    def is_told_what_is_wrong():
        store.put("s3-forked/forked", b"replaced")
        with pytest.raises(ShardError, match="of another version"):
            here.read(file, [(0, 3)])
        with pytest.raises(DatasetNotFoundError, match="nothing lies there"):
            place(store, "s3", "nowhere").listed()
        return True

    def is_told_when_the_other_ends():
        assert here.listed() == listed
        object_reader._reader._process.kill()
        try:
            here.listed()
        except StorageError as error:
            assert "for this forked one has ended (exit code -9)" in str(error)
        return here.listed() == listed

    assert in_a_fork(reads_alike)
    assert in_a_fork(is_told_when_the_other_ends)
    assert in_a_fork(is_told_what_is_wrong)


def test_one_whose_credentials_cannot_go_elsewhere_is_refused_and_does_not_hang(store):
    place(store, "gs").listed()

    def is_refused():
        with pytest.raises(ForkedError, match="multiprocessing_context='spawn'"):
            place(store, "gs").listed()
        return True

    assert in_a_fork(is_refused)


def test_without_the_extra_its_name_is_told(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ImportError, match=r"needs obstore.*pip install 'zephon\[cloud\]'"):
        place(store, "s3").listed()


def test_a_wrong_option_is_refused_at_the_first_use(store):
    with pytest.raises(PlanError, match="cannot be opened"):
        place(store, "s3", nonsense="x").listed()
