"""The spill changes no byte: on or off, cold or warm, damaged, emptied, shared by processes."""

import contextlib
import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.properties.recipes import lengths, packed, rows, rows_of, source
from tests.written import dataset
from zephon import Dataset, Pipeline, StaticMixtureWorkSource
from zephon.io.spill.room import SUFFIX

ROOT = Path(__file__).parents[2]


def documents(name, seed, count):
    base = 1_000_000 * (1 + seed)
    return [
        {
            "input_ids": list(range(base + 100 * i, base + 100 * i + length)),
            "text": f"{name} {i} " + "tree " * length,
            "url": f"{name}/{i}",
        }
        for i, length in enumerate(lengths(seed, count))
    ]


def write(folder):
    """Write one dataset of many small row groups, and two of many small files."""
    dataset("parquet", folder / "prose", documents("prose", 1, 120), name="prose", shards=3)
    dataset("jsonl", folder / "code", documents("code", 2, 60), name="code", shards=12)
    dataset("jsonl.gz", folder / "chat", documents("chat", 3, 40), name="chat", shards=5)


def opened(folder):
    return [Dataset.from_path(name, folder / name) for name in ("prose", "code", "chat")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write(folder)
    return opened(folder)


WORK = {
    "in order": {"shuffle_within_shard": False},
    "within shards": {"shuffle_within_shard": True},
    "blocks": {"shuffle_within_shard": True, "shuffle_block_size": 70},
    "global": {"shuffle_block_size": "global"},
}


def job(data, order, root=None, *, kind="packed", tokenizer=None, spill=None, **options):
    """Build a small job; without a root there is no spill."""
    place = {"enabled": False} if root is None else {"root": str(root), "min_free_bytes": 0}
    options = {
        "runner": "inline", "canonical_replicas": 3, **options,
        "io_options": {"parquet": {"rg_cache": {**place, **(spill or {})}}},
    }  # fmt: skip
    if kind == "packed":
        return packed(data, work=WORK[order], **options)
    pipeline = Pipeline(source(data, chunk_size=8, **WORK[order]))
    if kind == "kept payload":
        pipeline = pipeline.tokenize(
            tokenizer_id=tokenizer, field="text", preserve_upstream_payload=True
        )
    return pipeline.options(**options)


def payloads(pipeline):
    return [(r.meta.sample_id, r.meta.lineage, repr(r.payload)) for r in pipeline]


@pytest.fixture(scope="module")
def oracle(data):
    return {order: rows(job(data, order, memory_budget="256mb")) for order in WORK}


def spilled(root):
    return sorted(Path(root).glob(f"*{SUFFIX}"))


@pytest.mark.parametrize(
    ("order", "runner", "memory"),
    [
        ("in order", "threads", "1kb"),
        ("within shards", "inline", "20kb"),
        ("blocks", "threads", "20kb"),
        ("blocks", "inline", "1kb"),
        ("global", "threads", "1kb"),
    ],
)
def test_a_spill_changes_no_byte_cold_or_warm(data, oracle, tmp_path, order, runner, memory):
    options = {"runner": runner, "memory_budget": memory}
    assert rows(job(data, order, **options)) == oracle[order]
    cold = job(data, order, tmp_path, **options)
    assert rows(cold) == oracle[order]
    assert len(spilled(tmp_path)) > 5
    assert rows(cold) == oracle[order]
    assert rows(job(data, order, tmp_path, **options)) == oracle[order]
    assert cold.fingerprint() == job(data, order).fingerprint()
    assert SUFFIX not in Path("/proc/self/maps").read_text()  # nothing stays mapped


@pytest.mark.parametrize("limit", [1, 3000, 20_000])
def test_a_spill_that_is_too_small_changes_no_byte(data, oracle, tmp_path, limit):
    pipe = job(data, "blocks", tmp_path, memory_budget="1kb", spill={"limit_bytes": limit})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one says that there is no room
        assert rows(pipe) == oracle["blocks"]
    assert sum(file.stat().st_size for file in spilled(tmp_path)) <= limit


def shred(file, turn):
    """Put a damaged copy in the file's place."""
    with contextlib.suppress(FileNotFoundError):  # the run itself was faster
        content = bytearray(file.read_bytes()) or bytearray(50)
        content[turn * 97 % len(content)] ^= 255
        damaged = content if turn % 3 else content[: turn * 31 % len(content)]
        other = file.with_suffix(".damaged")
        other.write_bytes(damaged)
        os.replace(other, file)


@pytest.mark.parametrize(
    ("harm", "runner"),
    [("removed", "inline"), ("damaged", "threads"), ("directory removed", "threads")],
)
def test_files_that_are_harmed_while_it_runs_change_no_byte(data, oracle, tmp_path, harm, runner):
    root = tmp_path / "spill"
    pipe = job(data, "global", root, runner=runner, memory_budget="1kb")
    rows(pipe)
    found, harmed = [], 0
    for turn, batch in enumerate(pipe):
        for file in spilled(root):
            harmed += 1
            if harm == "damaged":
                shred(file, turn + harmed)
            else:
                file.unlink(missing_ok=True)
        if harm == "directory removed" and root.exists():
            for file in root.iterdir():
                file.unlink(missing_ok=True)
            root.rename(tmp_path / f"gone-{turn}")
        found += rows_of(batch)
    assert found == oracle["global"]
    assert harmed > 50


@pytest.mark.parametrize("kind", ["records", "kept payload"])
@pytest.mark.parametrize("order", ["within shards", "blocks"])
def test_whole_rows_are_the_same_through_a_spill(data, tokenizer_file, tmp_path, kind, order):
    def made(root, memory):
        found = job(data, order, root, kind=kind, tokenizer=tokenizer_file, memory_budget=memory)
        return payloads(found)

    wanted = made(None, "256mb")
    assert len(wanted) > 200
    for _ in range(2):
        assert made(tmp_path, "1kb") == wanted
    assert len(spilled(tmp_path)) > 5


def test_a_restored_run_goes_on_the_same_through_a_spill(data, oracle, tmp_path):
    pipe = job(data, "blocks", tmp_path, memory_budget="1kb")
    stream = iter(pipe)
    before = [row for _ in range(7) for row in rows_of(next(stream))]
    state = pipe.checkpoint()
    stream.close()
    after = rows(job(data, "blocks", memory_budget="20kb").restore(state))
    assert before + after == oracle["blocks"]
    again = rows(job(data, "blocks", tmp_path, memory_budget="1kb").restore(state))
    assert again == after


def digest(found):
    return hashlib.sha256(repr(found).encode()).hexdigest()


PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.properties.recipes import rows
from tests.properties.test_spill import digest, job, opened

data = opened(Path({folder!r}))
for order in ("global", "blocks"):
    pipe = job(data, order, {spill!r}, runner="threads", memory_budget="1kb",
               spill={{"limit_bytes": 40_000}})
    print(digest(rows(pipe)), flush=True)
"""


def test_processes_that_share_a_spill_change_no_byte(data, oracle, tmp_path):
    folder = Path(data[0].path).parent
    program = PROGRAM.format(root=str(ROOT), folder=str(folder), spill=str(tmp_path))
    command = (sys.executable, "-W", "ignore", "-c", program)
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    found = [process.communicate(timeout=120)[0].split() for process in running]
    assert found == [[digest(oracle["global"]), digest(oracle["blocks"])]] * 2
    assert spilled(tmp_path)


def test_the_last_few_bytes_of_memory_do_not_matter(data, oracle, tmp_path):
    for size in np.random.default_rng(3).integers(1, 30_000, 6).tolist():
        found = rows(job(data, "within shards", tmp_path, memory_budget=size))
        assert found == oracle["within shards"]


def test_it_is_on_by_itself_where_the_order_needs_it(data, oracle, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / ".cache" / "zephon" / ".parquet-rg-cache"
    options = {"runner": "inline", "canonical_replicas": 3}
    for memory, there in (("256mb", False), ("1kb", True)):
        pipe = packed(data, work=WORK["blocks"], memory_budget=memory, **options)
        assert (f"mapped from {place}" in pipe.explain()) is there
        assert rows(pipe) == oracle["blocks"]
        assert place.exists() is there


def test_a_group_whose_lists_are_all_empty_comes_back_from_the_spill(tmp_path):
    schema = pa.schema([("input_ids", pa.list_(pa.int64()))])
    rows = [{"input_ids": [1, 2]}, {"input_ids": []}, {"input_ids": [3]}, {"input_ids": []}]
    (tmp_path / "data").mkdir()
    pq.write_table(
        pa.Table.from_pylist(rows, schema=schema), tmp_path / "data" / "0.parquet", row_group_size=1
    )

    def tokens():
        source = StaticMixtureWorkSource([Dataset.from_path("a", tmp_path / "data")], {"a": 1.0})
        pipeline = Pipeline(source).pack_flat(1, algorithm="wrap").batch(1)
        pipeline.options(runner="inline", memory_budget=1, canonical_replicas=2)
        pipeline.options(io_options={"parquet": {"rg_cache": {"root": str(tmp_path / "spill")}}})
        return [list(r.payload["input_ids"]) for batch in pipeline for r in batch.records]

    assert sorted(tokens()) == sorted(tokens()) == [[1], [2], [3]]
