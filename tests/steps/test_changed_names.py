"""Steps above renamed, dropped and computed fields read what has the name now, or refuse."""

import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import PlanError

ROWS = [
    {
        "tokens": [n, n + 1, n + 2],
        "loss_mask": [1, 0, 1],
        "text": f"word {n}",
        "m": {"text": "nested", "ids": [7, 8, 9]},
        "b": "beside",
    }
    for n in range(12)
]


@pytest.fixture(params=["parquet", "memory", "jsonl"])
def pipe(request, tmp_path):
    """Read the same rows as files, with and without types in them, and in memory."""
    if request.param == "memory":
        dataset = Dataset.from_dict("a", {0: InMemoryShard(ROWS)})
    else:
        if request.param == "parquet":
            pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "0.parquet")
        else:
            lines = "".join(json.dumps(row) + "\n" for row in ROWS)
            (tmp_path / "0.jsonl").write_text(lines)
        dataset = Dataset.from_path("a", tmp_path)
    source = StaticMixtureWorkSource(datasets=[dataset], mixture={"a": 1.0}, shuffle_shards=False)
    return Pipeline(source)


def packed(pipe, tokens_field="tokens", **options):
    """Pack rows of three tokens alone and give the first row."""
    made = pipe.pack_flat(
        tokens_field=tokens_field, max_length=3, algorithm="wrap", emit_positions=False, **options
    )
    record = next(iter(made))
    return {name: list(value) for name, value in record.payload.items()}


def test_tokens_and_what_is_beside_them_are_packed_under_their_new_names(pipe):
    renamed = pipe.rename({"tokens": "ids", "loss_mask": "mask"})
    assert packed(renamed, "ids") == {"ids": [0, 1, 2], "mask": [1, 0, 1]}


def test_fields_that_changed_places_are_packed_as_they_are_now(pipe):
    renamed = pipe.rename({"tokens": "loss_mask", "loss_mask": "tokens"})
    assert packed(renamed) == {"tokens": [1, 0, 1], "loss_mask": [0, 1, 2]}


def test_a_field_renamed_there_and_back_is_packed(pipe):
    renamed = pipe.rename({"loss_mask": "mask"}).rename({"mask": "loss_mask"})
    assert packed(renamed) == {"tokens": [0, 1, 2], "loss_mask": [1, 0, 1]}


def test_a_mask_that_was_dropped_is_not_packed(pipe):
    assert packed(pipe.drop("loss_mask")) == {"tokens": [0, 1, 2]}


@pytest.mark.filterwarnings("ignore:pack_flat. lists of numbers")
def test_a_field_inside_objects_is_found_under_the_new_name_of_these(pipe):
    renamed = pipe.rename({"m": "n"}).drop("loss_mask")
    assert packed(renamed, "n.ids", aligned_fields=()) == {"n.ids": [7, 8, 9]}


@pytest.mark.filterwarnings("ignore:pack_flat. lists of numbers")
@pytest.mark.parametrize("change", ["drop", "rename"])
def test_tokens_that_are_gone_are_not_packed_from_the_source(pipe, change):
    gone = pipe.drop("tokens") if change == "drop" else pipe.rename({"tokens": "ids"})
    with pytest.raises(PlanError, match=r"pack_flat: no field 'tokens' after (drop|rename)"):
        packed(gone)


@pytest.mark.filterwarnings("ignore:pack_flat. lists of numbers")
def test_tokens_inside_objects_that_are_gone_are_not_packed_from_the_source(pipe):
    with pytest.raises(PlanError, match=r"pack_flat: no field 'm\.ids' after rename"):
        packed(pipe.rename({"m": "n"}), "m.ids")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda pipe: pipe.drop("text"), "text"),
        (lambda pipe: pipe.rename({"text": "words"}), "text"),
        (lambda pipe: pipe.drop("text").rename({"b": "text"}).rename({"text": "b"}), "text"),
        (lambda pipe: pipe.drop("m"), "m.text"),
        (lambda pipe: pipe.rename({"m": "n"}), "m.text"),
    ],
)
def test_text_that_is_gone_is_refused_at_the_call(pipe, tokenizer_file, change, field):
    with pytest.raises(PlanError, match=f"tokenize: no field '{field}' after (drop|rename)"):
        change(pipe).tokenize(tokenizer_id=str(tokenizer_file), field=field)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda pipe: pipe.drop("text"), "text"),
        (lambda pipe: pipe.rename({"text": "words"}), "text"),
        (lambda pipe: pipe.rename({"m": "n"}), "m.text"),
    ],
)
def test_text_that_is_gone_is_empty_where_missing_text_is(pipe, tokenizer_file, change, field):
    made = change(pipe).tokenize(
        tokenizer_id=str(tokenizer_file), field=field, missing_field="empty", special_tokens="none"
    )
    assert all(len(record.payload["input_ids"]) == 0 for record in made)


def test_a_name_with_a_dot_that_a_step_made_goes_before_a_field_inside(pipe, tokenizer_file):
    made = pipe.rename({"b": "m.text"}).tokenize(
        tokenizer_id=str(tokenizer_file), field="m.text", special_tokens="none"
    )
    got = next(iter(made)).payload["input_ids"]
    assert list(got) == Tokenizer.from_file(f"{tokenizer_file}/tokenizer.json").encode("beside").ids


def test_a_computed_name_with_a_dot_goes_before_a_field_inside(tmp_path, tokenizer_file):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "0.parquet")
    source = StaticMixtureWorkSource(
        datasets=[Dataset.from_path("a", tmp_path)], mixture={"a": 1.0}, shuffle_shards=False
    )
    options = {"tokenizer_id": str(tokenizer_file), "special_tokens": "none"}
    made = Pipeline(source).with_columns(pl.lit("made").alias("m.text"))
    got = next(iter(made.tokenize(field="m.text", **options))).payload["input_ids"]
    assert list(got) == Tokenizer.from_file(f"{tokenizer_file}/tokenizer.json").encode("made").ids
