"""Datasets in a bucket give the batches of the same files here, whichever way they are read."""

import os
import pickle
import re

import boto3
import pytest

from tests.far_rows import digest_of, files_of, pipeline_of, write_files
from tests.served_bucket import served_bucket
from zephon import Dataset
from zephon.errors import CheckpointError, DatasetError, PlanError, ShardError
from zephon.io.far_opening import open_place
from zephon.io.formats.registering import FILE_FORMATS
from zephon.io.selection import DIRECT
from zephon.io.storage.objects import ObjectPlace
from zephon.io.storage.place import Place

KINDS = ("parquet", "jsonl", "jsonl.gz")

pytestmark = pytest.mark.filterwarnings("ignore:.*was sampled only:RuntimeWarning")


class Counting(Place):
    """A place that counts what is asked of it."""

    def __init__(self, inner):
        self.inner, self.asked, self.bytes = inner, [], 0

    @property
    def url(self):
        return self.inner.url

    def listed(self, folder="", *, deep=False):
        self.asked.append("list")
        return self.inner.listed(folder, deep=deep)

    def look(self, name):
        self.asked.append(f"look {name}")
        return self.inner.look(name)

    def read(self, file, ranges):
        self.asked.append(f"read {file.name}")
        self.bytes += sum(stop - start for start, stop in ranges)
        return self.inner.read(file, ranges)

    def fetch(self, file, target, told=None):
        self.asked.append(f"fetch {file.name}")
        self.inner.fetch(file, target, told)


@pytest.fixture(scope="module")
def bucket():
    with served_bucket() as url:
        client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT"])
        for kind in KINDS:
            for name, content in files_of(kind).items():
                client.put_object(Bucket="training", Key=f"{kind}/{name}", Body=content)
        yield url


@pytest.fixture(scope="module")
def client(bucket):
    return boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT"])


@pytest.fixture(autouse=True)
def _catalogs(tmp_path, monkeypatch):
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", str(tmp_path / "catalogs"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_batches_cached_or_direct_cold_or_warm(kind, bucket, tmp_path):
    here = Dataset.from_path("d", write_files(kind, tmp_path / "here"))
    there = Dataset.from_path("d", f"{bucket}/{kind}/")
    assert there.path == f"{bucket}/{kind}"
    assert there.manifest() == here.manifest()
    assert there.fields() == here.fields()
    wanted = digest_of(pipeline_of(here))
    cache = {"enabled": True, "root": str(tmp_path / "cache")}
    for io_options in ({"cache": cache}, {"cache": cache}, {"cache": cache, "direct": True}):
        assert digest_of(pipeline_of(there, io_options=io_options)) == wanted
    if kind == "parquet":
        assert digest_of(pipeline_of(there)) == wanted
    else:
        told = re.escape(
            f"Cannot read remote dataset root '{bucket}/{kind}' without the shard cache; set "
            "cache.enabled=True."
        )
        with pytest.raises(ValueError, match=told):
            next(iter(pipeline_of(there)))


def test_the_same_batches_in_other_processes(bucket, tmp_path):
    here = Dataset.from_path("d", write_files("parquet", tmp_path / "here"))
    there = Dataset.from_path("d", f"{bucket}/parquet")
    wanted = digest_of(pipeline_of(here))
    cache = {"cache": {"enabled": True, "root": str(tmp_path / "cache")}}
    assert digest_of(pipeline_of(there, io_options=cache, runner="process")) == wanted
    assert digest_of(pipeline_of(there, mtp_mode=True)) == wanted
    sent = pickle.dumps(there)
    assert b"hidden-secret" not in sent
    assert pickle.loads(sent) == there


def test_a_run_goes_on_from_here_to_there_and_back(bucket, tmp_path):
    here = Dataset.from_path("d", write_files("jsonl", tmp_path / "here"))
    there = Dataset.from_path("d", f"{bucket}/jsonl")
    cache = {"cache": {"enabled": True, "root": str(tmp_path / "cache")}}
    whole = [batch.to_training(tokens_field="input_ids") for batch in pipeline_of(here)]
    state, at = None, 0
    for dataset in (here, there, here):
        pipeline = pipeline_of(dataset, io_options=cache)
        if state is not None:
            pipeline.restore(state)
        batches = iter(pipeline)
        for wanted in whole[at : at + 7]:
            found = next(batches).to_training(tokens_field="input_ids")
            assert (found["input_ids"] == wanted["input_ids"]).all()
        at += 7
        state = pipeline.checkpoint()
        assert state["manifest"]["d"].get("url", "") == ("" if dataset is here else there.path)
        batches.close()


