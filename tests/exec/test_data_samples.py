"""Data of which a mark samples a part, full hashes, and shards that are too many to record each."""

import json
import os
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.exec.checked_data import (
    following,
    in_memory,
    made,
    pipe,
    rewrite,
    rows,
    taken,
    tell,
    write,
)  # fmt: skip
from zephon.errors import CheckpointError, PlanError, ShardError
from zephon.exec.session import state_of
from zephon.io.marks import WHOLE_BYTES


def large(folder, seed=0, rows=40_000):
    """Write Parquet whose footer is the same whatever the seed is."""
    folder.mkdir(exist_ok=True)
    numbers = np.random.default_rng(seed).permutation(rows)
    lists = pa.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32), pa.array(numbers))
    table = pa.table({"input_ids": lists})
    pq.write_table(table, folder / "0.parquet", compression="none", use_dictionary=False)
    assert (folder / "0.parquet").stat().st_size > WHOLE_BYTES
    return folder


def test_what_was_written_again_and_looks_the_same_is_warned_of(tmp_path):
    folder = large(tmp_path)
    state, _ = taken(pipe(folder))
    large(folder, seed=1)
    with pytest.warns(RuntimeWarning, match=r"data of 'prose': shard '0.parquet' was written ag"):
        running = iter(pipe(folder).restore(state))
    running.close()


