"""``explain``: the plans as text, held by files; what it lists, and that it starts nothing.

Each file in ``snapshots/explain`` begins with a sentence that says what it protects. After a change
that is meant, write them anew with ``WRITE_SNAPSHOTS=1 pytest tests/test_explain.py`` and read the
difference.
"""

import os
import re
import shutil
import threading
from pathlib import Path

import polars as pl
import pytest

from tests.properties.recipes import packed
from tests.written import dataset, lines, parquet
from zephon import Dataset, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.errors import PlanError
from zephon.ops import DomainGroups

SNAPSHOTS = Path(__file__).parent / "snapshots" / "explain"
STABLE = {"runner": "inline", "memory_budget": "64mb", "tokenizer_backend": "tokenizers"}

TEXTS = [{"text": f"the tree {i}", "url": f"tree/{i}", "score": i / 7} for i in range(6)]
LISTS = [{"tokens": list(range(i, i + 5)), "id": i} for i in range(7)]
ALIGNED = [
    {**row, "loss_weight": [0.5] * 5, "seen": [True] * 5, "boxes": [[1, 2]], "two": [1, 2]}
    for row in LISTS
]


@pytest.fixture
def here(tmp_path, tokenizer_file, monkeypatch):
    """Stand in a directory with data and a tokenizer, so that no path of this machine is shown."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tokenizer_file, "tokenizer")
    dataset("jsonl", Path("prose"), TEXTS)
    for name in ("_SUCCESS", ".000.jsonl.crc", "001.jsonl.tmp", "README.md"):
        (Path("prose") / name).write_text("")
    dataset("jsonl", Path("code"), TEXTS[:3], shards=1)
    parquet("lists", "a.parquet", LISTS[:4])
    parquet("lists", "b.parquet", LISTS[4:])
    parquet("aligned", "a.parquet", ALIGNED)
    parquet("typed", "a.parquet", TEXTS)
    monkeypatch.setattr("zephon.exec.described.usable_cores", lambda: 2)
    return tmp_path


def pipeline(*names):
    weights = {"prose": 0.7, "code": 0.3, "lists": 1.0, "aligned": 1.0, "typed": 1.0}
    return Pipeline(
        StaticMixtureWorkSource(
            datasets=[Dataset.from_path(name, name) for name in names],
            mixture=MixtureSpec({name: weights[name] for name in names}),
        )
    ).options(**STABLE)


def tokenized(*names, **changes):
    return pipeline(*names).tokenize(tokenizer_id="tokenizer", field="text", **changes)


def first(value):
    """Do nothing."""
    return value


def second(value):
    """Do nothing, too."""
    return value


def both(state, records):
    """Remember nothing."""
    return state, records


def nothing(state):
    """Hold no records."""
    return []


PLANS = {
    "main_job": lambda: (
        tokenized("prose", "code", parallelism=4)
        .pack_flat(max_length=17, algorithm="wrap")
        .batch(microbatch_size=8)
    ),
    "token_lists": lambda: (
        pipeline("lists").pack_flat(max_length=9, algorithm="wrap", emit_positions=False).batch(2)
    ),
    "raw_records": lambda: pipeline("prose"),
    "kept_payload": lambda: tokenized(
        "prose",
        preserve_upstream_payload=True,
        split_long_samples=True,
        max_length=16,
        return_tensors="np",
        special_tokens="eos",
    ).batch(4, drop_last=False),
    "steps_with_ranks": lambda: (
        tokenized("prose", "code", preserve_upstream_payload=True)
        .prefetch(64)
        .pack_flat(max_length=17, algorithm="wrap")
        .batch(microbatch_size=2)
        .options(global_batch_size=48, dp_degree=3, dp_group_id=1)
        .options(runner="threads", max_workers=1, prefetch_batches=4, shm_enabled=False)
    ),
    "chain_of_policies": lambda: (
        tokenized("prose", "code", preserve_upstream_payload=True)
        .shuffle(100, seed=3)
        .ensure_mixture(mixture={"prose": 1, "code": 1})
        .pack_flat(
            17,
            algorithm="best_fit_wrap",
            pad_token_id=0,
            shuffle_strategy="length",
            homogeneity="group",
            groups=DomainGroups({"all": ["prose", "code"]}),
        )
        .shuffle(12, algorithm="block")
        .batch(2)
        .options(canonical_replicas=4)
    ),
    "sequences": lambda: (
        pipeline("prose")
        .shuffle(50)
        .tokenize(
            tokenizer_id="tokenizer",
            field="text",
            preserve_upstream_payload=True,
            split_long_samples=True,
            max_length=16,
            return_tensors="np",
        )
        .pack_sequences(20, num_bins=4, length_fn=len, pack_payloads="numpy_array")
        .batch(2)
    ),
    "filter_while_reading": lambda: (
        pipeline("typed")
        .with_columns(url=pl.col("url").str.to_uppercase())
        .filter(pl.col("score") > 0.2, pl.col("text") != "")
        .tokenize(tokenizer_id="tokenizer", field="text")
        .shuffle(10)
        .pack_flat(17, algorithm="wrap")
        .batch(2)
    ),
    "column_steps": lambda: (
        pipeline("typed")
        .with_columns(words=pl.col("text").str.split(" ").list.len())
        .filter(pl.col("words") > 1)
        .rename({"text": "body"})
        .drop("score")
        .tokenize(tokenizer_id="tokenizer", field="body", preserve_upstream_payload=True)
        .filter(pl.col("input_ids").list.len() > 2, pl.col("words") > 2)
        .batch(2)
    ),
    "limit_while_reading": lambda: (
        pipeline("typed").with_columns(twice=pl.col("score") * 2).batch(2).take(3)
    ),
    "functions": lambda: (
        tokenized("typed", preserve_upstream_payload=True)
        .map_transform(first)
        .map_transform(second, drop_none=False, parallelism=3)
        .materialize()
        .map_transform(second)
        .add_op("mine", process_many=first, preserves_cursor_order=True, parallelism=2)
        .batch(2)
        .map_batch(second)
        .take(4)
    ),
    "operators_with_memory": lambda: (
        pipeline("typed")
        .shuffle(10)
        .stateful_transform("tally", init_state=int, push=both, flush=nothing)
        .tokenize(tokenizer_id="tokenizer", field="text")
        .stateful_transform("kept", init_state=int, push=both, snapshot=int, restore=int)
        .pack_flat(17, algorithm="wrap", tokens_field="input_ids", aligned_fields=())
        .map_transform(first)
        .batch(2)
    ),
    "aligned_fields": lambda: pipeline("aligned").pack_flat(9, num_bins=2, pad_token_id=0).batch(2),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_is_the_one_on_file(here, name):
    found = PLANS[name]().explain()
    file = SNAPSHOTS / f"{name}.txt"
    sentence, _, wanted = file.read_text(encoding="utf-8").partition("\n\n")
    if os.environ.get("WRITE_SNAPSHOTS"):
        file.write_text(f"{sentence}\n\n{found}\n", encoding="utf-8")
        return
    assert found.splitlines() == wanted.splitlines()


def test_every_file_protects_a_plan_and_says_what():
    files = sorted(SNAPSHOTS.glob("*.txt"))
    assert [file.stem for file in files] == sorted(PLANS)
    for file in files:
        sentence = file.read_text(encoding="utf-8").partition("\n\n")[0]
        assert sentence.startswith("Protects:")
        assert sentence.endswith(".")
        assert "\n" not in sentence


@pytest.mark.parametrize("name", PLANS)
def test_it_starts_nothing_and_reads_no_row(here, name):
    pipe = PLANS[name]()
    for folder in ("prose", "code", "lists", "aligned", "typed"):
        shutil.rmtree(folder)
    threads = threading.active_count()
    assert pipe.explain() == pipe.explain()
    assert threading.active_count() == threads


def test_a_plan_can_be_read_before_its_tokenizer_is_there(here):
    pipe = pipeline("prose").tokenize(tokenizer_id="not/here", field="text").batch(2)
    text = pipe.explain()
    assert "tokenizer: tokenizer_id='not/here'" in text
    assert "Tokenize(tokenizer_id='not/here', field='text')" in text


def test_files_that_are_not_data_are_listed_with_the_reason(here):
    text = pipeline("prose").explain()
    for line in (
        "passed over .000.jsonl.crc: a checksum",
        "passed over 001.jsonl.tmp: temporary",
        "passed over README.md: not data",
        "passed over _SUCCESS: a marker",
    ):
        assert line in text
    for number in range(20):
        (here / "prose" / f"{number}.tmp").write_text("")
    text = pipeline("prose").explain()
    assert text.count("passed over") == 6
    assert "passed over 19 more" in text


def test_ranks_that_cannot_be_are_refused(here):
    pipe = PLANS["main_job"]().options(global_batch_size=10, dp_degree=3, dp_group_id=0)
    with pytest.raises(PlanError, match="global_batch_size=10 must be a multiple of dp_degree=3"):
        pipe.explain()


def test_a_restored_pipeline_shows_the_lanes_of_its_state():
    state = packed(canonical_replicas=3).checkpoint()
    assert "lanes: 3;" in packed().restore(state).explain()
    assert "lanes: 1;" in packed().explain()


def test_settings_of_speed_show_in_the_stages_alone(here):
    def parts(text):
        head, _, tail = text.partition("\nStages\n")
        return head, tail

    plain, stages = parts(PLANS["main_job"]().explain())
    quick = PLANS["main_job"]().options(runner="threads", max_workers=1, memory_budget="2gb")
    found, other = parts(quick.explain())
    assert found == plain
    assert other != stages
    assert "memory budget 2,048 MiB" in other


def test_components_of_no_weight_are_not_shown(here):
    found = [Dataset.from_path(name, name) for name in ("prose", "code")]
    work = StaticMixtureWorkSource(found, MixtureSpec({"prose": 2, "code": 0}))
    text = Pipeline(work).explain()
    assert "mixture=[prose 1]" in text
    assert not re.search(r"\bcode\b", text)


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({"global_batch_size": 8}, "each of more makes all rows of this rank again, and has"),
        ({"canonical_replicas": 6}, "more share this rank's 6 lanes evenly, and each has"),
    ],
)
def test_a_pipeline_for_a_loader_says_what_workers_cost(options, more):
    pipe = packed(memory_budget="64mb", **options)
    before = pipe.explain().splitlines()
    pipe.to_torch_dataset()
    added = [line for line in pipe.explain().splitlines() if line not in before]
    assert added == [
        "  to_torch_dataset: num_workers=0 is the fastest as a rule, and 1 keeps the trainer's "
        f"interpreter free; {more} 64 MiB of its own"
    ]


def test_large_numbers_are_readable(here):
    lines("many", "a.jsonl", ['{"text": "x"}'] * 12_345)
    work = StaticMixtureWorkSource([Dataset.from_path("many", "many")], {"many": 1})
    assert "many: share 1, 12,345 rows in 1 shards, 0.2 MB" in Pipeline(work).explain()
