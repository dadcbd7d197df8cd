"""Documents end to end in rows: every token once, and boundaries that no token value can move."""

import json
import shutil
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.recipes import token_dataset, tokens_of
from tests.written import dataset, pipeline, texts_to_tokens
from zephon import Dataset, InMemoryShard

EOS = 2


def lists(*documents):
    """Make a dataset of token lists, in one shard."""
    shards = {0: InMemoryShard([{"input_ids": list(tokens)} for tokens in documents])}
    return Dataset.from_dict("lists", shards)


def packed(data, max_length, microbatch=1, **changes):
    pipe = pipeline(data).pack_flat(max_length, algorithm="wrap", **changes)
    return pipe.batch(microbatch, drop_last=False)


def training(data, max_length, **arguments):
    (batch,) = packed(data, max_length)
    return batch.to_training(**{"dtype": np.int64, **arguments})


# Boundaries come from packing


def test_boundaries_are_those_of_documents_not_of_end_tokens():
    """[1, 2, EOS] and [3, EOS, 4, EOS]: two documents, though there are three EOS."""
    found = training(lists([1, 2, EOS], [3, EOS, 4, EOS]), 7, return_cu_seqlens=True)
    assert found["input_ids"].tolist() == [[1, 2, EOS, 3, EOS, 4, EOS]]
    assert found["positions"].tolist() == [[0, 1, 2, 0, 1, 2, 3]]
    assert found["cu_seqlens"].tolist() == [[0, 3, 7]]
    assert found["max_seqlen"].tolist() == [4]


def test_a_document_without_an_end_token_ends_all_the_same():
    found = training(lists([5, 6, 7], [8, 9, 10, 11]), 7, return_cu_seqlens=True)
    assert found["cu_seqlens"].tolist() == [[0, 3, 7]]


def test_a_document_that_the_row_cuts_off_before_its_end_token_is_a_segment():
    one, two = (
        batch.to_training(return_cu_seqlens=True, dtype=np.int64)
        for batch in packed(lists([1, 2, EOS], [3, 4, 5, 6, 7, EOS], [8, EOS]), 5)
    )
    assert one["cu_seqlens"].tolist() == [[0, 3, 5]]
    assert two["input_ids"].tolist() == [[5, 6, 7, EOS, 8]]
    assert two["positions"].tolist() == [[0, 1, 2, 3, 0]]
    assert two["cu_seqlens"].tolist() == [[0, 4, 5]]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 12), st.integers(0, 5))
def test_token_values_move_no_boundary(lengths, max_length, value):
    def positions(token):
        documents = [[token(row, at) for at in range(n)] for row, n in enumerate(lengths)]
        return [
            record.payload["positions"]
            for batch in packed(lists(*documents), max_length)
            for record in batch.records
        ]

    assert positions(lambda row, at: value) == positions(lambda row, at: 100 * row + at)


def test_labels_shift_over_the_row_and_inputs_lose_their_last_token():
    found = training(lists([1, 2, EOS], [3, EOS, 4, EOS]), 7, return_labels=True)
    assert found["input_ids"].tolist() == [[1, 2, EOS, 3, EOS, 4]]
    assert found["labels"].tolist() == [[2, EOS, 3, EOS, 4, EOS]]
    assert found["positions"].tolist() == [[0, 1, 2, 0, 1, 2]]


def test_losing_the_last_token_loses_no_boundary():
    """A document of one token at the end of the row is gone from the inputs with its segment."""
    found = training(lists([1, 2, 3], [4, 5], [6]), 6, return_labels=True, return_cu_seqlens=True)
    assert found["cu_seqlens"].tolist() == [[0, 3, 5]]
    found = training(lists([1, 2, 3], [4, 5, 6]), 6, return_labels=True, return_cu_seqlens=True)
    assert found["cu_seqlens"].tolist() == [[0, 3, 5]]


def test_a_tokenizer_without_any_end_token_packs_by_documents(tmp_path, tokenizer_file):
    folder = tmp_path / "bare"
    folder.mkdir()
    shutil.copy(f"{tokenizer_file}/tokenizer.json", folder)
    encoded = texts_to_tokens(folder)
    texts = ["the tree", "ash", "", "größe and the wood"]
    sizes = [len(encoded(text)) for text in texts]
    pipe = pipeline(dataset("jsonl", tmp_path / "words", [{"text": text} for text in texts]))
    pipe.tokenize(tokenizer_id=str(folder), field="text", special_tokens="none")
    (record,) = pipe.pack_flat(sum(sizes), algorithm="wrap")
    assert record.payload["input_ids"] == [t for text in texts for t in encoded(text)]
    assert record.payload["positions"] == [at for n in sizes for at in range(n)]


