"""Bad rows in jobs of other shapes: own sources, memory, loaders, TOML, verify."""

import pytest
from torch.utils.data import DataLoader

from tests.custom_sources import Dealt, all_samples
from tests.written import in_order, lines
from zephon import Dataset, Pipeline
from zephon.recipe import load_recipe
from zephon.verification import verify

BAD = {4: '{"text": "b', 11: "[1"}
NULL = {6: '{"text": null, "n": 6}'}
ROWS = 24
GOOD = [n for n in range(ROWS) if n not in BAD]
pytestmark = pytest.mark.filterwarnings("ignore:dataset .*bad rows", "ignore:.*lanes over")


@pytest.fixture
def folder(tmp_path):
    odd = {**BAD, **NULL}
    lines(tmp_path / "a", "0.jsonl", [odd.get(n, {"text": f"r {n}", "n": n}) for n in range(ROWS)])
    return tmp_path / "a"


def data(folder):
    return Dataset.from_path("a", folder, on_error="skip", null_text="drop")


def numbers(pipe):
    return [record.payload["n"] for record in pipe]


def lost(pipe):
    found = pipe.accounting()["a"]
    return found["rows_drawn"], found["rows_skipped"], found["rows_null"]


def test_an_own_source_loses_bad_rows(folder):
    datasets = {0: data(folder)}
    pipe = Pipeline(Dealt(datasets, all_samples(datasets))).options(runner="inline")
    assert numbers(pipe) == GOOD
    assert [(e["rows_drawn"], e["rows_skipped"]) for e in pipe.accounting().values()] == [(ROWS, 2)]


def hold(state, records):
    state = [*state, *records]
    return state[-5:], state[:-5]


def test_an_operator_with_memory_never_sees_them(folder):
    pipe = Pipeline(in_order(data(folder))).stateful_transform("s", init_state=list, push=hold)
    pipe = pipe.options(runner="inline")
    assert numbers(pipe) == GOOD[:-5]
    assert lost(pipe) == (ROWS, 2, 0)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_workers_of_a_loader_lose_the_same(folder, workers):
    pipe = Pipeline(in_order(data(folder))).map_transform(dict).batch(2)
    pipe = pipe.options(runner="inline", canonical_replicas=2)
    context = {"multiprocessing_context": "fork", "timeout": 60} if workers else {}
    loader = DataLoader(pipe.to_torch_dataset(), batch_size=None, num_workers=workers, **context)
    found = [record.payload["n"] for batch in loader for record in batch.records]
    assert found == [record.payload["n"] for batch in pipe for record in batch.records]
    assert sorted(found) == GOOD[: len(found)] and len(found) >= len(GOOD) - 2


def test_a_recipe_in_toml_says_what_becomes_of_them(folder, tokenizer_file, tmp_path):
    (tmp_path / "job.toml").write_text(f"""
        [[datasets]]
        name = "a"
        path = "{folder}"
        on_error = "skip"
        null_text = "drop"
        [source]
        mixture = {{ a = 1.0 }}
        [[steps]]
        call = "tokenize"
        tokenizer_id = "{tokenizer_file}"
        field = "text"
    """)
    pipe = load_recipe(tmp_path / "job.toml")().options(runner="inline")
    assert len(list(pipe)) == ROWS - 3
    assert lost(pipe) == (ROWS, 2, 1)


def test_verify_finds_the_same_on_any_ranks(folder, tokenizer_file):
    def make():
        pipe = Pipeline(in_order(data(folder), exhausted_policy="repeat"))
        pipe = pipe.tokenize(tokenizer_id=tokenizer_file, field="text")
        return (
            pipe.pack_flat(9, algorithm="wrap")
            .batch(2)
            .options(global_batch_size=4, canonical_replicas=2)
        )

    assert verify(make, steps=4, ranks=[1, 2], cuts=2).same
