import gzip
import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zephon import Dataset, InMemoryShard
from zephon.debug import (
    DatasetInspector,
    dump_semaphore_leak_report,
    dump_semaphore_registry,
    install_debug_hooks,
)
from zephon.errors import DataError, PlanError
from zephon.io.reader import RowReader

ROWS = [{"text": "a"}, {"text": "b"}, {"text": "c"}]


@pytest.fixture
def dataset():
    return Dataset.from_dict("d", {7: InMemoryShard(ROWS), -1: InMemoryShard([])})


def test_rows_come_in_the_order_of_the_request(dataset):
    with DatasetInspector(dataset) as inspector:
        assert inspector.read(7, 1) == {"text": "b"}
        assert inspector.read_many(7, [2, 0, 2]) == [ROWS[2], ROWS[0], ROWS[2]]
        assert inspector.read_many(np.int64(7), np.array([1])) == [ROWS[1]]
        assert inspector.read_many(-1, []) == []


def test_rows_are_copies(dataset):
    with DatasetInspector(dataset) as inspector:
        inspector.read(7, 0)["text"] = "changed"
        assert inspector.read(7, 0) == {"text": "a"}


def test_rows_of_files_are_as_records_have_them(tmp_path):
    pq.write_table(pa.table({"n": pa.array([1, 2], pa.int16())}), tmp_path / "a.parquet")
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.jsonl").write_text('{"n": [1]}\nno\n')
    with DatasetInspector(Dataset.from_path("d", tmp_path), io_options={"cache": {}}) as inspector:
        assert isinstance(inspector.read(0, 1)["n"], np.int16)
    with DatasetInspector(Dataset.from_path("d", tmp_path / "lines")) as inspector:
        assert inspector.read(0, 0) == {"n": [1]}
        with pytest.raises(DataError, match=r"shard 'a\.jsonl', row 1"):
            inspector.read(0, 1)


@pytest.mark.parametrize(
    ("shard_id", "index", "error", "message"),
    [
        (
            0,
            0,
            ValueError,
            r"shard_id must be one of dataset.ids\(\), got 0; its 2 ids are -1 to 7",
        ),
        ("7", 0, ValueError, "got '7'"),
        (True, 0, ValueError, "got True"),
        (7, 3, IndexError, "'7': sample_index must be a whole number from 0 to 2, got 3"),
        (7, -1, IndexError, "got -1; the shard has 3 rows"),
        (7, 1.0, IndexError, "got 1.0"),
        (-1, 0, IndexError, "the shard has 0 rows"),
    ],
)
def test_rows_that_are_not_there(dataset, shard_id, index, error, message):
    with DatasetInspector(dataset) as inspector, pytest.raises(error, match=message):
        inspector.read(shard_id, index)


@pytest.mark.parametrize("indices", [1, None, "1", {"a": 1}, 1.5])
def test_many_rows_are_named_by_a_list(dataset, indices):
    wanted = r"sample_indices must be a list .*, got .*; for one row call read\(shard_id, "
    with DatasetInspector(dataset) as inspector, pytest.raises(TypeError, match=wanted):
        inspector.read_many(7, indices)


def test_a_closed_inspector_refuses(dataset):
    inspector = DatasetInspector(dataset)
    inspector.close()
    inspector.close()
    for use in (lambda: inspector.read(7, 0), inspector.__enter__):
        with pytest.raises(RuntimeError, match="it must be open, but it was closed"):
            use()


def test_what_is_no_dataset_is_refused(dataset):
    with pytest.raises(TypeError, match="dataset must be a Dataset, got a str"):
        DatasetInspector("d")
    with pytest.raises((PlanError, TypeError), match="io_options"):
        DatasetInspector(dataset, io_options={"cahce": 1})


HUNG = """
import os, signal, time
from zephon.debug import install_debug_hooks
print(install_debug_hooks(), install_debug_hooks())
def a_place_to_find():
    os.kill(os.getpid(), signal.SIGUSR1)
    print("goes on")
a_place_to_find()
"""


def test_a_signal_shows_where_a_process_is():
    done = subprocess.run(
        [sys.executable, "-c", HUNG], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["True True", "goes on"]
    assert "a_place_to_find" in done.stderr


def test_the_hooks_can_be_kept_away(monkeypatch):
    monkeypatch.setenv("ZEPHON_FAULTHANDLER", "0")
    before = signal.getsignal(signal.SIGUSR1)
    assert install_debug_hooks() is False
    assert signal.getsignal(signal.SIGUSR1) is before


def test_what_is_alive_is_said():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="zephon-worker_test")
    thread.start()
    try:
        alive = dump_semaphore_registry()
        assert alive["semaphores"] == []
        assert "zephon-worker_test" in alive["threads"]
        report = dump_semaphore_leak_report()
        assert report.startswith(f"zephon, process {os.getpid()}: semaphores: none; threads: ")
        assert "zephon-worker_test" in report
    finally:
        stop.set()
        thread.join()
    assert "zephon-worker_test" not in dump_semaphore_registry()["threads"]


def test_a_process_without_anything_has_nothing_to_report():
    program = (
        "import zephon.debug as d; print(repr(d.dump_semaphore_leak_report())); "
        "print(d.dump_semaphore_leak_report(force=True))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    plain, forced = done.stdout.splitlines()
    assert plain == "''"
    assert forced.endswith("semaphores: none; threads: none; processes: none")


def test_zephon_alone_does_not_load_it():
    program = "import sys, zephon; print('zephon.debug' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_a_bad_line_is_met_by_who_reads_it_and_by_every_reader_that_checks_rows(tmp_path):
    """Also where an inspector left the block behind in a spill, unchecked."""
    lines = [json.dumps({"n": n}).encode() for n in range(40)]
    lines[7] = b'{"n": 7'
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    dataset = Dataset.from_path("d", tmp_path)
    with DatasetInspector(dataset) as inspector:
        assert inspector.read_many(0, [6, 39, 8]) == [{"n": 6}, {"n": 39}, {"n": 8}]
        where = (
            r"dataset 'd', shard 'a.jsonl.gz', row 7 \(line 8, byte 63\): a line must be one JSON"
        )
        for picks in ([7], [6, 7, 8]):
            with pytest.raises(DataError, match=where):
                inspector.read_many(0, picks)
        cache = inspector._cache
        reader = RowReader(dataset, (), payload=True, cache=cache)
        with pytest.raises(DataError, match=where):
            reader.take(np.zeros(40, np.int64), np.arange(40))
        assert reader.take(np.zeros(1, np.int64), np.array([6])).payload.row(0) == {"n": 6}
