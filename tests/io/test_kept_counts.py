"""A directory without an index is looked at once; what is kept is never trusted when stale."""

import gzip
import json
import os
import pickle
import shutil
import time
import warnings
from pathlib import Path

import pytest

from tests.written import KINDS, dataset, in_order, lines, parquet
from zephon import Dataset, Pipeline
from zephon.errors import ShardError
from zephon.io import kept_counts, opening, stamps
from zephon.io.formats import FORMATS

FILES = [kind for kind in KINDS if kind != "in_memory"]
ROWS = [{"text": f"row {n}", "n": n} for n in range(50)]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Where catalogues are kept; of everything, however little and fresh it is."""
    place = tmp_path / "kept"
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", str(place))
    monkeypatch.setattr(kept_counts, "KEPT_SECONDS", 0)
    monkeypatch.setattr(stamps, "SETTLED_NS", -(1 << 60))
    return place


@pytest.fixture
def looked(monkeypatch):
    """The names of the files that were looked at, as they are."""
    found = []
    for known in map(type, opening.FILE_FORMATS.values()):

        def count(self, name, path, was=known.count):
            found.append(path.name)
            return was(self, name, path)

        monkeypatch.setattr(known, "count", count)
    return found


@pytest.fixture
def folder(tmp_path):
    for number in range(5):
        lines(tmp_path / "data", f"{number:03}.jsonl", ROWS[10 * number : 10 * number + 10])
    return tmp_path / "data"


def opened(folder):
    """Open a directory; any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Dataset.from_path("d", folder)


def catalogues(kept):
    return sorted(kept.glob("*.zephon-catalog")) if kept.exists() else []


def same(one, other):
    assert one.shards == other.shards
    assert one.shards.digest() == other.shards.digest()
    assert one.manifest() == other.manifest()
    assert one.fields() == other.fields()
    assert one.shards.mtimes_ns.tolist() == other.shards.mtimes_ns.tolist()
    for mine, theirs in zip(one.shards, other.shards, strict=True):
        assert mine.decoded_bytes == theirs.decoded_bytes
        assert mine.group_rows.tolist() == theirs.group_rows.tolist()
        assert mine.listed_by is None


@pytest.mark.parametrize("kind", FILES)
def test_the_second_opening_looks_at_no_file(kept, tmp_path, looked, read, text, kind):
    folder = tmp_path / "data"
    dataset(kind, folder, ROWS, shards=5)
    there = sorted(os.listdir(folder))
    looked.clear()
    shutil.rmtree(kept)
    first = opened(folder)
    assert looked == there
    second = opened(folder)
    assert looked == there
    assert (first.shards.kept_in, second.shards.kept_in) == ("", str(catalogues(kept)[0]))
    same(second, first)
    assert read(second, text).values() == read(first, text).values() == [r["text"] for r in ROWS]
    assert sorted(os.listdir(folder)) == there  # nothing is written beside the data
    third = pickle.loads(pickle.dumps(second))
    shutil.rmtree(kept)
    same(third, first)
    assert read(third, text).values() == read(first, text).values()


