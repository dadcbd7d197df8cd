"""The fingerprint: changed by all that decides a byte of the stream, and by nothing else."""

import json
import os
import shutil
import subprocess
import sys

import polars as pl
import pytest

from tests.properties.recipes import rows
from tests.written import dataset, lines, parquet
from zephon import Dataset, InMemoryShard, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.errors import CheckpointError
from zephon.exec.fingerprint import digest
from zephon.exec.recipe_changes import changes

WORDS = [{"text": f"the {tree} {i}"} for i in range(6) for tree in ("ash", "elm", "fir")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("data")
    dataset("jsonl", found / "prose", WORDS)
    dataset("parquet", found / "code", WORDS[:9])
    return found


@pytest.fixture
def main_job(folder, tokenizer_file):
    """Build the main job, with one thing changed."""

    def build(*, at=folder, names=("prose", "code"), source=None, tokenize=None, pack=None, **more):
        work = StaticMixtureWorkSource(
            **{
                "datasets": [Dataset.from_path(name, at / name) for name in names],
                "mixture": MixtureSpec({"prose": 0.7, "code": 0.3}),
                **(source or {}),
            }
        )
        return (
            Pipeline(work)
            .tokenize(**{"tokenizer_id": tokenizer_file, "field": "text", **(tokenize or {})})
            .pack_flat(**{"max_length": 8, "algorithm": "wrap", **(pack or {})})
            .batch(more.pop("microbatch", 1), drop_last=more.pop("drop_last", True))
            .options(**{"runner": "inline", **more})
        )

    return build


WHAT = {
    "seed": {"source": {"seed": 1}},
    "weights": {"source": {"mixture": {"prose": 0.6, "code": 0.4}}},
    "chunk size": {"source": {"chunk_size": 7}},
    "shards in order": {"source": {"shuffle_shards": False}},
    "rows shuffled": {"source": {"shuffle_within_shard": True}},
    "passes": {"source": {"stop_after_passes": 2}},
    "same passes": {"source": {"reshuffle_on_repeat": False}},
    "lane assignment": {"source": {"lane_assignment": "modulo"}},
    "order of datasets": {"names": ("code", "prose")},
    "special tokens": {"tokenize": {"special_tokens": "eos"}},
    "bos": {"tokenize": {"bos_token_id": 7}},
    "missing field": {"tokenize": {"missing_field": "empty"}},
    "truncation": {"tokenize": {"truncation": True, "max_length": 4}},
    "splits": {"tokenize": {"split_long_samples": True, "max_length": 4}},
    "padding": {"tokenize": {"padding": "max_length", "max_length": 4}},
    "plain special tokens": {"tokenize": {"split_special_tokens": True}},
    "row length": {"pack": {"max_length": 9}},
    "positions": {"pack": {"emit_positions": False}},
    "lanes": {"canonical_replicas": 3},
    "step": {"global_batch_size": 8},
    "drop last": {"drop_last": False},
}

HOW = {
    "runner": {"runner": "threads"},
    "memory": {"memory_budget": "1mb"},
    "queue": {"prefetch_batches": 3},
    "workers": {"max_workers": 1},
    "parallel tokenizing": {"tokenize": {"parallelism": 1}},
    "parallel packing": {"pack": {"parallelism": 2}},
    "use_fast": {"tokenize": {"use_fast": False}},
    "microbatch": {"microbatch": 4},
    "back end": {"tokenizer_backend": "tokenizers"},
    "placement": {"tokenize": {"placement": "local"}},
    "unused options": {"deterministic": False, "run_id": "x"},
    "mixture as a dict": {"source": {"mixture": {"code": 3, "prose": 7}}},
}


@pytest.mark.parametrize("name", WHAT)
def test_what_decides_the_stream_changes_it(main_job, name):
    assert main_job(**WHAT[name]).fingerprint() != main_job().fingerprint()


def test_every_such_change_has_a_fingerprint_of_its_own(main_job):
    found = {name: main_job(**change).fingerprint() for name, change in WHAT.items()}
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("name", HOW)
def test_what_decides_speed_alone_leaves_it(main_job, name):
    assert main_job(**HOW[name]).fingerprint() == main_job().fingerprint()


def test_ranks_leave_it_where_lanes_are_named(main_job):
    lanes = {"canonical_replicas": 4}
    wanted = main_job(**lanes).fingerprint()
    assert main_job(**lanes, dp_degree=2, dp_group_id=1).fingerprint() == wanted
    assert main_job(**lanes, world_size=4, global_rank=3).fingerprint() == wanted
    step = {"global_batch_size": 8}
    wanted = main_job(**step).fingerprint()
    assert main_job(**step, dp_degree=4, dp_group_id=1).fingerprint() == wanted


def test_steps_of_reading_leave_it(main_job):
    wanted = main_job().fingerprint()
    assert main_job().fetch_parallelism(2, max_batch=3).fingerprint() == wanted
    assert main_job().prefetch(5).fingerprint() == wanted


def test_moving_the_data_leaves_it(main_job, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert main_job(at=tmp_path / "elsewhere").fingerprint() == main_job().fingerprint()


@pytest.mark.parametrize("change", ["row appended", "shard added", "shard renamed", "shard gone"])
def test_other_data_change_it(main_job, folder, tmp_path, change):
    at = tmp_path / "changed"
    shutil.copytree(folder, at)
    first = at / "prose" / "000.jsonl"
    match change:
        case "row appended":
            first.write_bytes(first.read_bytes() + b'{"text": "oak"}\n')
        case "shard added":
            lines(at / "prose", "002.jsonl", WORDS[:1])
        case "shard renamed":
            first.rename(at / "prose" / "zzz.jsonl")
        case "shard gone":
            first.unlink()
    assert main_job(at=at).fingerprint() != main_job().fingerprint()


def test_files_that_are_not_read_leave_it(main_job, folder, tmp_path):
    at = tmp_path / "more"
    shutil.copytree(folder, at)
    for name in ("_SUCCESS", "README.md", "003.jsonl.tmp", ".hidden.jsonl"):
        (at / "prose" / name).write_text("{}")
    assert main_job(at=at).fingerprint() == main_job().fingerprint()


def test_the_tokenizer_counts_by_what_it_does_not_by_where_it_lies(
    main_job, tokenizer_file, tmp_path
):
    wanted = main_job().fingerprint()
    moved = tmp_path / "moved"
    shutil.copytree(tokenizer_file, moved)
    assert main_job(tokenize={"tokenizer_id": str(moved)}).fingerprint() == wanted
    definition = json.loads((moved / "tokenizer.json").read_text())
    (moved / "tokenizer.json").write_text(json.dumps(definition, indent=3))
    assert main_job(tokenize={"tokenizer_id": str(moved)}).fingerprint() == wanted
    definition["model"]["merges"].pop()
    (moved / "tokenizer.json").write_text(json.dumps(definition))
    assert main_job(tokenize={"tokenizer_id": str(moved)}).fingerprint() != wanted


def test_another_pad_or_end_token_changes_it(main_job, tokenizer_file, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(tokenizer_file, moved)
    (moved / "tokenizer_config.json").write_text('{"bos_token": "<bos>", "eos_token": "<pad>"}')
    found = main_job(tokenize={"tokenizer_id": str(moved)}).fingerprint()
    assert found != main_job().fingerprint()


def test_a_recipe_is_plain_json_and_its_digest_the_fingerprint(main_job):
    pipe = main_job(global_batch_size=8)
    state = pipe.checkpoint()
    recipe = state["recipe"]
    assert json.loads(json.dumps(recipe)) == recipe
    assert digest(recipe) == state["fingerprint"] == pipe.fingerprint()
    assert len(pipe.fingerprint()) == 64
    assert [step["call"] for step in recipe["steps"]] == ["tokenize", "pack_flat", "batch"]
    names = {key for step in recipe["steps"] for key in step}
    assert not names & {"parallelism", "placement", "microbatch_size", "tokenizer_id", "use_fast"}


def test_it_is_the_same_in_every_process(folder, tokenizer_file, main_job):
    script = (
        "import sys\n"
        "from zephon import *\n"
        "names = ('prose', 'code')\n"
        "found = [Dataset.from_path(n, f'{sys.argv[1]}/{n}') for n in names]\n"
        "work = StaticMixtureWorkSource(found, {'prose': 0.7, 'code': 0.3})\n"
        "pipe = Pipeline(work).tokenize(tokenizer_id=sys.argv[2], field='text')\n"
        "print(pipe.pack_flat(8, algorithm='wrap').batch(1).fingerprint())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script, str(folder), tokenizer_file],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {main_job().fingerprint()}


# Differences


@pytest.mark.parametrize("name", sorted(set(WHAT) - {"lanes"}))
def test_a_state_of_another_recipe_is_refused_and_the_part_is_named(main_job, name):
    state = main_job().checkpoint()
    part = {
        "seed": "nothing lets through:\n    work source, seed: was 0, is 1: ",
        "row length": "nothing lets through:\n    pack_flat, max_length: was 8, is 9: ",
        "weights": "allow={'weights'}.*weight of 'prose': was 0.7, is 0.6\n",
        "special tokens": "tokenize, special_tokens: was 'bos_eos', is 'eos': the tokens",
        "step": "allow={'global_batch_size'}.*global_batch_size: was None, is 8",
    }.get(name, "")
    with pytest.raises(CheckpointError, match=f"(?s)another recipe\n.*{part}"):
        iter(main_job(**WHAT[name]).restore(state))


@pytest.mark.filterwarnings("ignore:restore. the checkpoint was taken with tokenizer back ends")
@pytest.mark.parametrize("name", sorted(set(HOW) - {"microbatch"}))
def test_a_state_goes_on_under_other_settings_of_speed(main_job, name):
    pipe = main_job()
    wanted = rows(pipe)
    items = iter(pipe)
    for _ in range(5):
        next(items)
    state = pipe.checkpoint()
    items.close()
    assert rows(main_job(**HOW[name]).restore(state)) == wanted[5:]


def test_another_back_end_is_warned_of(main_job):
    pipe = main_job(tokenizer_backend="gigatoken")
    state = pipe.checkpoint()
    with pytest.warns(RuntimeWarning, match=r"back ends .*gigatoken.*, this run has .*tokenizers"):
        iter(main_job(tokenizer_backend="tokenizers").restore(state))


def test_parquet_and_jsonl_of_one_content_are_different_data(tmp_path, tokenizer_file):
    parquet(tmp_path / "a", "0.parquet", WORDS)
    lines(tmp_path / "b", "0.jsonl", WORDS)
    prints = {
        Pipeline(StaticMixtureWorkSource([Dataset.from_path("words", at)], {"words": 1}))
        .tokenize(tokenizer_id=tokenizer_file, field="text")
        .fingerprint()
        for at in (tmp_path / "a", tmp_path / "b")
    }
    assert len(prints) == 2


def recipes(*columns):
    dataset = Dataset.from_dict("a", {0: InMemoryShard([{"k": 1, "t": "x"}])})
    work = StaticMixtureWorkSource([dataset], {"a": 1.0})
    return [steps(Pipeline(work)).checkpoint()["recipe"] for steps in columns]


K = pl.col("k")
LONG = list(range(100))
SHORT = str(K.is_in(LONG))


@pytest.mark.parametrize(
    ("saved", "current", "told"),
    [
        (
            lambda p: p.filter(K > 1),
            lambda p: p.filter(K > 2),
            'filter, steps[0]: was filter(col("k") > 1), is filter(col("k") > 2)',
        ),
        (
            lambda p: p.filter(K > 1),
            lambda p: p,
            'filter: was filter(col("k") > 1), is gone',
        ),
        (
            lambda p: p.filter(K.is_in(LONG)),
            lambda p: p.filter(K.is_in([*LONG[:50], 7, *LONG[51:]])),
            f"filter, steps[0]: was filter({SHORT}), is another that looks the same in short "
            "(digest ",
        ),
    ],
)
def test_expressions_differ_in_words(saved, current, told):
    was, now = recipes(saved, current)
    (change,) = changes(was, now)
    assert str(change).startswith(told)
    assert changes(was, was) == []