def test_data_that_changed_there_is_refused(bucket, client):
    files = files_of("parquet")
    for name, content in files.items():
        client.put_object(Bucket="training", Key=f"changing/{name}", Body=content)
    pipeline = pipeline_of(Dataset.from_path("d", f"{bucket}/changing"))
    batches = iter(pipeline)
    next(batches)
    state = pipeline.checkpoint()
    batches.close()
    open_before = Dataset.from_path("d", f"{bucket}/changing")
    other = files["1.parquet"].replace(b"word", b"wird")
    assert len(other) == len(files["1.parquet"])
    client.put_object(Bucket="training", Key="changing/1.parquet", Body=other)
    with pytest.raises(ShardError, match=r"changing/1\.parquet"):
        list(pipeline_of(open_before))
    again = pipeline_of(Dataset.from_path("d", f"{bucket}/changing"))
    again.restore(state)
    with pytest.raises(CheckpointError, match=r"1\.parquet"):
        next(iter(again))


def test_what_opening_asks_for(bucket, client):
    for name, content in files_of("parquet").items():
        client.put_object(Bucket="training", Key=f"asked/{name}", Body=content)
    place = Counting(ObjectPlace(f"{bucket}/asked"))
    told = [f"look {name}" for name in ("_catalog.arrow", "index.json", "_index.json")]
    found = open_place("d", place, None, FILE_FORMATS, DIRECT)
    assert place.asked[:4] == [*told, "list"]
    assert {*place.asked[4:]} == {f"read {name}" for name in files_of("parquet")}
    place.asked.clear()
    again = open_place("d", place, None, FILE_FORMATS, DIRECT)
    assert place.asked == [*told, "list"]
    assert again.shards == found.shards


def test_an_index_alone_is_read(bucket, client, tmp_path):
    from zephon.build_index import build_index

    for kind in ("parquet", "jsonl"):
        here = write_files(kind, tmp_path / kind)
        build_index(kind, here, progress=False)
        for file in here.iterdir():
            client.upload_file(str(file), "training", f"indexed/{kind}/{file.name}")
        place = Counting(ObjectPlace(f"{bucket}/indexed/{kind}"))
        found = open_place("d", place, None, FILE_FORMATS, DIRECT)
        assert place.asked[:3] == ["look _catalog.arrow", "look index.json", "fetch index.json"]
        if kind == "parquet":
            assert len(place.asked) == 3
        there = Dataset.from_path("d", f"{bucket}/indexed/{kind}")
        assert (
            there.manifest() == Dataset.from_path("d", here).manifest() == found.shards.manifest()
        )
        cache = {"cache": {"enabled": True, "root": str(tmp_path / "cache")}}
        wanted = digest_of(pipeline_of(Dataset.from_path("d", here)))
        assert digest_of(pipeline_of(there, io_options=cache)) == wanted
    client.put_object(Bucket="training", Key="indexed/parquet/1.parquet", Body=b"another")
    stale = Dataset.from_path("d", f"{bucket}/indexed/parquet")
    with pytest.raises(ShardError, match=r"as index\.json says, but the file has 7 bytes"):
        list(pipeline_of(stale))


def test_what_cannot_be_opened(bucket, client, tmp_path):
    for name, content in files_of("jsonl").items():
        client.put_object(Bucket="training", Key=f"deep/jsonl/{name}", Body=content)
    with pytest.raises(FileNotFoundError, match=f"{bucket}/nowhere"):
        Dataset.from_path("d", f"{bucket}/nowhere")
    with pytest.raises(DatasetError, match="Unsupported dataset format at path"):
        Dataset.from_path("d", f"{bucket}/jsonl", fmt="parquet")
    with pytest.raises(DatasetError, match="unknown URL scheme 'ftp://'"):
        Dataset.from_path("d", "ftp://host/x")
    deep = Dataset.from_path("d", f"{bucket}/deep", glob="jsonl/[01]*")
    assert deep.shards.names.to_pylist() == ["jsonl/0.jsonl", "jsonl/1.jsonl"]
    cache = {"enabled": True, "root": str(tmp_path / "cache"), "limit_bytes": 1000}
    with pytest.raises(OSError, match="limit"):
        next(iter(pipeline_of(deep, io_options={"cache": cache})))
    with pytest.raises(PlanError, match=r"set cache\.enabled=True"):
        next(iter(pipeline_of(deep, io_options={"direct": True})))
