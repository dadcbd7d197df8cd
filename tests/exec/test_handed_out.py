"""Bad rows where they count: written before their batch is handed out, and said at the end."""

import json
import signal
import subprocess
import sys
import warnings
from itertools import islice

import pytest

from tests.written import in_order, lines, pipeline
from zephon import Dataset, Pipeline
from zephon.errors import CheckpointError, DataError, ExecutionError, ShardError

ROWS = 60
BAD = dict.fromkeys(range(5, ROWS, 6), b'{"text": "b')
NULL = dict.fromkeys(range(30, ROWS, 9), b'{"text": null}')
quiet = pytest.mark.filterwarnings("ignore:dataset 'words'")


def write(folder, bad):
    rows = [bad.get(n, json.dumps({"text": f"row {n}"}).encode()) for n in range(ROWS)]
    lines(folder, "a.jsonl", rows[: ROWS // 2])
    lines(folder, "b.jsonl.gz", rows[ROWS // 2 :])


def job(folder, tokenizer_file, *, quarantine=None, **policy):
    source = in_order(Dataset.from_path("words", folder, **policy))
    pipe = Pipeline(source).tokenize(tokenizer_id=tokenizer_file, field="text")
    pipe = pipe.pack_flat(7, algorithm="wrap").batch(1)
    return pipe.options(runner="inline", quarantine=quarantine and str(quarantine))


def tokens(batches):
    return [record.payload["input_ids"] for batch in batches for record in batch.records]


def written(root):
    return sorted(int(path.stem) for path in root.rglob("*.jsonl"))


@quiet
def test_a_run_that_ended_at_a_bad_row_goes_on_without_it(tmp_path, tokenizer_file):
    write(tmp_path, BAD)
    whole = tokens(job(tmp_path, tokenizer_file, on_error="skip"))
    strict, found = job(tmp_path, tokenizer_file), []
    with pytest.raises(DataError, match="on_error='skip' or 'quarantine'"):
        found += (tokens([batch]) for batch in strict)
    found = [row for rows in found for row in rows]
    assert 0 < len(found) < len(whole)
    for policy, word in (("skip", "skipped"), ("quarantine", "quarantined")):
        pipe = job(tmp_path, tokenizer_file, on_error=policy, quarantine=tmp_path / "bad")
        assert pipe.fingerprint() == strict.fingerprint()
        rest = tokens(pipe.restore(strict.checkpoint()))
        assert found + rest == whole
        assert pipe.accounting()["words"][f"rows_{word}"] == len(BAD)


@quiet
@pytest.mark.parametrize("now", ["drop", "empty"])
def test_nulls_mean_something_else_only_where_none_was_met(tmp_path, tokenizer_file, now):
    write(tmp_path, NULL)
    whole = tokens(job(tmp_path, tokenizer_file, null_text=now))
    strict, found = job(tmp_path, tokenizer_file), []
    with pytest.raises(DataError, match="null_text='drop' or 'empty' takes"):
        for batch in strict:
            found += tokens([batch])
    went_on = job(tmp_path, tokenizer_file, null_text=now).restore(strict.checkpoint())
    assert found + tokens(went_on) == whole
    skipped = job(tmp_path, tokenizer_file, on_error="skip")
    list(skipped)
    for was, word in ((skipped, now), (went_on, "error")):
        other = job(tmp_path, tokenizer_file, null_text=word).restore(was.checkpoint())
        with pytest.raises(CheckpointError, match=r"data of 'words'.*null_text"):
            list(other)


def test_the_end_of_a_run_says_what_was_left_out(tmp_path, tokenizer_file):
    write(tmp_path, BAD)
    pipe = job(tmp_path, tokenizer_file, on_error="skip")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        list(pipe)
    (text,) = [str(each.message) for each in said if "bad rows" in str(each.message)]
    assert text.startswith(
        f"dataset 'words': bad rows, {len(BAD)} skipped so far; the first here: dataset 'words', "
        "shard 'a.jsonl', row 5 (line 6, byte 90): a line must be one JSON object"
    )
    assert f"words: bad rows are left out; {len(BAD)} skipped so far" in pipe.explain()


@quiet
def test_rows_are_written_when_their_place_is_handed_out(tmp_path, tokenizer_file):
    write(tmp_path / "data", BAD)
    pipe = job(tmp_path / "data", tokenizer_file, on_error="quarantine", quarantine=tmp_path / "q")
    for _ in pipe:
        counted = pipe.accounting()["words"]["rows_quarantined"]
        assert len(written(tmp_path / "q")) == counted
    assert len(written(tmp_path / "q")) == len(BAD)


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_lost(
    tmp_path, tokenizer_file
):
    write(tmp_path / "data", {})
    (tmp_path / "file").write_text("")
    where = {"on_error": "quarantine", "quarantine": tmp_path / "file" / "q"}
    with pytest.raises(ExecutionError, match=r"quarantine='.*/file/q' must be a directory .*got "):
        next(iter(job(tmp_path / "data", tokenizer_file, **where)))


def test_what_is_not_of_one_row_ends_the_run(tmp_path, tokenizer_file):
    write(tmp_path, {})

    def failing(records):
        raise ValueError("no")

    grouped = pipeline(Dataset.from_path("words", tmp_path, on_error="skip")).add_op(
        "groups", process_many=failing, preserves_cursor_order=True
    )
    with pytest.raises(ExecutionError, match="on_error is about single rows: it does not apply"):
        list(grouped)
    pipe = job(tmp_path, tokenizer_file, on_error="skip")
    (tmp_path / "b.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(ShardError, match="does not apply to a shard that cannot be read"):
        list(pipe)


PROGRAM = """
import sys
from tests.exec.test_handed_out import job
folder, tokenizer, root = sys.argv[1:]
pipe = job(folder, tokenizer, on_error="quarantine", quarantine=root)
for batch in pipe:
    print(batch.records[0].payload["input_ids"], flush=True)
"""


@quiet
def test_killed_processes_and_others_beside_them_write_each_row_once(tmp_path, tokenizer_file):
    write(tmp_path / "data", BAD)
    root = tmp_path / "q"
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path / "data", tokenizer_file]

    killed, other = (
        subprocess.Popen([*command, root], stdout=subprocess.PIPE, text=True) for _ in range(2)
    )
    for _ in islice(killed.stdout, 3):
        pass
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    found = other.communicate()[0].splitlines()
    assert other.returncode == 0
    pipe = job(tmp_path / "data", tokenizer_file, on_error="quarantine", quarantine=root)
    assert found == [str(row) for row in tokens(pipe)]
    files = list(root.rglob("*.jsonl"))
    assert sorted(int(path.stem) for path in files) == sorted(n % 30 for n in BAD)
    assert all(json.loads(path.read_text())["raw"] == '{"text": "b' for path in files)
