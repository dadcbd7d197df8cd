"""Data that changes while a job runs, or differs between ranks: found and named, never mixed."""

import os
import re
from itertools import islice

import pytest

from tests.exec.checked_data import following, made, pipe, rewrite, rows, taken, tell, write
from tests.written import lines, parquet
from zephon.errors import CheckpointError, ShardError


def test_a_shard_that_is_added_in_a_run_is_not_seen_by_it(tmp_path):
    """What a dataset is made of is fixed when it is opened; a restored run says what is new."""
    folder = made("jsonl", tmp_path, "files")
    _, rest = taken(pipe(folder), batches=5)
    running = iter(pipeline := pipe(folder))
    for _ in range(5):
        next(running)
    write("jsonl", folder, 4, rows(4))
    assert following(running) == rest
    with pytest.raises(CheckpointError, match=r"'004\.jsonl': was not there, is 8 rows of"):
        iter(pipe(folder).restore(pipeline.checkpoint()))


@pytest.mark.parametrize(("kind", "way"), [("jsonl", "files"), ("parquet", "index")])
def test_a_shard_that_is_added_between_others_joins_at_the_next_pass(kind, way, tmp_path):
    """The pass of then goes on as it would have; the next has the new rows, each of them once."""
    folder = made(kind, tmp_path, way)
    state, rest = taken(pipe(folder), batches=3)
    (parquet if kind == "parquet" else lines)(folder, f"0005.{kind}", rows(9))
    tell(kind, folder, way)
    with pytest.raises(CheckpointError, match=rf"allow={{'data'}} .*\n.*'0005\.{kind}': was not"):
        iter(pipe(folder).restore(state))
    edited = pipe(folder).restore(state, allow={"data"})
    items = iter(edited)
    first = following(islice(items, 5))
    again = edited.checkpoint()
    found = first + following(items)
    assert first + following(pipe(folder).restore(again)) == found
    assert found[:11] == rest[:11]  # 32 documents of 4 tokens fill 7 rows of each lane
    tokens = [token for batch in found for row in batch for token in row]
    assert 7 <= tokens.count(9) <= 8  # the last document may be cut, and its row is dropped
    assert len(found) > len(rest)


@pytest.mark.parametrize("change", ["gone", "longer", "rewritten"])
def test_with_a_shard_more_no_other_may_differ(change, tmp_path):
    folder = made("jsonl", tmp_path, "files")
    state, _ = taken(pipe(folder))
    write("jsonl", folder, 4, rows(4))
    if change == "gone":
        (folder / "002.jsonl").unlink()
    elif change == "longer":
        write("jsonl", folder, 2, rows(2, count=9))
    else:
        rewrite("jsonl", folder, 2)
    with pytest.raises(CheckpointError, match=r"nothing lets through:\n.*'002\.jsonl': was 8 rows"):
        iter(pipe(folder).restore(state, allow={"data"}))


def test_rows_that_join_behind_the_end_are_warned_of(tmp_path):
    folder = made("jsonl", tmp_path, "files")
    state, rest = taken(pipe(folder), batches=20)
    write("jsonl", folder, 4, rows(4))
    words = "'prose', their rows join after 2 passes, and the run ends once each .* made 2 passes"
    with pytest.warns(RuntimeWarning, match=words):
        assert following(pipe(folder).restore(state, allow={"data"})) == rest


def test_a_rank_whose_listing_lacks_a_file_is_told_from_the_others(tmp_path):
    whole, short = (made("jsonl", tmp_path / name, "files") for name in ("whole", "short"))
    (short / "002.jsonl").unlink()
    ranks = [{"dp_degree": 2, "dp_group_id": rank} for rank in range(2)]
    pipes = [pipe(folder, **rank) for folder, rank in zip((whole, short), ranks, strict=True)]
    assert pipes[0].fingerprint() != pipes[1].fingerprint()
    parts = [each.checkpoint(scope="local") for each in pipes]
    with pytest.raises(CheckpointError, match="parts 0 and 1 differ in 'fingerprint'"):
        pipe(whole).restore(parts)
    with pytest.raises(CheckpointError, match=r"'002\.jsonl': was 8 rows of .*, is gone"):
        iter(pipe(short, **ranks[0]).restore(parts[0]))


@pytest.mark.parametrize("way", ["index", "catalogue"])
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "jsonl.gz"])
def test_a_shard_that_was_rewritten_behind_its_index_is_refused(kind, way, tmp_path):
    """As many bytes, as many rows, other content: at the time of then, and at its own."""
    folder = made(kind, tmp_path, way)
    rewrite(kind, folder, 2)
    file = {"index": "index.json", "catalogue": "_catalog.arrow"}[way]
    words = rf"'002\.{kind}': the file must be as {file} says, but it holds something else"
    for time in (None, (5, 5)):
        if time is not None:
            os.utime(folder / f"002.{kind}", time)
        with pytest.raises(ShardError, match=words) as refused:
            list(pipe(folder))
        assert re.search(r"make that anew with `zephon index", str(refused.value))
