"""A checkpoint and its data: each fault is named before the first batch, in every format."""

import os
import shutil
import warnings

import pytest

from tests.exec.checked_data import (
    CASES,
    FILES,
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
from zephon import Dataset
from zephon.errors import CheckpointError, DatasetError, ShardError
from zephon.exec.session import state_of


@pytest.mark.parametrize(("kind", "way"), CASES)
def test_what_did_not_change_goes_on(kind, way, tmp_path):
    state, rest = taken(pipe(made(kind, tmp_path / "a", way)))
    held = state["manifest"]["prose"]
    assert set(held) >= {"marks", "written"}
    shutil.move(tmp_path / "a", tmp_path / "moved")  # a moved root
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pipe(tmp_path / "moved").restore(state)
        assert found.checkpoint() == state
        running = iter(found)
        assert state_of(found._engine) == state
        assert following(running) == rest
    for number in range(4):  # touched only: small files are marked whole
        os.utime(tmp_path / "moved" / f"{number:03}.{kind}", (1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert following(pipe(tmp_path / "moved").restore(state)) == rest


FAULTS = {
    "renamed": "shard '001.{kind}': was '001.{kind}', is '0015.{kind}': names are part of",
    "appended": "shard '001.{kind}': was 8 rows of .* bytes, is 9 rows of .* bytes: rows are known",
    "rewritten": "shard '001.{kind}': was 8 rows of .* bytes, is as large, with other content: put",
    "added": "allow={{'data'}} .*\n    data of 'prose', shard '004.{kind}': was not",
    "deleted": "shard '001.{kind}': was 8 rows of .* bytes, is gone: its rows are part of",
}


def commit(fault, kind, folder):
    path = folder / f"001.{kind}"
    match fault:
        case "renamed":
            path.rename(folder / f"0015.{kind}")
        case "appended":
            write(kind, folder, 1, rows(1, 9))
        case "rewritten":
            rewrite(kind, folder, 1)
        case "added":
            write(kind, folder, 4, rows(4))
        case "deleted":
            path.unlink()


def refusal(fault, kind, **more):
    return pytest.raises(CheckpointError, match=FAULTS[fault].format(kind=kind, **more))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("kind", "way"), CASES)
def test_each_fault_is_named_before_the_first_batch(kind, way, fault, tmp_path):
    """What tells of the shards was made anew, as it must be after a change."""
    folder = made(kind, tmp_path, way)
    state, _ = taken(pipe(folder))
    commit(fault, kind, folder)
    tell(kind, folder, way)
    if fault == "rewritten" and way != "files":
        assert Dataset.from_path("prose", folder).shards.marks is not None
    with refusal(fault, kind):
        iter(pipe(folder).restore(state))
    with refusal(fault, kind):
        pipe(folder).restore(state).accounting()


STALE = {
    ("renamed", "index"): (DatasetError, "index.json in .* must name files that are there, and"),
    ("deleted", "index"): (DatasetError, "index.json in .* must name files that are there, and"),
    ("renamed", "catalogue"): (ShardError, "'001.{kind}': the file must be there, as _catalog"),
    ("deleted", "catalogue"): (ShardError, "'001.{kind}': the file must be there, as _catalog"),
    ("appended", "index"): (ShardError, "'001.{kind}': the file must be as index.json says"),
    ("appended", "catalogue"): (ShardError, "'001.{kind}': the file must be as _catalog.arrow"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("kind", "way"), [case for case in CASES if case[1] != "files"])
def test_an_index_that_was_not_made_anew_hides_no_fault(kind, way, fault, tmp_path):
    folder = made(kind, tmp_path, way)
    state, rest = taken(pipe(folder))
    commit(fault, kind, folder)
    if fault == "added":  # it is not seen, so the data is what it was
        assert following(pipe(folder).restore(state)) == rest
        return
    error, words = STALE.get((fault, way), (CheckpointError, FAULTS["rewritten"]))
    with pytest.raises(error, match=words.format(kind=kind)):
        iter(pipe(folder).restore(state))


@pytest.mark.parametrize(("before", "after"), [("files", "index"), ("catalogue", "files")])
@pytest.mark.parametrize("kind", FILES)
def test_it_does_not_matter_what_told_of_the_shards_then(kind, before, after, tmp_path):
    folder = made(kind, tmp_path, before)
    state, rest = taken(pipe(folder))
    for file in ("index.json", "_catalog.arrow"):
        (folder / file).unlink(missing_ok=True)
    tell(kind, folder, after)
    other, _ = taken(pipe(folder))
    assert other["manifest"]["prose"]["marks"] == state["manifest"]["prose"]["marks"]
    assert other["manifest"]["prose"]["written"] == state["manifest"]["prose"]["written"]
    assert following(pipe(folder).restore(state)) == rest
    rewrite(kind, folder, 1)
    tell(kind, folder, after)
    with refusal("rewritten", kind):
        iter(pipe(folder).restore(state))


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_rows_in_memory_is_named(fault):
    shards = {number: rows(number) for number in range(4)}
    state, rest = taken(pipe(in_memory(shards)))
    assert set(state["manifest"]["prose"]) == {"marks"}
    assert following(pipe(in_memory({n: rows(n) for n in range(4)})).restore(state)) == rest
    match fault:
        case "renamed":
            shards[15] = shards.pop(1)
        case "appended":
            shards[1] = rows(1, 9)
        case "rewritten":
            shards[1] = [*shards[1][:5], shards[1][6], shards[1][5], *shards[1][7:]]
        case "added":
            shards[4] = rows(4)
        case "deleted":
            del shards[1]
    words = FAULTS[fault].replace("0015.{kind}", "15").replace("00", "").replace(".{kind}", "")
    with pytest.raises(CheckpointError, match=words.format()):
        iter(pipe(in_memory(shards)).restore(state))


def test_a_renamed_shard_is_found_by_what_it_holds(tmp_path):
    """Of two new files of the same size and rows, the one that holds the same."""
    folder = made("jsonl", tmp_path, "files")
    state, _ = taken(pipe(folder))
    (folder / "001.jsonl").rename(folder / "008.jsonl")
    write("jsonl", folder, 7, rows(1, word="drow"))
    assert (folder / "007.jsonl").stat().st_size == (folder / "008.jsonl").stat().st_size
    with pytest.raises(CheckpointError, match=r"'007.jsonl': was not .*\n.*\n.*is '008.jsonl'"):
        iter(pipe(folder).restore(state))


def test_many_faults_are_named_by_their_first(tmp_path):
    folder = made("jsonl", tmp_path, "files", shards=9)
    state, _ = taken(pipe(folder))
    for number in range(5):
        rewrite("jsonl", folder, number)
    with pytest.raises(CheckpointError) as refused:
        iter(pipe(folder).restore(state))
    told = str(refused.value)
    assert "5 shards rewritten: was '000.jsonl' 8 rows of" in told
    assert "'002.jsonl' as large, with other content, ..." in told
    assert "003.jsonl" not in told
