"""Fields with one integer a token are packed with the tokens; what cannot be is refused by name."""

import copy
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.properties.recipes import packed, rows, source
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import ExecutionError, NotYetError, PlanError

DOCUMENTS = [
    {"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1]},
    {"input_ids": [4, 5], "loss_mask": [1, 0]},
    {"input_ids": [6, 7, 8, 9], "loss_mask": [0, 0, 1, 1]},
]


def in_memory(documents):
    return Dataset.from_dict("lists", {0: InMemoryShard(documents)})


def in_parquet(documents, folder):
    pq.write_table(pa.Table.from_pylist(documents), folder / "a.parquet")
    return Dataset.from_path("lists", str(folder))


def pipeline(dataset, **changes):
    found = Pipeline(source([dataset], shuffle_shards=False))
    return found.pack_flat(max_length=4, algorithm="wrap", **changes).batch(2)


@pytest.mark.parametrize("kind", ["memory", "parquet"])
def test_a_loss_mask_is_cut_with_its_tokens_and_masks_labels(kind, tmp_path):
    dataset = in_memory(DOCUMENTS) if kind == "memory" else in_parquet(DOCUMENTS, tmp_path)
    (batch,) = pipeline(dataset)
    payloads = [record.payload for record in batch.records]
    assert [p["input_ids"] for p in payloads] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert [p["loss_mask"] for p in payloads] == [[0, 1, 1, 1], [0, 0, 0, 1]]
    training = batch.to_training(return_labels=True)
    assert training["labels"].tolist() == [[2, 3, 4], [-100, -100, 8]]


def test_such_fields_resume_too():
    def make():
        return pipeline(in_memory(DOCUMENTS * 5))

    everything = [[r.payload for r in batch.records] for batch in make()]
    first = make()
    items = iter(first)
    next(items)
    again = make().restore(first.checkpoint())
    assert [[r.payload for r in batch.records] for batch in again] == everything[1:]


def test_a_field_of_another_length_is_named():
    bad = [*DOCUMENTS, {"input_ids": [1, 2], "loss_mask": [1]}]
    items = iter(pipeline(in_memory(bad)))
    next(items)
    with pytest.raises(ExecutionError, match=r"'loss_mask' must have one value a token .* row 3"):
        list(items)


def test_lists_of_other_numbers_are_not_there_yet():
    rows = [{"input_ids": [1, 2], "loss_mask": [0.5, 1.0]}]
    with pytest.raises(NotYetError, match="field 'loss_mask' holds lists of floats or booleans"):
        pipeline(in_memory(rows))


def test_lists_that_may_be_anything_are_left_out_with_a_warning():
    documents = [{**document, "shape": [4], "box": [0.5]} for document in DOCUMENTS]
    with pytest.warns(RuntimeWarning, match="lists of numbers in 'shape', 'box' are left out"):
        found = pipeline(in_memory(documents))
    (batch,) = found
    assert set(batch.records[0].payload) == {"input_ids", "loss_mask", "positions"}


def test_a_field_that_packing_makes_is_refused():
    rows = [{"input_ids": [1, 2], "positions": [0, 1]}]
    with pytest.raises(PlanError, match="field 'positions', which packing makes anew"):
        pipeline(in_memory(rows))


def test_a_pipeline_that_ran_can_be_copied_and_pickled():
    ran = packed()
    whole = rows(ran)
    assert rows(copy.deepcopy(ran)) == whole
    assert rows(pickle.loads(pickle.dumps(ran))) == whole
    items = iter(ran)
    next(items)
    assert rows(copy.copy(ran)) == whole
    items.close()


def test_a_checkpoint_names_the_tokenizer_that_ran(tokenizer_file):
    from tokenizers import AddedToken, Tokenizer

    tokenizer = Tokenizer.from_file(f"{tokenizer_file}/tokenizer.json")
    documents = Dataset.from_dict("text", {0: InMemoryShard([{"text": "the tree"}] * 40)})
    found = Pipeline(source([documents])).tokenize(tokenizer, field="text", special_tokens="none")
    found = found.pack_flat(max_length=5, algorithm="wrap").batch(1)
    items = iter(found)
    next(items)
    before = found.checkpoint()["recipe"]["tokenizers"]
    tokenizer.add_tokens([AddedToken("tree")])
    assert found.checkpoint()["recipe"]["tokenizers"] == before
    items.close()
    next(iter(found))
    assert found.checkpoint()["recipe"]["tokenizers"] != before
