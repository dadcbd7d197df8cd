"""Fields with one value a token are packed with the tokens; everything else is left out, and said.

Which these are is decided by ``aligned.find_aligned`` (``planner/test_aligned.py``).
"""

import copy
import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import written
from tests.properties.recipes import packed, rows, source
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import DataError, PlanError
from zephon.ops import DomainGroups

DOCUMENTS = [
    {"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1]},
    {"input_ids": [4, 5], "loss_mask": [1, 0]},
    {"input_ids": [6, 7, 8, 9], "loss_mask": [0, 0, 1, 1]},
]
EVERY_KIND = [
    {
        "input_ids": [10 * n + i for i in range(n % 5)],
        "wide": [2**40 + i for i in range(n % 5)],
        "reward": [n + i / 3 for i in range(n % 5)],
        "kept": [(n + i) % 3 == 0 for i in range(n % 5)],
        "shape": [3, 4],
        "note": f"text {n}",
        "score": n / 7,
        "boxes": [[n, 1]],
    }
    for n in range(40)
]


def in_memory(documents):
    return Dataset.from_dict("lists", {0: InMemoryShard(documents)})


def in_parquet(documents, folder):
    pq.write_table(pa.Table.from_pylist(documents), folder / "a.parquet")
    return Dataset.from_path("lists", str(folder))


def pipeline(dataset, *, drop_last=True, **changes):
    found = Pipeline(source([dataset], shuffle_shards=False))
    return found.pack_flat(max_length=4, algorithm="wrap", **changes).batch(2, drop_last=drop_last)


def plain(payload):
    """Turn arrays of a payload into lists."""
    return {k: v.tolist() if hasattr(v, "tolist") else list(v) for k, v in payload.items()}


@pytest.mark.parametrize("kind", ["memory", "parquet"])
def test_a_loss_mask_is_cut_with_its_tokens_and_masks_labels(kind, tmp_path):
    dataset = in_memory(DOCUMENTS) if kind == "memory" else in_parquet(DOCUMENTS, tmp_path)
    (batch,) = pipeline(dataset)
    payloads = [plain(record.payload) for record in batch.records]
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


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
@pytest.mark.parametrize(
    "call",
    [
        {"algorithm": "wrap"},
        {"algorithm": "best_fit", "num_bins": 3, "pad_token_id": 7},
        {"algorithm": "best_fit_wrap", "candidate_pool_size": 8, "pad_token_id": 7},
    ],
    ids=lambda call: call["algorithm"],
)
def test_integers_floats_and_booleans_lie_beside_their_tokens(kind, call, tmp_path):
    dataset = written.dataset(kind, tmp_path, EVERY_KIND)
    pipe = Pipeline(source([dataset]))
    with pytest.warns(RuntimeWarning, match="lists of numbers in 'shape' are left out"):
        pipe.pack_flat(max_length=6, **call)
    of_token = {
        token: {name: row[name][i] for name in ("wide", "reward", "kept")}
        for row in EVERY_KIND
        for i, token in enumerate(row["input_ids"])
    }
    seen = []
    for record in pipe:
        padding = record.meta.padding_length or 0
        found = plain(record.payload)
        assert set(found) == {"input_ids", "wide", "reward", "kept", "positions"}
        for at, token in enumerate(found["input_ids"][: 6 - padding]):
            values = {name: found[name][at] for name in ("wide", "reward", "kept")}
            assert values == of_token[token]
            seen.append(token)
        for name in ("wide", "reward", "kept"):
            assert found[name][6 - padding :] == [0] * padding
            assert all(type(each) is type(EVERY_KIND[1][name][0]) for each in found[name])
    assert len(seen) == len(set(seen)) > len(of_token) - 6
    text = pipe.explain()
    for name in ("shape", "note", "score", "boxes"):
        assert name in text


@pytest.mark.parametrize("kind", ["float32", "float64", "bool", "int64"])
def test_batches_keep_the_type(kind, tmp_path):
    import torch

    values = pa.array([[1, 0, 1]] * 8).cast(pa.list_(pa.type_for_alias(kind)))
    table = pa.table({"input_ids": [[1, 2, 3]] * 8, "x": values})
    written.parquet(tmp_path, "a.parquet", table)
    (batch, *_) = pipeline(Dataset.from_path("lists", tmp_path))
    assert batch.records[0].payload["x"].dtype == np.dtype(kind)
    dtype = "auto" if kind == "bool" else getattr(torch, kind)
    found = batch.to_training(extra_fields=["x"], dtype=dtype)["x"]
    assert found.tolist() == [[1, 0, 1, 1], [0, 1, 1, 0]]


@pytest.mark.parametrize(
    ("container", "make"), [("list", list), ("tuple", tuple), ("np", np.array)]
)
def test_rows_are_held_in_what_the_source_holds_them_in(container, make):
    documents = [{name: make(value) for name, value in each.items()} for each in DOCUMENTS]
    (batch,) = pipeline(in_memory(documents))
    kind = np.ndarray if container == "np" else make
    for name in ("input_ids", "loss_mask"):
        assert type(batch.records[0].payload[name]) is kind


def test_tensors_stay_tensors():
    import torch

    documents = [{k: torch.tensor(v) for k, v in each.items()} for each in DOCUMENTS]
    (batch,) = pipeline(in_memory(documents))
    assert torch.is_tensor(batch.records[0].payload["loss_mask"])
    assert batch.records[1].payload["input_ids"].tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("name", ["loss_mask", "reward"])
def test_a_field_of_another_length_is_named(name):
    good = [{"input_ids": [1, 2, 3], name: [0, 1, 1]} for _ in range(70)]
    items = iter(pipeline(in_memory([*good, {"input_ids": [1, 2], name: [1]}])))
    next(items)
    message = (
        rf"^pack_flat: field '{name}' must have one value a token of .*, got 2 tokens and 1 values "
        r"on .* row 70; mend"
    )
    with pytest.raises(DataError, match=message) as caught:
        list(items)
    assert str(caught.value).count("aligned_fields") == 1


def test_a_later_value_of_another_sort_is_named_and_can_be_left_out():
    good = [{"input_ids": [1, 2, 3], "reward": [0, 1, 1]} for _ in range(70)]
    dataset = in_memory([*good, {"input_ids": [1, 2], "reward": [0.5, 1]}])
    message = r"row 70: field 'reward' must be a list of 64-bit integers.*'float64'.*aligned_fields"
    with pytest.raises(DataError, match=message):
        list(pipeline(dataset))
    without = list(pipeline(dataset, aligned_fields=()))
    assert set(without[0].records[0].payload) == {"input_ids", "positions"}


@pytest.mark.parametrize("kind", ["jsonl", "in_memory", "parquet"])
def test_the_type_may_be_stated_where_the_first_rows_do_not_show_it(kind, tmp_path):
    late = [{"input_ids": [1, 2], "reward": [0.5, 1], "loss_mask": [0, 1]}]
    early = {"input_ids": [1, 2], "reward": [0, 1]}
    if kind == "parquet":  # where a column is in all rows
        early, late = {**early, "loss_mask": [1, 1]}, [{**late[0], "reward": [7, 1]}]
    dataset = written.dataset(kind, tmp_path, [early] * 71 + late)
    found = pipeline(dataset, aligned_fields={"reward": "float64"})
    rows = [plain(record.payload) for batch in found for record in batch.records]
    assert rows[-1]["reward"][-2:] == [late[0]["reward"][0], 1.0]
    assert all(type(value) is float for row in rows for value in row["reward"])
    other = pipeline(dataset, aligned_fields={"reward": "float32"})
    assert found.fingerprint() != other.fingerprint()
    mask = pipeline(dataset, aligned_fields={"loss_mask": "int64"})
    if kind == "parquet":
        assert len(list(mask)) == 18
        return
    with pytest.raises(DataError, match=r"row 0.*no field 'loss_mask'.*aligned_fields"):
        list(mask)


def test_a_later_row_without_tokens_says_what_packing_can_do_about_it():
    dataset = in_memory([{"input_ids": [1, 2]}] * 70 + [{"ids": [1]}])
    with pytest.raises(DataError, match=r"row 70: no field 'input_ids'; the row has ids") as caught:
        list(pipeline(dataset))
    assert "missing_field" not in str(caught.value)
    assert str(caught.value).endswith(
        "; mend or remove the row, or pass on_error='skip' or 'quarantine' to its dataset"
    )


@pytest.mark.parametrize("call", ["pack_flat", "pack_sequences"])
def test_lists_that_may_be_anything_are_left_out_with_a_warning(call):
    documents = [{**document, "shape": [4], "box": [0.5]} for document in DOCUMENTS]
    found = Pipeline(source([in_memory(documents)], shuffle_shards=False))
    with pytest.warns(RuntimeWarning, match="lists of numbers in 'shape', 'box' are left out") as w:
        getattr(found, call)(max_length=4, algorithm="wrap")
    assert w[0].filename == __file__
    if call == "pack_flat":
        assert set(next(iter(found)).payload) == {"input_ids", "loss_mask", "positions"}


@pytest.mark.parametrize("call", ["pack_flat", "pack_sequences"])
def test_components_in_no_group_are_told_of_where_the_call_stands(call):
    found = Pipeline(
        source([in_memory(DOCUMENTS), Dataset.from_dict("other", {0: InMemoryShard(DOCUMENTS)})])
    )
    groups = DomainGroups({"a": ["lists"]})
    with pytest.warns(RuntimeWarning, match="'other' is in no group") as w:
        getattr(found, call)(4, algorithm="wrap", homogeneity="group", groups=groups)
    assert w[0].filename == __file__


# What must not be lost


WHOLE = {"input_ids": [1, 2], "loss_mask": [0, 1]}
MIXED = {
    "floats": ([0.5, 1.0], [0.0, 1.0, 0.5, 1.0]),
    "integers": ([1, 1], [0, 1, 1, 1]),
}
LOST = {
    "booleans": ([False, True], "row 1 has booleans and row 0 numbers"),
    "null in a list": ([0, None], "row 1 has a list that holds null"),
    "a number": (1, "row 1 has a number"),
    "nested": ([[0], [1]], "row 1 has a list that holds a list"),
    "words": (["a", "b"], "row 1 has a list that holds text"),
}


@pytest.mark.parametrize("kind", ["jsonl", "in_memory"])
@pytest.mark.parametrize("values", MIXED)
def test_integers_beside_floats_are_packed(kind, values, tmp_path):
    second, wanted = MIXED[values]
    dataset = written.dataset(kind, tmp_path, [WHOLE, {**WHOLE, "loss_mask": second}], shards=1)
    (record,) = Pipeline(source([dataset], shuffle_shards=False)).pack_flat(4, algorithm="wrap")
    assert list(record.payload["loss_mask"]) == wanted
    assert {type(v) for v in record.payload["loss_mask"]} == {float if values == "floats" else int}


@pytest.mark.parametrize("kind", ["jsonl", "in_memory"])
@pytest.mark.parametrize("case", LOST)
def test_a_mask_that_cannot_be_packed_is_refused_at_the_call(kind, case, tmp_path):
    value, told = LOST[case]
    dataset = written.dataset(kind, tmp_path, [WHOLE, {**WHOLE, "loss_mask": value}], shards=1)
    with pytest.raises(
        PlanError, match=rf"^pack_flat: field 'loss_mask' must .* in dataset 'words' {told};"
    ):
        pipeline(dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (batch,) = pipeline(dataset, aligned_fields=(), drop_last=False)
    assert set(batch.records[0].payload) == {"input_ids", "positions"}


SHARDS = {
    "floats": (pa.list_(pa.float32()), None),
    "booleans": (pa.list_(pa.bool_()), r"list<.*bool> and list<.*int64>|list<.*int64> and .*bool"),
    "words": (pa.list_(pa.string()), r"list<.*string>"),
    "numbers": (pa.int64(), r"int64"),
    "nested": (pa.list_(pa.list_(pa.int64())), r"list<.*list<"),
    "decimals": (pa.list_(pa.decimal128(5, 2)), r"list<.*decimal"),
}


@pytest.mark.parametrize("case", SHARDS)
def test_so_it_is_where_shards_of_parquet_differ(case, tmp_path):
    item, told = SHARDS[case]
    value = {"words": ["a", "b"], "numbers": 1, "nested": [[0], [1]]}.get(
        case, [True, False] if case == "booleans" else [1, 0]
    )
    ids = pa.array([[1, 2]])
    masks = {"a": pa.array([[0, 1]]), "b": pa.array([value], item)}
    for name, mask in masks.items():
        table = pa.table({"input_ids": ids, "loss_mask": mask})
        written.parquet(tmp_path, f"{name}.parquet", table)
    dataset = Dataset.from_path("lists", tmp_path)
    if told is not None:
        with pytest.raises(
            PlanError, match=rf"field 'loss_mask' must .* in dataset 'lists' it is .*({told})"
        ):
            pipeline(dataset)
        return
    (record,) = Pipeline(source([dataset], shuffle_shards=False)).pack_flat(4, algorithm="wrap")
    assert record.payload["loss_mask"].tolist() == [0.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("kind", ["jsonl", "in_memory", "parquet"])
def test_a_mask_that_a_component_lacks_is_refused(kind, tmp_path):
    masked = written.dataset(kind, tmp_path / "masked", [WHOLE] * 3, name="masked")
    bare = written.dataset(kind, tmp_path / "bare", [{"input_ids": [3, 4]}] * 3, name="bare")
    message = r"field 'loss_mask' must .* 'bare' (has no such field|is not seen to have it); add it"
    with pytest.raises(PlanError, match=message):
        Pipeline(source([masked, bare])).pack_flat(4, algorithm="wrap")
    found = Pipeline(source([masked, bare])).pack_flat(4, algorithm="wrap", aligned_fields=())
    assert set(next(iter(found)).payload) == {"input_ids", "positions"}


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.zst", "in_memory"])
@pytest.mark.parametrize("name", ["loss_mask", "labels"])
def test_a_mask_that_comes_late_is_never_lost(kind, name, tmp_path):
    bare = {"input_ids": [1, 2]}
    late = [bare, {**bare, name: None}, {**bare, name: [0, 1]}, bare]
    dataset = written.dataset(kind, tmp_path, [bare] * 66 + late, shards=1)
    message = rf"row 68.*: field '{name}' must be in the first 64 .* aligned_fields=\(\) to pack"
    with pytest.raises(DataError, match=message):
        list(pipeline(dataset))
    assert len(list(pipeline(dataset, aligned_fields=()))) == 17
    assert len(list(pipeline(dataset, aligned_fields=[]))) == 17


def test_a_mask_that_comes_late_in_one_of_several_datasets_is_not_lost(tmp_path):
    bare = {"input_ids": [1, 2]}
    other = written.dataset("parquet", tmp_path / "p", [bare] * 70, name="other")
    late = written.dataset("jsonl", tmp_path / "l", [bare] * 69 + [WHOLE], name="late", shards=1)
    mixed = Pipeline(source([other, late], shuffle_shards=False))
    mixed.ensure_mixture(weight_by="input_ids").pack_flat(4, algorithm="wrap")
    with pytest.raises(DataError, match=r"dataset 'late', shard .*row 69.*'loss_mask' must be in"):
        list(mixed)
    (record, *_) = Pipeline(source([other])).pack_flat(4, algorithm="wrap")
    assert set(record.payload) == {"input_ids", "positions"}


@pytest.mark.parametrize("kind", ["jsonl", "in_memory"])
def test_explain_says_that_the_first_rows_decide(kind, tmp_path):
    rows = [{"input_ids": [1, 2]}] * 70 + [WHOLE]
    text = pipeline(written.dataset(kind, tmp_path, rows)).explain()
    assert "pack_flat finds fields in the first 64 rows" in text


def test_footers_show_all_fields(tmp_path):
    text = pipeline(in_parquet([WHOLE] * 9, tmp_path)).explain()
    assert "in the first 64 rows" not in text


def test_named_fields_are_packed_and_no_others():
    documents = [{**each, "reward": [0.5] * len(each["input_ids"])} for each in DOCUMENTS]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pipeline(in_memory(documents), aligned_fields=["reward"])
    (batch,) = found
    assert set(batch.records[0].payload) == {"input_ids", "reward", "positions"}
    other = pipeline(in_memory(documents))
    assert found.fingerprint() != other.fingerprint()


def test_a_field_that_packing_makes_is_refused():
    rows = [{"input_ids": [1, 2], "positions": [0, 1]}] * 4
    with pytest.raises(PlanError, match="field 'positions', which packing makes anew"):
        pipeline(in_memory(rows))
    (batch, *_) = pipeline(in_memory(rows), emit_positions=False)
    assert batch.records[0].payload["positions"] == [0, 1, 0, 1]


@pytest.mark.parametrize("call", ["pack_flat", "pack_sequences"])
def test_a_document_that_is_too_long_is_a_located_error_where_it_must_not_be_dropped(call):
    dataset = in_memory([{"input_ids": [1] * n} for n in (3, 4, 12, 2)])
    settings = {"max_length": 10, "algorithm": "first_fit", "num_bins": 2, "drop_oversized": False}
    if call == "pack_flat":
        settings["pad_token_id"] = 0
    pipe = getattr(Pipeline(source([dataset], shuffle_shards=False)), call)(**settings)
    message = (
        rf"{call}: Sequence length 12 exceeds max_length 10 on dataset 'lists', shard '0', row 2; "
        "pass drop_oversized=True, or tokenize with split_long_samples"
    )
    with pytest.raises(DataError, match=message):
        list(pipe)


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