def test_with_full_hashes_it_is_found_or_known_to_be_the_same(tmp_path):
    folder = large(tmp_path)
    state, rest = taken(pipe(folder, verify_data="full"))
    assert "full" in state["manifest"]["prose"]
    os.utime(folder / "0.parquet", (1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pipe(folder).restore(state)
        running = iter(found)
        assert state_of(found._engine) == state  # full hashes stay, though nobody asks for them
        assert following(running) == rest
    large(folder, seed=1)
    for verify in ("sampled", "full"):
        with pytest.raises(CheckpointError, match=r"'0.parquet': was 40,000 rows of .* other cont"):
            iter(pipe(folder, verify_data=verify).restore(state))


def test_full_finds_what_has_its_old_time(tmp_path):
    folder = large(tmp_path)
    state, _ = taken(pipe(folder, verify_data="full"))
    then = (folder / "0.parquet").stat()
    large(folder, seed=1)
    os.utime(folder / "0.parquet", ns=(then.st_atime_ns, then.st_mtime_ns))
    with pytest.raises(CheckpointError, match="other content"):
        iter(pipe(folder, verify_data="full").restore(state))


def test_full_hashes_begin_where_they_are_asked_for(tmp_path):
    folder = large(tmp_path)
    state, rest = taken(pipe(folder))
    with pytest.warns(RuntimeWarning, match=r"no full hashes, so verify_data='full' could compare"):
        found = pipe(folder, verify_data="full").restore(state)
        running = iter(found)
    later = state_of(found._engine)
    assert "full" in later["manifest"]["prose"]
    assert later["manifest"]["prose"]["marks"] == state["manifest"]["prose"]["marks"]
    assert following(running) == rest


def test_an_index_of_lines_tells_full_hashes(tmp_path):
    folder = made("jsonl", tmp_path, "index")
    state, _ = taken(pipe(folder))
    whole, _ = taken(pipe(folder, verify_data="full"))
    assert state["manifest"] == whole["manifest"]


def test_full_holds_files_against_their_index(tmp_path):
    folder = made("jsonl", tmp_path, "index")
    index = json.loads((folder / "index.json").read_bytes())
    index["shards"][2]["hashes"]["sha256"] = "0" * 64
    (folder / "index.json").write_text(json.dumps(index))
    pipe(folder).checkpoint()
    with pytest.raises(ShardError, match=r"'002.jsonl': the file must be as index.json says, but"):
        pipe(folder, verify_data="full").checkpoint()


def test_an_unknown_way_to_verify_is_refused():
    with pytest.raises(PlanError, match=r"verify_data='all' is unknown; .*full"):
        pipe(in_memory({0: rows(0)}), verify_data="all")


# More shards than are told one by one; few are many here, so that it does not take long

MOST = 8
MODULES = ("io.recorded", "io.contents", "exec.manifest", "exec.data_check")


@pytest.fixture
def few_are_many(monkeypatch):
    for module in MODULES:
        monkeypatch.setattr(f"zephon.{module}.RECORDED_SHARDS", MOST)


def many(folder, count, start=0):
    for number in range(start, count):
        write("jsonl", folder, number, rows(number))
    return folder


def test_of_very_many_shards_those_that_come_last_are_told(tmp_path, few_are_many):
    folder = many(tmp_path, 9)
    state, rest = taken(pipe(folder))
    assert set(state["manifest"]["prose"]) == {"written"}
    found = pipe(folder).restore(state)
    running = iter(found)
    assert state_of(found._engine) == state
    assert following(running) == rest
    many(folder, 11, start=9)
    with pytest.raises(CheckpointError, match=r"'009.jsonl': was not .*\n.*'010.jsonl': was not"):
        iter(pipe(folder).restore(state))
    (folder / "010.jsonl").unlink()
    (folder / "009.jsonl").rename(folder / "0000.jsonl")
    with pytest.raises(CheckpointError, match=r"only a digest is kept, so which differ is not"):
        iter(pipe(folder).restore(state))
    (folder / "0000.jsonl").unlink()
    (folder / "001.jsonl").unlink()
    with pytest.raises(CheckpointError, match=r"prose', shards: was 9, is 8: of so many shards"):
        iter(pipe(folder).restore(state))


def test_of_very_many_shards_times_are_compared_where_marks_are_not_known(tmp_path, few_are_many):
    folder = many(tmp_path, 9)
    state, rest = taken(pipe(folder))
    os.utime(folder / "001.jsonl", (1, 1))
    with pytest.warns(RuntimeWarning, match="some shards were written again since the checkpoint"):
        running = iter(pipe(folder).restore(state))
    assert following(running) == rest


@pytest.mark.parametrize("way", ["index", "catalogue"])
def test_of_very_many_shards_marks_are_those_that_an_index_tells(tmp_path, few_are_many, way):
    folder = made("jsonl", tmp_path, way, shards=9)
    state, rest = taken(pipe(folder))
    assert set(state["manifest"]["prose"]) == {"marks", "full"}
    assert following(iter(pipe(folder).restore(state))) == rest
    rewrite("jsonl", folder, 7)
    with pytest.raises(ShardError, match=r"'007.jsonl': the file must be as .* something else in"):
        list(pipe(folder).restore(state))  # when it is opened
    tell("jsonl", folder, way)
    with pytest.raises(CheckpointError, match=r"some shards: was with the content of then"):
        iter(pipe(folder).restore(state))


def test_where_many_become_very_many_those_of_then_are_compared(tmp_path, few_are_many):
    folder = many(tmp_path, 8)
    state, _ = taken(pipe(folder))
    many(folder, 9, start=8)
    with pytest.raises(CheckpointError, match=r"'008.jsonl': was not there") as found:
        iter(pipe(folder).restore(state))
    assert "content" not in str(found.value)
    rewrite("jsonl", folder, 3)
    with pytest.raises(CheckpointError, match=r"'003.jsonl': .* other content"):
        iter(pipe(folder).restore(state))


def test_full_hashes_of_very_many(tmp_path, few_are_many):
    folder = many(tmp_path, 9)
    state, rest = taken(pipe(folder, verify_data="full"))
    assert set(state["manifest"]["prose"]) == {"written", "full"}
    os.utime(folder / "001.jsonl", (1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        running = iter(pipe(folder, verify_data="full").restore(state))
    assert following(running) == rest
    rewrite("jsonl", folder, 1)
    with pytest.raises(CheckpointError, match=r"some shards: was with the content of then"):
        iter(pipe(folder, verify_data="full").restore(state))


def test_ranks_may_have_copies_of_their_own(tmp_path):
    """Times differ then, and nothing else does; the united state has those of the first part."""
    parts = []
    for rank in range(2):
        folder = made("jsonl", tmp_path / str(rank), "files")
        os.utime(folder / "001.jsonl", (rank, rank))
        parts.append(pipe(folder, dp_degree=2, dp_group_id=rank).checkpoint(scope="local"))
    one, other = (part["manifest"]["prose"] for part in parts)
    assert one["written"] != other["written"]
    found = pipe(tmp_path / "0").restore(parts)
    assert found.checkpoint()["manifest"] == parts[0]["manifest"]
    assert following(iter(found)) == following(iter(pipe(tmp_path / "0")))
    rewrite("jsonl", tmp_path / "1", 2)
    parts[1] = pipe(tmp_path / "1", dp_degree=2, dp_group_id=1).checkpoint(scope="local")
    with pytest.raises(CheckpointError, match="parts 0 and 1 differ in 'manifest'"):
        pipe(tmp_path / "0").restore(parts)


def test_explain_says_of_which_data_too_little_is_known(tmp_path, few_are_many):
    folder = many(tmp_path, 9)
    words = "bytes and times alone, unless an index tells content marks: `zephon index "
    assert f"{words}{folder}`" in pipe(folder).explain()
    tell("jsonl", folder, "index")
    assert "content marks" not in pipe(folder).explain()
