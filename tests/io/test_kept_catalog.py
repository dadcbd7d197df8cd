"""What is kept is whole or not there, whoever writes, dies or looks at it; and it is bounded."""

import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.written import lines, parquet
from zephon import Dataset
from zephon.io import kept_catalog, kept_counts, stamps
from zephon.io.formats import FORMATS

ROWS = [{"text": f"row {n}", "n": n} for n in range(12)]

RANK = """
import sys, time
from pathlib import Path
from zephon import Dataset
from zephon.io import kept_counts, stamps
from zephon.io.formats import FORMATS

folder, log, seconds, times = sys.argv[1:]
kept_counts.KEPT_SECONDS, stamps.SETTLED_NS = 0, -(1 << 60)
known = type(FORMATS["jsonl"])
count = known.count

def slow(self, name, file):
    with open(log, "a") as log_file:
        log_file.write(file.name + "\\n")
    time.sleep(float(seconds))
    return count(self, name, file)

known.count = slow
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(times)):
    print(Dataset.from_path("d", folder).counts().tolist(), flush=True)
"""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Where catalogues are kept; of everything, however little and fresh it is."""
    place = tmp_path / "kept"
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", str(place))
    monkeypatch.setattr(kept_counts, "KEPT_SECONDS", 0)
    monkeypatch.setattr(stamps, "SETTLED_NS", -(1 << 60))
    return place


@pytest.fixture
def folder(tmp_path):
    for number in range(4):
        lines(tmp_path / "data", f"{number}.jsonl", ROWS[3 * number : 3 * number + 3])
    return tmp_path / "data"


@pytest.fixture
def looked(monkeypatch):
    """The names of the files that were looked at."""
    found, known = [], type(FORMATS["jsonl"])
    count = known.count
    monkeypatch.setattr(known, "count", lambda s, n, p: found.append(p.name) or count(s, n, p))
    return found


def opened(folder):
    return Dataset.from_path("d", folder)


def catalogues(kept):
    return sorted(kept.glob("*.zephon-catalog"))


def rank(folder, log, *, seconds=0.0, times=1):
    """Start a process that opens a directory when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", RANK, folder, log, str(seconds), str(times)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def begin(process):
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_damaged_catalogue_is_never_taken(kept, tmp_path, kind):
    for number in range(3):
        write = lines if kind == "jsonl" else parquet
        write(tmp_path / "data", f"{number}.{kind}", ROWS[: 4 * number + 1])
    wanted = opened(tmp_path / "data")
    (file,) = catalogues(kept)
    content = file.read_bytes()
    catalogue = kept_catalog.KeptCatalog(str(tmp_path / "data"), FORMATS[kind], {})
    taken = 0
    for place in range(0, len(content), 5):
        flipped = bytes([content[place] ^ (1 << place % 8)])
        for damaged in (content[:place] + flipped + content[place + 1 :], content[:place]):
            file.write_bytes(damaged)
            found = catalogue.read(str(tmp_path / "data"))
            taken += found is not None
            assert found is None or known(found.shards) == known(wanted.shards)
    assert taken < len(content) // 10  # padding, and what Arrow does not look at
    assert opened(tmp_path / "data").shards == wanted.shards


def known(shards):
    """Write down all that is known of shards."""
    layouts = [
        shard.layout.schema
        if hasattr(shard.layout, "schema")
        else [shard.layout.offsets.tolist(), shard.layout.first_lines.tolist()]
        for shard in shards
    ]
    groups = [shard.group_rows.tolist() for shard in shards]
    return list(shards), layouts, groups, shards.decoded_bytes.tolist(), shards.mtimes_ns.tolist()


@pytest.mark.parametrize("what", ["__version__", "pa.__version__"])
def test_what_another_version_found_is_not_taken(kept, folder, looked, monkeypatch, what):
    opened(folder)
    looked.clear()
    if what == "__version__":
        monkeypatch.setattr(kept_catalog, "__version__", "0.0.1")
    else:
        monkeypatch.setattr(kept_catalog.pa, "__version__", "1.2")
    opened(folder)
    assert len(looked) == 4


def test_a_catalogue_of_another_directory_under_its_name(kept, tmp_path, folder):
    lines(tmp_path / "other", "0.jsonl", ROWS)
    opened(tmp_path / "other")
    (other,) = catalogues(kept)
    opened(folder)
    (mine,) = [path for path in catalogues(kept) if path != other]
    os.replace(other, mine)
    assert opened(folder).counts().tolist() == [3] * 4