# Padding is known by length


def test_a_real_end_token_keeps_its_label_where_padding_has_the_same_id(tmp_path, tokenizer_file):
    folder = tmp_path / "pad-is-eos"
    shutil.copytree(tokenizer_file, folder)
    names = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<eos>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    encoded = texts_to_tokens(folder)
    data = dataset(
        "jsonl", tmp_path / "words", [{"text": "ash"}, {"text": "the tree and the wood"}]
    )
    pipe = pipeline(data).tokenize(tokenizer_id=str(folder), field="text", padding="longest")
    (batch,) = pipe.batch(2)
    found = batch.to_training(return_labels=True, return_padding_mask=True, dtype=np.int64)
    short, long = [1, *encoded("ash"), EOS], [1, *encoded("the tree and the wood"), EOS]
    gap = len(long) - len(short)
    assert found["input_ids"][0].tolist() == (short + [EOS] * gap)[:-1]
    assert found["labels"][0].tolist() == short[1:] + [-100] * gap
    assert found["labels"][0].tolist().count(EOS) == 1
    assert found["labels"][1].tolist() == long[1:]
    assert found["padding_mask"].sum() == gap - 1


def test_packed_rows_have_no_padding_at_all():
    data = token_dataset("prose", [3, 9, 1, 14, 2, 8, 5], 1)
    for batch in packed(data, 6, 2):
        found = batch.to_training(
            return_labels=True, return_padding_mask=True, return_num_valid_tokens=True,
            dtype=np.int64,
        )  # fmt: skip
        assert not found["padding_mask"].any()
        assert found["num_valid_tokens"] == 5 * len(batch)
        assert [record.meta.padding_length for record in batch.records] == [0] * len(batch)


# Documents of every length

L = 16


@pytest.mark.parametrize("order", ["as listed", "reversed"])
@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_every_token_of_documents_of_any_length_comes_once(order, runner):
    lengths = [1, L - 1, L, L + 1, 2 * L, 2 * L + 1, 10 * L, 0, 1, 1]
    lengths = lengths[::-1] if order == "reversed" else lengths
    data = token_dataset("prose", lengths, 1)
    made = [t for row in data.backend["shards"][0].getsamples(range(10)) for t in row["input_ids"]]
    pipe = packed(data, L, 2).options(runner=runner)
    found = [t for batch in pipe for t in tokens_of(batch)]
    whole = sum(lengths) // L * L
    assert found == made[:whole]
    (part,) = pipe.accounting().values()
    assert part["tokens_delivered"] == whole
    assert part["tokens_dropped"] == {"end_of_data": sum(lengths) - whole}


def test_a_document_of_many_rows_fills_them_alone():
    rows = [record for batch in packed(lists(range(10 * L)), L) for record in batch.records]
    assert len(rows) == 10
    for number, record in enumerate(rows):
        assert record.payload["input_ids"] == list(range(number * L, (number + 1) * L))
        assert record.payload["positions"] == list(range(L))
        assert record.meta.lineage == (number * L,)
        (ref,) = record.meta.contribution_refs()
        assert ref.is_last_child is (number == 9)