def test_of_few_files_nothing_is_kept(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(stamps, "SETTLED_NS", -(1 << 60))
    assert opened(folder).total() == 50
    assert not (tmp_path / "kept").exists()


def test_many_files_are_worth_it(tmp_path, monkeypatch, looked):
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(stamps, "SETTLED_NS", -(1 << 60))
    lines(tmp_path / "data", "0000.jsonl", ROWS)
    for number in range(1, 1000):
        os.link(tmp_path / "data" / "0000.jsonl", tmp_path / "data" / f"{number:04}.jsonl")
    with pytest.warns(RuntimeWarning, match=r"kept for the next time in '.*\.zephon-catalog'; wri"):
        Dataset.from_path("d", tmp_path / "data")
    looked.clear()
    assert opened(tmp_path / "data").total() == 50_000
    assert looked == []


def written_over(file):
    file.write_bytes(file.read_bytes().replace(b"\n", b" ", 1))


def moved_over(file):
    file.with_suffix(".new").write_bytes(file.read_bytes().replace(b"\n", b" ", 1))
    os.replace(file.with_suffix(".new"), file)


def appended(file):
    with file.open("ab") as there:
        there.write(b'{"text": "more"}\n')


def cut_off(file):
    os.truncate(file, 40)


def other_file(file):
    file.unlink()
    file.symlink_to(file.with_name("000.jsonl"))


@pytest.mark.parametrize("preserved", [False, True])
@pytest.mark.parametrize("change", [written_over, moved_over, appended, cut_off, other_file])
def test_what_has_changed_is_looked_at_again(kept, folder, looked, read, text, change, preserved):
    opened(folder)
    file = folder / "002.jsonl"
    was = file.stat()
    time.sleep(0.02)
    change(file)
    if preserved and not file.is_symlink():
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    looked.clear()
    found = opened(folder)
    assert looked == ["002.jsonl"]
    shutil.rmtree(kept)
    wanted = opened(folder)
    same(found, wanted)
    if change is not written_over and change is not moved_over and change is not cut_off:
        assert read(found, text).values() == read(wanted, text).values()
    looked.clear()
    same(opened(folder), wanted)
    assert looked == []


def test_new_files_are_looked_at_and_vanished_ones_left_out(kept, folder, looked):
    opened(folder)
    (folder / "001.jsonl").unlink()
    (folder / "000.jsonl").rename(folder / "007.jsonl")
    lines(folder, "0025.jsonl", ROWS[:3])
    looked.clear()
    found = opened(folder)
    assert looked == ["0025.jsonl", "007.jsonl"]
    assert found.counts().tolist() == [10, 3, 10, 10, 10]
    shutil.rmtree(kept)
    same(found, opened(folder))


def test_two_files_that_change_places(kept, folder, looked, read, text):
    opened(folder)
    (folder / "000.jsonl").rename(folder / "x")
    (folder / "001.jsonl").rename(folder / "000.jsonl")
    (folder / "x").rename(folder / "001.jsonl")
    looked.clear()
    found = opened(folder)
    assert looked == ["000.jsonl", "001.jsonl"]
    texts = [row["text"] for row in ROWS]
    assert read(found, text).values() == texts[10:20] + texts[:10] + texts[20:]


def test_a_file_that_was_just_written_is_not_known_by_its_stamp(kept, folder, monkeypatch, looked):
    monkeypatch.setattr(stamps, "SETTLED_NS", 2 * 10**9)
    opened(folder)
    assert catalogues(kept) == []
    later = time.time_ns() + 3 * 10**9
    monkeypatch.setattr(stamps.time, "time_ns", lambda: later)
    opened(folder)
    looked.clear()
    opened(folder)
    assert looked == []


def test_a_file_that_is_written_while_it_is_looked_at_is_not_kept(kept, folder, monkeypatch):
    count = type(FORMATS["jsonl"]).count

    def written_meanwhile(self, name, path):
        if path.name == "002.jsonl":
            appended(folder / "002.jsonl")
        return count(self, name, path)

    with monkeypatch.context() as patch:
        patch.setattr(type(FORMATS["jsonl"]), "count", written_meanwhile)
        assert opened(folder).total() == 51
    seen = []
    monkeypatch.setattr(
        type(FORMATS["jsonl"]), "count", lambda s, n, p: seen.append(p.name) or count(s, n, p)
    )
    assert opened(folder).total() == 51
    assert seen == ["002.jsonl"]


def test_a_directory_and_a_pipe_in_place_of_a_file(kept, folder):
    opened(folder)
    (folder / "002.jsonl").unlink()
    os.mkfifo(folder / "002.jsonl")
    assert opened(folder).counts().tolist() == [10] * 4
    (folder / "003.jsonl").unlink()
    (folder / "003.jsonl").mkdir()
    assert opened(folder).counts().tolist() == [10] * 3


def test_a_file_that_changes_afterwards_is_refused_as_ever(kept, folder, read, text):
    opened(folder)
    found = opened(folder)
    appended(folder / "003.jsonl")
    with pytest.raises(ShardError, match=r"003\.jsonl.*written to since"):
        read(found, text).values()


def test_a_bad_file_is_told_each_time(kept, folder):
    (folder / "004.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}\n' * 9)[:-9])
    for _ in range(2):
        with pytest.raises(ShardError, match=r"004\.jsonl\.gz"):
            opened(folder)


def test_what_was_found_before_an_end_is_kept(kept, folder, monkeypatch, looked):
    monkeypatch.setattr(kept_counts, "_SAVED_SECONDS", -1)
    monkeypatch.setattr(kept_counts, "_SAVED_SHARE", 0)
    (folder / "004.jsonl").rename(folder / "004.jsonl.gz")  # which it is not
    with pytest.raises(ShardError):
        opened(folder)
    (folder / "004.jsonl.gz").rename(folder / "004.jsonl")
    looked.clear()
    opened(folder)
    assert looked == ["004.jsonl"]


def test_an_index_of_another_tool_that_tells_no_lines(kept, folder, looked):
    shards = [
        {"basename": file.name, "bytes": file.stat().st_size, "num_rows": 10, "extra": {}}
        for file in sorted(folder.iterdir())
    ]
    (folder / "index.json").write_text(json.dumps({"format_version": 1, "shards": shards}))
    opened(folder)
    looked.clear()
    found = opened(folder)
    assert looked == []
    assert found.shards.listed_by.file == "index.json"
    appended(folder / "003.jsonl")
    with pytest.raises(ShardError, match=r"it has 11 rows in \d+ bytes, not 10"):
        opened(folder)


def test_a_format_that_is_chosen_has_a_catalogue_of_its_own(kept, folder, looked):
    parquet(folder, "a.parquet", ROWS)
    for fmt in ("jsonl", "parquet"):
        Dataset.from_path("d", folder, fmt=fmt)
    looked.clear()
    assert Dataset.from_path("d", folder, fmt="jsonl").shard_count() == 5
    assert Dataset.from_path("d", folder, fmt="parquet").shard_count() == 1
    assert looked == []
    assert len(catalogues(kept)) == 2


def test_names_that_are_odd(kept, tmp_path, looked):
    names = ["a b.jsonl", "a#%41[1]*?.jsonl", "é木.jsonl", "-.jsonl", "q\"'.jsonl"]
    for name in names:
        lines(tmp_path / "da ta[", name, ROWS[:2])
    first = opened(tmp_path / "da ta[")
    looked.clear()
    same(opened(tmp_path / "da ta["), first)
    assert looked == []


def test_the_plan_says_what_told_of_the_shards(kept, folder):
    assert "told of by" not in Pipeline(in_order(opened(folder))).explain()
    place = catalogues(kept)[0]
    assert f"\n    told of by {place}\n" in Pipeline(in_order(opened(folder))).explain()


def test_where_catalogues_are_kept(tmp_path, monkeypatch, folder):
    monkeypatch.setattr(kept_counts, "KEPT_SECONDS", 0)
    monkeypatch.setattr(stamps, "SETTLED_NS", -(1 << 60))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    opened(folder)
    own = tmp_path / "home" / ".cache" / "zephon" / ".catalog"
    assert len(catalogues(own)) == 1
    assert {path.stat().st_mode & 0o777 for path in own.iterdir()} == {0o600}
    assert own.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("ZEPHON_CATALOG_DIR", "~/named")
    opened(folder)
    assert len(catalogues(Path.home() / "named")) == 1