@pytest.mark.parametrize("place", ["/dev/null", "/proc/no/such/place", "file"])
def test_without_a_place_to_keep_it_files_are_looked_at_each_time(
    kept, tmp_path, folder, looked, monkeypatch, place
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", str(tmp_path / place))
    for _ in range(2):
        assert opened(folder).counts().tolist() == [3] * 4
    assert len(looked) == 8


def test_who_has_many_files_is_told_why_nothing_is_kept(kept, tmp_path, monkeypatch):
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", "/dev/null")
    for number in range(64):
        lines(tmp_path / "many", f"{number}.jsonl", ROWS[:1])
    with pytest.warns(RuntimeWarning, match=r"cannot be kept for the next time: .*'/dev/null/"):
        opened(tmp_path / "many")


def test_a_root_that_nobody_named_must_be_the_user_s_alone(tmp_path, monkeypatch, folder, looked):
    monkeypatch.delenv("ZEPHON_CATALOG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(kept_counts, "KEPT_SECONDS", 0)
    monkeypatch.setattr(stamps, "SETTLED_NS", -(1 << 60))
    opened(folder)
    root = tmp_path / ".cache" / "zephon" / ".catalog"
    (file,) = catalogues(root)
    looked.clear()
    opened(folder)
    assert looked == []
    root.chmod(0o777)
    before = file.stat().st_mtime_ns
    opened(folder)
    assert (len(looked), file.stat().st_mtime_ns) == (4, before)
    root.chmod(0o700)
    looked.clear()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    opened(folder)
    assert (len(looked), catalogues(root)) == (4, [file])


def test_the_least_recently_used_leave(kept, tmp_path, monkeypatch, looked):
    monkeypatch.setattr(kept_catalog, "LIMIT_FILES", 2)
    (kept).mkdir()
    (kept / "notes.txt").touch()
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        lines(folder, "0.jsonl", ROWS)
    for folder in (*folders[:2], folders[0], folders[2]):
        opened(folder)
        time.sleep(0.02)
    looked.clear()
    opened(folders[0])
    opened(folders[2])
    assert looked == []
    opened(folders[1])
    assert looked == ["0.jsonl"]
    assert len(catalogues(kept)) == 2
    assert (kept / "notes.txt").exists()


def test_bytes_are_bounded(kept, tmp_path, monkeypatch):
    for name in "abcdef":
        lines(tmp_path / name, "0.jsonl", ROWS)
    opened(tmp_path / "a")
    size = catalogues(kept)[0].stat().st_size
    monkeypatch.setattr(kept_catalog, "LIMIT_BYTES", 3 * size + size // 2)
    for name in "bcdef":
        opened(tmp_path / name)
    assert len(catalogues(kept)) == 3
    monkeypatch.setattr(kept_catalog, "LIMIT_BYTES", size)
    lines(tmp_path / "g", "0.jsonl", ROWS)
    opened(tmp_path / "g")
    assert sorted(path.name for path in kept.iterdir() if path.name.endswith(".tmp")) == []


def test_what_killed_writers_left_is_removed_in_time(kept, folder):
    kept.mkdir()
    draft = kept / f".{40 * 'a'}.zephon-catalog.{32 * 'b'}.tmp"
    lock, notes = kept / f"{40 * 'c'}.lock", kept / ".notes.tmp"
    for path in (draft, lock, notes):
        path.touch()
    opened(folder)
    assert draft.exists()
    assert lock.exists()
    for path in (draft, lock, notes):
        os.utime(path, (0, 0))
    lines(folder, "9.jsonl", ROWS)
    opened(folder)
    assert [path.exists() for path in (draft, lock, notes)] == [False, False, True]


def test_a_large_catalogue_is_mapped(kept, folder, looked, monkeypatch):
    opened(folder)
    monkeypatch.setattr(kept_catalog, "MAPPED_BYTES", 0)
    looked.clear()
    found = opened(folder)
    catalogues(kept)[0].unlink()
    assert found.counts().tolist() == [3] * 4
    assert looked == []


def test_of_ranks_that_begin_together_one_looks_at_the_files(kept, folder, tmp_path):
    ranks = [rank(folder, tmp_path / "log", seconds=0.1) for _ in range(4)]
    for process in ranks:
        begin(process)
    for process in ranks:
        assert process.communicate(timeout=60)[0] == "[3, 3, 3, 3]\n"
        assert process.returncode == 0
    assert sorted((tmp_path / "log").read_text().split()) == [f"{n}.jsonl" for n in range(4)]
    assert sorted(path.suffix for path in kept.iterdir()) == ["", ".zephon-catalog"]  # no lock


def test_another_rank_takes_over_from_one_that_was_killed(kept, folder, tmp_path):
    first = rank(folder, tmp_path / "first", seconds=60)
    begin(first)
    while not (tmp_path / "first").exists():
        time.sleep(0.01)
    second = rank(folder, tmp_path / "second")
    begin(second)
    time.sleep(0.3)
    assert not (tmp_path / "second").exists()  # it waits
    first.send_signal(signal.SIGKILL)
    assert second.communicate(timeout=60)[0] == "[3, 3, 3, 3]\n"
    assert len((tmp_path / "second").read_text().split()) == 4
    first.communicate()


def test_nobody_waits_for_a_rank_that_does_not_get_on(kept, folder, monkeypatch, looked):
    kept.mkdir()
    name = kept_catalog.KeptCatalog(str(folder), FORMATS["jsonl"], {})._digest
    monkeypatch.setattr(kept_catalog, "STALLED_SECONDS", 0.2)
    with (kept / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        began = time.monotonic()
        assert opened(folder).counts().tolist() == [3] * 4
        assert time.monotonic() - began >= 0.2
    assert len(looked) == 4
    assert len(catalogues(kept)) == 1


def test_ranks_that_are_killed_while_they_write_leave_nothing_wrong(kept, folder, tmp_path):
    for number in range(4):
        (folder / "0.jsonl").touch()
        process = rank(folder, tmp_path / "log", times=10_000)
        begin(process)
        process.stdout.readline()
        until = time.monotonic() + 0.02 * number
        while time.monotonic() < until:
            (folder / "1.jsonl").touch()  # so that it is written again and again
        process.send_signal(signal.SIGKILL)
        answers = process.communicate()[0].splitlines()
        assert set(answers[:-1]) <= {"[3, 3, 3, 3]"}
        assert opened(folder).counts().tolist() == [3] * 4
    (folder / "1.jsonl").write_text('{"text": "a"}\n')
    assert opened(folder).counts().tolist() == [3, 1, 3, 3]
    assert opened(folder).counts().tolist() == [3, 1, 3, 3]
