"""Stopping and going on: nothing lost, nothing twice, wherever and however often it happens."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.properties.recipes import packed, rows, rows_of, token_dataset, tokens_of
from tests.written import dataset, in_order, lines, pipeline
from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import CheckpointError
from zephon.exec.checkpoint import content_digest

ROOT = Path(__file__).parents[2]


def numbered(count, shards=4):
    """Make rows that are told apart by their only token."""
    return dataset(
        "in_memory", None, [{"input_ids": [i]} for i in range(count)], name="rows", shards=shards
    )


def stop_after(pipe, items):
    """Run so many items; give what they hold and the state behind them."""
    running = iter(pipe)
    found = [next(running) for _ in range(items)]
    state = pipe.checkpoint()
    running.close()
    return found, state


def ids(batches):
    return [sample for batch in batches for sample in batch.ids]


@pytest.mark.parametrize("settings", [
    {"runner": "inline"}, {"runner": "threads", "prefetch_batches": 3},
])  # fmt: skip
def test_a_stream_goes_on_from_the_row_that_was_handed_out(settings):
    """Not from the end of the block that had been read."""

    def make():
        return pipeline(numbered(1000), shuffle_within_shard=True).batch(7).options(**settings)

    whole = ids(make())
    assert len(whole) == len(set(whole)) == 994
    for stop in (*range(20), *range(20, 142, 11), 142):
        head, state = stop_after(make(), stop)
        assert ids(head) + ids(make().restore(state)) == whole


def test_a_resumed_run_can_be_resumed():
    """Save at 10, go on, save at 20, go on: the second state is not the first."""

    def make():
        return packed(max_length=16, microbatch=1)

    whole = rows(make(), 30)
    found, state = [], make().checkpoint()
    for _ in range(3):
        head, state = stop_after(make().restore(state), 10)
        found += [row for batch in head for row in rows_of(batch)]
    assert found == whole


@pytest.mark.parametrize("depth", [0, 1, 8, 200])
def test_batches_made_ahead_do_not_count_as_delivered(depth):
    def make(ahead):
        return packed(runner="threads", prefetch_batches=ahead)

    whole = rows(make(depth))
    head, state = stop_after(make(depth), 5)
    assert [row for batch in head for row in rows_of(batch)] == whole[:10]
    for other in (0, 1, 8, 200):
        assert rows(make(other).restore(state), 1) == whole[10:12]


def test_kill_9_while_the_queue_is_full(tmp_path):
    """The state that was written describes what the trainer had, whatever was ready behind it."""
    script = (
        "import json, os, signal, sys, time\n"
        "from tests.properties.recipes import packed, rows_of\n"
        "pipe = packed(runner='threads', prefetch_batches=20)\n"
        "items = iter(pipe)\n"
        "for _ in range(5): next(items)\n"
        "time.sleep(0.3)\n"
        "open(sys.argv[1], 'wb').write(pipe.checkpoint(as_bytes=True))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    file = tmp_path / "state"
    found = subprocess.run(
        [sys.executable, "-c", script, str(file)],
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert found.returncode == -signal.SIGKILL
    assert rows(packed().restore(file.read_bytes())) == rows(packed())[10:]


def test_a_new_process_goes_on(tmp_path, tokenizer_file):
    texts = [{"text": f"the tree and the wood {i}"} for i in range(60)]
    prose = dataset("jsonl.zst", tmp_path / "prose", texts, name="prose")

    def make(data):
        return (
            Pipeline(in_order(data, shuffle_within_shard=True))
            .tokenize(tokenizer_id=tokenizer_file, field="text")
            .pack_flat(13, algorithm="wrap")
            .batch(2)
        )

    whole = rows(make(prose))
    head, state = stop_after(make(prose), 9)
    (tmp_path / "state.json").write_text(json.dumps(state))
    script = (
        "import json, sys\n"
        "import numpy as np\n"
        "from tests.written import in_order\n"
        "from zephon import Dataset, Pipeline\n"
        "folder, tokenizer = sys.argv[1:]\n"
        "prose = Dataset.from_path('prose', folder + '/prose')\n"
        "work = in_order(prose, shuffle_within_shard=True)\n"
        "pipe = Pipeline(work).tokenize(tokenizer_id=tokenizer, field='text')\n"
        "pipe.pack_flat(13, algorithm='wrap').batch(2)\n"
        "pipe.restore(json.load(open(folder + '/state.json')))\n"
        "for batch in pipe:\n"
        "    print(batch.to_training(dtype=np.int64)['input_ids'].tolist())\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), tokenizer_file],
        timeout=60,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "77"},
    )
    assert found.stderr == ""
    rest = [row for line in found.stdout.splitlines() for row in json.loads(line)]
    straight = [
        row
        for batch in list(make(prose))[len(head) :]
        for row in batch.to_training(dtype=np.int64)["input_ids"].tolist()
    ]
    assert rest == straight
    assert len(rest) == len(whole) - 18


@pytest.mark.parametrize("settings", [
    {}, {"canonical_replicas": 3}, {"global_batch_size": 12, "canonical_replicas": 4},
    {"global_batch_size": 12, "canonical_replicas": 4, "dp_degree": 6, "dp_group_id": 4},
])  # fmt: skip
def test_states_after_a_resume_are_those_of_the_straight_run(settings):
    """Byte for byte, at every batch, inside steps too."""

    def make():
        return packed(max_length=29, microbatch=1, **settings)

    def states(pipe, until):
        found = [pipe.checkpoint(as_bytes=True, scope="local")]
        items = iter(pipe)
        while len(found) < until:
            next(items)
            found.append(pipe.checkpoint(as_bytes=True, scope="local"))
        return found

    straight = states(make(), 32)
    for cut in (0, 1, 4, 7, 12, 25):
        assert states(make().restore(straight[cut]), 32 - cut) == straight[cut:]


# Passes


def test_every_pass_is_whole_after_a_resume_inside_one():
    """A start offset that is used again would make each later pass short."""

    def make():
        return pipeline(numbered(10, 2), stop_after_passes=3, shuffle_within_shard=True).batch(1)

    whole = ids(make())
    head, state = stop_after(make(), 17)
    found = ids(head) + ids(make().restore(state))
    assert found == whole
    assert len(found) == 30
    for start in (0, 10, 20):
        assert len(set(found[start : start + 10])) == 10
    assert len({tuple(found[start : start + 10]) for start in (0, 10, 20)}) == 3


def test_after_a_restored_run_the_next_one_is_whole():
    pipe = pipeline(numbered(10, 2)).batch(1)
    whole = ids(pipe)
    _, state = stop_after(pipe, 7)
    pipe.restore(state)
    assert [ids(pipe), ids(pipe), ids(pipe)] == [whole[7:], whole, whole]


def test_the_rest_of_a_document_that_straddles_the_cut_comes_next():
    def make():
        data = token_dataset("prose", [5, 50, 7, 3], 1)
        return packed([data], max_length=8, microbatch=1, work={"shuffle_within_shard": False})

    whole = [tokens_of(batch) for batch in make()]
    for stop in range(len(whole) + 1):
        _, state = stop_after(make(), stop)
        assert [tokens_of(batch) for batch in make().restore(state)] == whole[stop:]
    straddling = make()
    _, state = stop_after(straddling, 2)
    (after, *_) = (tokens_of(batch) for batch in make().restore(state))
    assert after == list(range(whole[1][-1] + 1, whole[1][-1] + 9))


def test_passes_over_documents_and_cuts_inside_them_together():
    def make():
        data = token_dataset("prose", [5, 9, 2, 0, 11], 2)
        return packed([data], max_length=4, microbatch=1, work={"stop_after_passes": 4})

    whole = [tuple(tokens_of(batch)) for batch in make()]
    for stop in range(0, len(whole), 3):
        head, state = stop_after(make(), stop)
        found = [tuple(tokens_of(batch)) for batch in (*head, *make().restore(state))]
        assert found == whole
    counts = Counter(token for row in whole for token in row)
    assert sum(counts.values()) == 27 * 4 // 4 * 4
    assert set(counts.values()) <= {3, 4}


# Something else under the checkpoint


def job(folder, tokenizer, *, mixture=None, **work):
    found = [Dataset.from_path(name, folder / name) for name in ("prose", "code")]
    weights = mixture or {"prose": 0.7, "code": 0.3}
    return (
        Pipeline(StaticMixtureWorkSource(found, weights, **work))
        .tokenize(tokenizer_id=str(tokenizer), field="text")
        .pack_flat(16, algorithm="wrap")
        .batch(1)
        .options(runner="inline")
    )


@pytest.fixture
def world(tmp_path, tokenizer_file):
    """Two datasets and a tokenizer that a test may change, and a state of the run over them."""
    for name in ("prose", "code"):
        for shard in range(3):
            texts = [{"text": f"{name} {shard} {i}"} for i in range(8)]
            lines(tmp_path / name, f"{shard}.jsonl", texts)
    shutil.copytree(tokenizer_file, tmp_path / "tokenizer")
    pipe = job(tmp_path, tmp_path / "tokenizer")
    whole = rows(pipe)
    _, state = stop_after(job(tmp_path, tmp_path / "tokenizer"), 6)
    return tmp_path, whole, state


def append(folder):
    with (folder / "prose" / "1.jsonl").open("a") as file:
        file.write('{"text": "one more"}\n')


def weaken_tokenizer(folder):
    file = folder / "tokenizer" / "tokenizer.json"
    definition = json.loads(file.read_text())
    definition["model"]["merges"].pop()
    file.write_text(json.dumps(definition))


CHANGES = {
    "a row was appended": (
        append,
        r"nothing lets through:\n    data of 'prose', shard '1.jsonl': was 8 rows of 176 bytes, is "
        r"9 rows of 197 bytes: rows are known by their places; put the old file back",
    ),
    "a shard was renamed": (
        lambda at: (at / "code" / "0.jsonl").rename(at / "code" / "00.jsonl"),
        r"nothing lets through:\n    data of 'code', shard '0.jsonl': was '0.jsonl', is "
        r"'00.jsonl': names are part of the order; rename it back",
    ),
    "a shard was added": (
        lambda at: lines(at / "code", "9.jsonl", [{"text": "x"}]),
        r"allow={'data'} .* through .*:\n    data of 'code', shard '9.jsonl': was not there, is "
        r"1 row of 14 bytes$",
    ),
    "a shard was deleted": (
        lambda at: (at / "code" / "2.jsonl").unlink(),
        r"nothing lets through:\n    data of 'code', shard '2.jsonl': was 8 rows of 168 bytes, is "
        r"gone: its rows are part of the order; put it back$",
    ),
    "the tokenizer changed": (
        weaken_tokenizer,
        r"nothing lets through:\n    tokenizers\[0\].digest: was [0-9a-f]{12}, is [0-9a-f]{12}: "
        r"other token ids; restore with the tokenizer of then$",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_is_printed_and_refused(world, name):
    folder, _, state = world
    change, message = CHANGES[name]
    change(folder)
    with pytest.raises(CheckpointError, match=f"belongs to another recipe\n  {message}"):
        iter(job(folder, folder / "tokenizer").restore(state))


def changed_in(state, **values):
    """Give the state as another release would have written it."""
    changed = {**state, **values}
    return {**changed, "digest": content_digest(changed)}


def test_another_release_is_no_change(world):
    folder, whole, state = world
    other = changed_in(state, library="0.4.1")
    assert rows(job(folder, folder / "tokenizer").restore(other)) == whole[6:]


def test_a_release_of_another_order_is_named(world):
    folder, _, state = world
    recipe = {**state["recipe"], "stream_version": 7}
    other = changed_in(state, library="0.9.2", recipe=recipe)
    with pytest.raises(
        CheckpointError, match=r"stream_version: was 7, is 1: .*; install zephon 0.9.2, which wrote"
    ):
        iter(job(folder, folder / "tokenizer").restore(other))


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (
            {"mixture": {"prose": 0.5, "code": 0.5}},
            r"allow.*\n    weight of 'prose': was 0.7, is 0.5",
        ),
        ({"seed": 1}, r"nothing lets through:\n    work source, seed: was 0, is 1"),
        ({"stop_after_passes": 2}, r"rules of 'code', stop_after_passes: was 1, is 2"),
    ],
)
def test_what_the_constructor_says_is_never_overridden_in_silence(world, work, message):
    folder, _, state = world
    with pytest.raises(CheckpointError, match=message):
        iter(job(folder, folder / "tokenizer", **work).restore(state))


def test_a_refused_state_may_still_be_used_where_it_belongs(world):
    folder, whole, state = world
    with pytest.raises(CheckpointError):
        iter(job(folder, folder / "tokenizer", seed=5).restore(state))
    assert rows(job(folder, folder / "tokenizer").restore(state)) == whole[6:]


def test_moving_the_data_is_no_change(world):
    folder, whole, state = world
    shutil.move(folder / "prose", folder / "elsewhere" / "prose")
    shutil.move(folder / "code", folder / "elsewhere" / "code")
    moved = job(folder / "elsewhere", folder / "tokenizer")
    assert rows(moved.restore(state)) == whole[6:]


def test_files_beside_the_data_are_no_change(world):
    folder, whole, state = world
    for name in ("_SUCCESS", "README.md", "3.jsonl.tmp"):
        (folder / "prose" / name).write_text("{}")
    assert rows(job(folder, folder / "tokenizer").restore(state)) == whole[6:]


def test_rows_that_change_after_the_data_was_compared_are_found_when_they_are_read_again():
    """Rows in memory are the user's own: here they change once the restored run has begun."""

    def make(lengths):
        rows = [{"input_ids": [1] * n} for n in lengths]
        data = Dataset.from_dict("own", {0: InMemoryShard(rows)})
        return rows, pipeline(data).pack_flat(7, algorithm="wrap").batch(1)

    _, state = stop_after(make([5, 6, 4, 9])[1], 1)
    with pytest.raises(CheckpointError, match=r"shard '0': was 4 rows of .*, with other content"):
        iter(make([5, 4, 6, 9])[1].restore(state))
    rows, pipe = make([5, 6, 4, 9])
    batches = iter(pipe.restore(state))
    rows[1]["input_ids"].append(1)
    with pytest.raises(CheckpointError, match=r"other lengths .*; the data changed under it"):
        list(batches)


def test_state_stays_small_however_far_the_run_is():
    def size(stop):
        data = token_dataset("prose", [3] * 30_000, 4)
        _, state = stop_after(packed([data], max_length=64, microbatch=8), stop)
        return len(json.dumps(state))

    early, late = size(2), size(170)
    assert late < early + 6000
    assert late < 12_000