@pytest.mark.parametrize("max_length", [1, 2, 1000])
def test_rows_of_extreme_lengths(max_length):
    found = [t for batch in packed(lists([1, 2, 3], [], [4, 5, 6, 7]), max_length)
             for t in tokens_of(batch)]  # fmt: skip
    assert found == list(range(1, 1 + 7 // max_length * max_length))


def test_empty_documents_make_no_segment_and_no_row():
    found = training(lists([], [1, 2], [], [], [3], []), 3, return_cu_seqlens=True)
    assert found["cu_seqlens"].tolist() == [[0, 2, 3]]
    (batch,) = packed(lists([], [1, 2], [], [], [3], []), 3)
    (record,) = batch.records
    assert [ref.cursor.sample_id[2] for ref in record.meta.contribution_refs()] == [1, 4]
    assert list(packed(lists([], [], []), 3)) == []


def test_a_batch_of_empty_texts_alone_is_no_crash(tmp_path, tokenizer_file):
    data = dataset("jsonl", tmp_path, [{"text": ""}] * 6)

    def make(special):
        return pipeline(data).tokenize(
            tokenizer_id=tokenizer_file, field="text", special_tokens=special
        )

    assert list(make("none").pack_flat(4, algorithm="wrap").batch(1)) == []
    (batch,) = make("none").batch(6)
    assert [record.payload["input_ids"] for record in batch.records] == [[]] * 6
    (batch,) = make("eos").pack_flat(6, algorithm="wrap").batch(1)
    assert tokens_of(batch) == [EOS] * 6
    assert batch.records[0].payload["positions"] == [0] * 6


# Every way to pack

FITS = ("first_fit", "best_fit", "best_fit_decreasing")
WRAPS = ("wrap", "best_fit_wrap")


def packed_as(data, algorithm, call="pack_flat", max_length=L):
    arguments = {"algorithm": algorithm}
    if algorithm in ("first_fit", "best_fit"):
        arguments["num_bins"] = 3
    if call == "pack_flat":
        arguments["pad_token_id"] = 0
    return getattr(pipeline(data), call)(max_length, **arguments).batch(3, drop_last=False)


def documents_in(batch, **arguments):
    """Give the tokens of each document in each row, as ``document_ids`` tells them apart."""
    found = batch.to_training(
        return_document_ids=True, pad_to=L, return_padding_mask=True, dtype=np.int64, **arguments
    )
    for tokens, ids, pads in zip(
        found["input_ids"], found["document_ids"], found["padding_mask"], strict=True
    ):
        assert ((ids < 0) == pads).all()
        yield [tokens[ids == number].tolist() for number in range(ids.max() + 1)]


@pytest.mark.parametrize("call", ["pack_flat", "pack_sequences"])
@pytest.mark.parametrize("algorithm", [*FITS, *WRAPS])
def test_documents_of_any_length_in_every_mode(algorithm, call):
    """Wrapping modes deliver every token once; the others whole documents, the rest counted."""
    lengths = [1, L - 1, L, L + 1, 2 * L, 2 * L + 1, 10 * L, 0, 1, 1]
    data = token_dataset("prose", lengths, 1)
    whole = [row["input_ids"] for row in data.backend["shards"][0].getsamples(range(10))]
    pipe = packed_as(data, algorithm, call)
    found = [document for batch in pipe for row in documents_in(batch) for document in row]
    (part,) = pipe.accounting().values()
    dropped = sum(part["tokens_dropped"].values())
    assert part["tokens_delivered"] + dropped == sum(lengths)
    if algorithm in FITS:
        assert sorted(found) == sorted(row for row in whole if 0 < len(row) <= L)
        assert part["tokens_dropped"] == {"oversized": sum(n for n in lengths if n > L)}
    else:
        made = [token for row in whole for token in row]
        delivered = sorted(token for document in found for token in document)
        assert delivered == made[: len(made) - dropped]
        assert dropped == (sum(lengths) % L if algorithm == "wrap" else 0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=14),
    st.sampled_from([*FITS, *WRAPS]),
    st.sampled_from(["pack_flat", "pack_sequences"]),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore:the data end before", "ignore:packing dropped")
def test_ids_bounds_and_positions_are_those_that_the_tokens_tell(lengths, algorithm, call, labels):
    """Tokens say which document they are of and where in it; nothing else is looked at here."""
    for batch in packed_as(token_dataset("prose", lengths, 1), algorithm, call):
        out = batch.to_training(
            return_labels=labels, mask_document_boundaries=labels, return_cu_seqlens=True,
            return_document_ids=True, pad_to=L, dtype=None,
        )  # fmt: skip
        whole = batch.to_training(pad_to=L, dtype=None)["input_ids"]
        for i, (row, inputs) in enumerate(zip(whole, out["input_ids"], strict=True)):
            assert inputs == (row[:-1] if labels else row)
            starts = [
                at
                for at, (before, token) in enumerate(pairwise([-1, *row]))
                if (token and token != before + 1) or (not token and before)
            ]
            ends = [*starts[1:], L]
            ids = [
                n if row[a] else -1
                for n, (a, b) in enumerate(zip(starts, ends, strict=True))
                for _ in range(a, b)
            ]
            at = [k for a, b in zip(starts, ends, strict=True) for k in range(b - a)]
            assert out["document_ids"][i] == ids[: len(inputs)]
            assert out["positions"][i] == at[: len(inputs)]
            bounds = [a for a in starts if a < len(inputs)] + [len(inputs)]
            assert out["cu_seqlens"][i][: len(bounds)] == bounds
            if labels:
                assert out["labels"][i] == [
                    -100 if k in starts or not row[k] else row[k] for k in range(1, L)
                ]
