"""What comes out of ``tokenize`` and ``pack_flat`` for each format, container and length."""

import numpy as np
import pytest

from tests.properties.recipes import rows, source, text_dataset
from tests.written import KINDS, dataset, parquet, pipeline, texts_to_tokens
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import DataError, DatasetError, PlanError

BOS, EOS, PAD = 1, 2, 0
WRAP = {"algorithm": "wrap"}


def texts():
    return Pipeline(source([text_dataset("words", 12)]))


@pytest.fixture(scope="module")
def encoded(tokenizer_file):
    return texts_to_tokens(tokenizer_file)


TREES = [{"text": f"the {tree}\n", "id": i, "more": {"a": [i]}} for i, tree in enumerate(
    ["ash", "birch", "größe", "", "木 fir", "elm", "oak!"]
)]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_raw_rows_are_what_was_written(tmp_path, kind):
    records = list(pipeline(dataset(kind, tmp_path, TREES)))
    assert [record.payload for record in records] == TREES
    ids = [record.meta.sample_id for record in records]
    assert ids == [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    (batch,) = pipeline(dataset(kind, tmp_path, TREES)).batch(7)
    assert [record.payload for record in batch.records] == TREES


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_the_text(tmp_path, kind, tokenizer_file, encoded):
    pipe = pipeline(dataset(kind, tmp_path, TREES)).tokenize(
        tokenizer_id=tokenizer_file, field="text"
    )
    for record, row in zip(pipe, TREES, strict=True):
        wanted = [BOS, *encoded(row["text"]), EOS]
        assert record.payload == {"input_ids": wanted, "attention_mask": [1] * len(wanted)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_payload_lies_under_the_tokens(tmp_path, kind, tokenizer_file, encoded):
    pipe = pipeline(dataset(kind, tmp_path, TREES)).tokenize(
        tokenizer_id=tokenizer_file,
        field="text",
        preserve_upstream_payload=True,
        add_attention_mask=False,
        special_tokens="none",
    )
    found = [record.payload for record in pipe]
    assert found == [{**row, "input_ids": encoded(row["text"])} for row in TREES]


def test_rows_in_memory_are_never_written_to(tokenizer_file):
    own = [{"text": "ash", "deep": {"list": [1]}}]
    words = Dataset.from_dict("words", {0: InMemoryShard(own)})
    pipe = pipeline(words).tokenize(
        tokenizer_id=tokenizer_file, field="text", preserve_upstream_payload=True
    )
    for _ in range(2):
        (record,) = pipe
        assert record.payload["deep"] == {"list": [1]}
        record.payload["deep"]["list"].append(2)
        record.payload["text"] = "changed"
    assert own == [{"text": "ash", "deep": {"list": [1]}}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_field_is_an_error_with_its_place(tmp_path, kind, tokenizer_file):
    words = dataset(kind, tmp_path, TREES)
    if kind == "parquet":
        with pytest.raises(PlanError, match="no field 'body' in dataset 'words'; known are: id, m"):
            pipeline(words).tokenize(tokenizer_id=tokenizer_file, field="body")
        return
    pipe = pipeline(words).tokenize(tokenizer_id=tokenizer_file, field="body")
    message = r"dataset 'words', shard '.*', row 0.*: no field 'body'; the row has text, id, more"
    with pytest.raises(DataError, match=message):
        list(pipe)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_field_may_be_empty(tmp_path, kind, tokenizer_file, encoded):
    pipe = pipeline(dataset(kind, tmp_path, TREES)).tokenize(
        tokenizer_id=tokenizer_file, field="body", missing_field="empty"
    )
    assert [record.payload["input_ids"] for record in pipe] == [[BOS, EOS]] * len(TREES)


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "in_memory"])
def test_one_row_without_the_field(tmp_path, kind, tokenizer_file, encoded):
    mixed = [*TREES[:5], {"id": 5}, TREES[6]]
    words = dataset(kind, tmp_path, mixed)
    pipe = pipeline(words).tokenize(tokenizer_id=tokenizer_file, field="text", special_tokens="eos")
    found = []
    with pytest.raises(DataError, match=r"shard '0*1.*', row 1.*: no field 'text'; the row has id"):
        for record in pipe:
            found.append(record.payload["input_ids"])
    assert found == [[*encoded(row["text"]), EOS] for row in TREES[:5]]
    empty = pipeline(words).tokenize(
        tokenizer_id=tokenizer_file, field="text", special_tokens="eos", missing_field="empty"
    )
    assert [r.payload["input_ids"] for r in empty] == [
        [*encoded(row.get("text", "")), EOS] for row in mixed
    ]


def test_one_parquet_shard_without_the_field(tmp_path, tokenizer_file, encoded):
    parquet(tmp_path, "a.parquet", [{"text": "ash"}, {"text": "fir"}])
    parquet(tmp_path, "b.parquet", [{"id": 1}])
    words = Dataset.from_path("words", tmp_path)
    pipe = pipeline(words).tokenize(tokenizer_id=tokenizer_file, field="text")
    with pytest.raises(DatasetError, match=r"dataset 'words', shard 'b.parquet': no column 'text'"):
        iter(pipe)
    empty = pipeline(words).tokenize(
        tokenizer_id=tokenizer_file, field="text", special_tokens="none", missing_field="empty"
    )
    found = [record.payload["input_ids"] for record in empty]
    assert found == [encoded("ash"), encoded("fir"), []]


@pytest.mark.parametrize("missing", ["error", "empty"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_null_is_always_an_error(tmp_path, kind, missing, tokenizer_file):
    words = dataset(kind, tmp_path, [{"text": "ash"}, {"text": None}, {"text": "fir"}], shards=1)
    pipe = pipeline(words).tokenize(
        tokenizer_id=tokenizer_file, field="text", missing_field=missing
    )
    found = []
    with pytest.raises(DataError, match=r"dataset 'words', shard '.*', row 1.*'text'.*null"):
        found.extend(pipe)
    assert len(list(found)) <= 1


def test_one_row_comes_out_before_the_null_behind_it(tmp_path, tokenizer_file):
    words = dataset("jsonl", tmp_path, [{"text": "ash"}, {"text": None}], shards=1)
    items = iter(pipeline(words).tokenize(tokenizer_id=tokenizer_file, field="text"))
    assert next(items).payload["attention_mask"]
    with pytest.raises(DataError, match="row 1"):
        next(items)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dotted_field_reaches_into_the_row(tmp_path, kind, tokenizer_file, encoded):
    nested = [{"doc": {"body": {"text": row["text"]}}, "id": row["id"]} for row in TREES]
    pipe = pipeline(dataset(kind, tmp_path, nested)).tokenize(
        tokenizer_id=tokenizer_file, field="doc.body.text", special_tokens="none"
    )
    assert [r.payload["input_ids"] for r in pipe] == [encoded(row["text"]) for row in TREES]


@pytest.mark.parametrize("kind", KINDS)
def test_token_lists_are_packed_as_they_are(tmp_path, kind):
    documents = [[1, 2, 3], [], [4], list(range(5, 25)), [25, 26]]
    listed = dataset(kind, tmp_path, [{"tokens": tokens, "id": 0} for tokens in documents])
    pipe = pipeline(listed).pack_flat(8, **WRAP).batch(1)
    found = [list(batch.records[0].payload["tokens"]) for batch in pipe]
    assert found == [list(range(1, 9)), list(range(9, 17)), list(range(17, 25))]


def test_a_token_field_may_be_named(tmp_path):
    listed = dataset("parquet", tmp_path, [{"ids": [1, 2], "other": [3, 4]}] * 3)
    by_rule = next(iter(pipeline(listed).pack_flat(4, **WRAP)))
    named = next(iter(pipeline(listed).pack_flat(4, tokens_field="other", **WRAP)))
    assert by_rule.payload["ids"].tolist() == [1, 2, 1, 2]
    assert named.payload["other"].tolist() == [3, 4, 3, 4]


# Containers


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("asked", [None, "np", "pt"])
@pytest.mark.parametrize("packs", [False, True])
def test_return_tensors_decides_what_records_hold(tokenizer_file, encoded, asked, packs, keep):
    import torch

    pipe = pipeline(
        Dataset.from_dict("words", {0: InMemoryShard([{"text": "the ash"}, {"text": "größe"}])})
    ).tokenize(
        tokenizer_id=tokenizer_file,
        field="text",
        return_tensors=asked,
        preserve_upstream_payload=keep,
        special_tokens="eos",
    )
    if packs:
        pipe.pack_flat(4, **WRAP)
    kind = {None: list, "np": np.ndarray, "pt": torch.Tensor}[asked]
    records = list(pipe)
    names = {"input_ids", "attention_mask"} | ({"positions"} if packs else set())
    assert set(records[0].payload) == names | ({"text"} if keep and not packs else set())
    for record in records:
        assert all(isinstance(record.payload[name], kind) for name in names)
    tokens = [int(t) for record in records for t in record.payload["input_ids"]]
    stream = [*encoded("the ash"), EOS, *encoded("größe"), EOS]
    assert tokens == (stream[: len(stream) // 4 * 4] if packs else stream)


@pytest.mark.parametrize("asked", [None, "np", "pt"])
def test_containers_change_no_training_batch(tokenizer_file, asked):
    pipe = (
        texts()
        .tokenize(tokenizer_id=tokenizer_file, field="text", return_tensors=asked)
        .pack_flat(16, **WRAP)
        .batch(2)
        .options(runner="inline")
    )
    plain = (
        texts()
        .tokenize(tokenizer_id=tokenizer_file, field="text")
        .pack_flat(16, **WRAP)
        .batch(2)
        .options(runner="inline")
    )
    assert rows(pipe) == rows(plain) != []


# Lengths


def test_max_length_alone_cuts_nothing(tokenizer_file):
    plain = [r.payload for r in texts().tokenize(tokenizer_id=tokenizer_file, field="text")]
    bound = [
        r.payload for r in texts().tokenize(tokenizer_id=tokenizer_file, field="text", max_length=3)
    ]
    assert bound == plain
    assert max(len(payload["input_ids"]) for payload in plain) > 100


@pytest.mark.parametrize(("special", "front", "back"), [
    ("bos_eos", [BOS], [EOS]), ("bos", [BOS], []), ("eos", [], [EOS]), ("none", [], []),
])  # fmt: skip
@pytest.mark.parametrize("max_length", [2, 3, 9])
def test_truncation_keeps_the_brackets(tokenizer_file, encoded, special, front, back, max_length):
    text = "the tree and the wood, the größe"
    words = Dataset.from_dict("words", {0: InMemoryShard([{"text": text}, {"text": ""}])})
    pipe = pipeline(words).tokenize(
        tokenizer_id=tokenizer_file,
        field="text",
        special_tokens=special,
        truncation=True,
        max_length=max_length,
    )
    room = max_length - len(front) - len(back)
    found = [record.payload["input_ids"] for record in pipe]
    assert found == [[*front, *encoded(text)[:room], *back], [*front, *back]]


@pytest.mark.parametrize("max_length", [1, 2, 5, 1000])
def test_splitting_keeps_every_token_and_names_the_children(tokenizer_file, encoded, max_length):
    both = ("the tree and the wood, the größe", "木")
    words = Dataset.from_dict("words", {0: InMemoryShard([{"text": text} for text in both])})
    pipe = pipeline(words).tokenize(
        tokenizer_id=tokenizer_file, field="text", split_long_samples=True, max_length=max_length
    )
    records = list(pipe)
    for row, text in enumerate(both):
        whole = [BOS, *encoded(text), EOS]
        mine = [r for r in records if r.meta.sample_id == (0, 0, row)]
        pieces = [r.payload["input_ids"] for r in mine]
        assert pieces == [whole[at : at + max_length] for at in range(0, len(whole), max_length)]
        lineage = [r.meta.lineage for r in mine]
        assert lineage == ([()] if len(mine) == 1 else [(i,) for i in range(len(mine))])


@pytest.mark.parametrize("batched", [False, True])
def test_every_child_keeps_the_row_that_it_was_cut_from(tokenizer_file, encoded, batched):
    texts = ["the tree and the wood", "", "größe größe", "木"]
    words = [{"text": text, "n": i} for i, text in enumerate(texts)]
    pipe = pipeline(Dataset.from_dict("words", {0: InMemoryShard(words)})).tokenize(
        tokenizer_id=tokenizer_file,
        field="text",
        split_long_samples=True,
        max_length=4,
        preserve_upstream_payload=True,
        add_attention_mask=False,
    )
    if batched:
        records = [r for batch in pipe.batch(3, drop_last=False) for r in batch.records]
    else:
        records = list(pipe)
    whole = [[BOS, *encoded(text), EOS] for text in texts]
    assert [record.payload for record in records] == [
        {**words[n], "input_ids": whole[n][at : at + 4]}
        for n in range(4)
        for at in range(0, len(whole[n]), 4)
    ]


def test_padding_to_max_length_pads_and_never_cuts(tokenizer_file, encoded):
    words = Dataset.from_dict(
        "words", {0: InMemoryShard([{"text": "ash"}, {"text": "the tree and the wood"}])}
    )
    short, long = pipeline(words).tokenize(
        tokenizer_id=tokenizer_file, field="text", padding="max_length", max_length=6
    )
    tokens = [BOS, *encoded("ash"), EOS]
    assert len(tokens) < 6
    assert short.payload["input_ids"] == tokens + [PAD] * (6 - len(tokens))
    assert short.payload["attention_mask"] == [1] * len(tokens) + [0] * (6 - len(tokens))
    assert len(long.payload["input_ids"]) > 6
    assert set(long.payload["attention_mask"]) == {1}


@pytest.mark.parametrize("padding", [True, "longest", False, "do_not_pad"])
def test_padding_to_the_longest_happens_in_the_batch(tokenizer_file, padding):
    words = Dataset.from_dict(
        "words", {0: InMemoryShard([{"text": "ash"}, {"text": "the tree and the wood"}])}
    )
    (batch,) = (
        pipeline(words)
        .tokenize(tokenizer_id=tokenizer_file, field="text", padding=padding)
        .batch(2)
    )
    if padding in (False, "do_not_pad"):
        with pytest.raises(ValueError, match="row"):
            batch.to_training(dtype=np.int64)
        return
    found = batch.to_training(return_labels=True, dtype=np.int64)
    short, long = (record.payload["input_ids"] for record in batch.records)
    assert found["input_ids"][0].tolist() == (short + [PAD] * (len(long) - len(short)))[:-1]
    assert found["labels"][0].tolist() == short[1:] + [-100] * (len(long) - len(short))
    assert found["labels"][1].tolist() == long[1:]
