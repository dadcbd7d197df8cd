"""Rows put together by hand: every output of a training batch, one token after the other."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packed_by_hand import Piece, Row, batch_of, by_hand
from tests.properties.recipes import token_dataset
from tests.written import pipeline
from zephon import Dataset, InMemoryShard
from zephon.types import SampleBatch, SampleMeta, SampleRecord

EOS = 2
L = 16


def packed(data, max_length, microbatch=1, **changes):
    pipe = pipeline(data).pack_flat(max_length, algorithm="wrap", **changes)
    return pipe.batch(microbatch, drop_last=False)


@st.composite
def packed_by_hand(draw):
    """Rows of pieces, some of no tokens; flat rows are padded to one width, or are all padding."""
    token = st.integers(0, 4)  # the pad id and the end of a document are among them
    packing = draw(st.sampled_from(["flat", "sequences"]))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        pieces = []
        for _ in range(draw(st.integers(1, 4))):
            tokens = draw(st.lists(token, max_size=5))
            flags = draw(st.lists(st.integers(0, 1), min_size=len(tokens), max_size=len(tokens)))
            pieces.append(Piece(tokens, draw(st.integers(0, 2)), draw(st.booleans()), flags=flags))
        rows.append(Row(pieces))
    lengths = [sum(len(piece.tokens) for piece in row.pieces) for row in rows]
    if packing == "flat":
        width = max(lengths) + draw(st.integers(0, 2))
        for row, length in zip(rows, lengths, strict=True):
            row.padding = width - length
    return packing, rows, max(lengths)


def forms_of(packing, rows, flagged, positions, container):
    """Give the same rows in every form in which a batch may hold them.

    container: of the records that are looked at.
    """
    flags = "loss_mask" if flagged else None
    kind = {"list": "keep_list", "np": "numpy_array", "pt": "torch_tensor"}

    def engine(container="list"):
        how = {"pack_payloads": kind[container]} if packing == "sequences" else {}
        return batch_of(rows, packing, flags=flags, positions=positions, container=container, **how)

    yield "columns", engine()
    looked_at = engine(container)
    for record in looked_at.records[1:]:
        record.payload  # noqa: B018
    yield "columns that were looked at", looked_at
    yield "pickled after a look", pickle.loads(pickle.dumps(looked_at))
    yield "records", SampleBatch(engine(container).records)
    if packing == "sequences":
        documents = [
            [
                {"input_ids": piece.tokens, **({flags: piece.flags} if flags else {})}
                for piece in row.pieces
            ]
            for row in rows
        ]
        yield (
            "records of a user",
            SampleBatch(
                SampleRecord(SampleMeta((0, 0, i), 0, 0, i), {"packed_samples": row})
                for i, row in enumerate(documents)
            ),
        )
        function = batch_of(rows, packing, flags=flags, pack_payloads=tuple)
        yield "columns with a function", function


@settings(max_examples=100, deadline=None)
@given(packed_by_hand(), st.data())
def test_every_output_is_that_of_a_walk_over_the_tokens(made, data):
    """Bounds, ids, masks, labels, positions: by hand, in every form and with every option."""
    packing, rows, longest = made
    draw = data.draw
    labels, flatten, flagged, positions = (draw(st.booleans()) for _ in range(4))
    boundaries = labels and draw(st.booleans())
    eos = draw(st.sampled_from([None, 2])) if labels else None
    width = longest if packing == "sequences" else longest + rows[0].padding + 2
    pads = ["longest", max(width, 1), width + 3]
    pad_to = draw(st.sampled_from([None, *pads] if packing == "flat" else pads))
    pad = draw(st.sampled_from([0, 2, 9]))  # as packed padding, as EOS in documents, neither
    options = {
        "return_labels": labels,
        "flatten": flatten,
        "mask_document_boundaries": boundaries,
        "eos_mask_loss": eos is not None,
        "eos_token_id": eos,
        "pad_to": pad_to,
        "pad_token_id": pad if pad_to else None,
        "return_cu_seqlens": True,
        "return_document_ids": True,
        "return_padding_mask": True,
        "return_loss_mask": labels,
        "return_num_valid_tokens": labels,
        "dtype": np.int64,
        "exclude_fields": ("ids", "texts") if labels else ("ids", "texts", "loss_mask"),
    }
    expected = by_hand(
        rows,
        labels=labels,
        flatten=flatten,
        boundaries=boundaries,
        eos=eos,
        pad_to=pad_to,
        pad=pad,
        flagged=flagged,
    )
    if not positions and packing == "flat":
        del expected["positions"]
    whole = {"cu_seqlens", "max_seqlen", "num_valid_tokens"}
    if flatten:
        expected = {
            name: value if name in whole else [v for row in value for v in row]
            for name, value in expected.items()
        }
    positions = positions and packing == "flat"
    container = draw(st.sampled_from(["list", "np", "pt"]))
    for form, batch in forms_of(packing, rows, flagged, positions, container):
        found = batch.to_training(**options)
        as_lists = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in found.items()
        }
        assert as_lists == expected, form


# Rows that hold padding, put together by hand


def shape_of(out, *names):
    return [out[name].tolist() for name in names]


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("pad", [0, EOS])
def test_a_pad_tail_is_a_segment_of_its_own_whatever_its_id(positions, pad):
    row = Row([Piece([1, 2, EOS]), Piece([3, EOS, 4, EOS])], padding=1)
    batch = batch_of([row], "flat", positions=positions, pad=pad)
    out = batch.to_training(return_cu_seqlens=True, return_document_ids=True, dtype=np.int64)
    assert shape_of(out, "cu_seqlens", "max_seqlen") == [[[0, 3, 7, 8]], [4]]
    assert out["document_ids"].tolist() == [[0, 0, 0, 1, 1, 1, 1, -1]]
    assert ("positions" in out) is positions


def test_a_tokenizer_s_end_tokens_inside_a_document_make_no_mask():
    row = Row([Piece([EOS, EOS, 1, EOS]), Piece([EOS])], padding=2)
    found = batch_of([row], "flat", pad=EOS).to_training(
        return_labels=True, return_document_ids=True, mask_document_boundaries=True, dtype=np.int64
    )
    assert found["labels"].tolist() == [[EOS, 1, EOS, -100, -100, -100]]
    assert found["document_ids"].tolist() == [[0, 0, 0, 0, 1, -1]]


@pytest.mark.parametrize("how", ["flat", "sequences", "records"])
def test_the_last_real_end_token_keeps_its_label_before_padding_of_the_same_id(how):
    tokens, padding = [5, 6, EOS], {"flat": 2}.get(how, 0)
    if how == "records":
        batch = SampleBatch([SampleRecord(SampleMeta((0, 0, 0), 0, 0), {"input_ids": tokens})])
    else:
        batch = batch_of([Row([Piece(tokens)], padding)], how, pad=EOS)
    found = batch.to_training(
        return_labels=True, return_num_valid_tokens=True, return_padding_mask=True,
        pad_to=5, pad_token_id=EOS, dtype=np.int64,
    )  # fmt: skip
    assert found["input_ids"].tolist() == [[5, 6, EOS, EOS]]
    assert found["labels"].tolist() == [[6, EOS, -100, -100]]
    assert found["padding_mask"].tolist() == [[False, False, False, True]]
    assert found["num_valid_tokens"] == 2


def test_a_document_that_begins_with_the_last_token_still_masks_the_label_before_it():
    """The shift takes the document out of the inputs, but its token is the last label."""
    row = Row([Piece([1, 2]), Piece([3])])
    found = batch_of([row], "flat").to_training(
        return_labels=True, mask_document_boundaries=True, return_document_ids=True, dtype=np.int64
    )
    assert shape_of(found, "labels", "document_ids") == [[[2, -100]], [[0, 0]]]


@pytest.mark.parametrize("length", [1, L - 1, L, L + 1, 2 * L, 2 * L + 1, 10 * L])
def test_a_document_of_any_length_is_trained_on_but_where_a_row_begins(length):
    """One token a row and the first of a document are never labels; every other token is once."""
    lengths = [3, length, L - 3 - length % L]
    seen = []
    for batch in packed(token_dataset("prose", lengths, 1), L):
        found = batch.to_training(
            return_labels=True, mask_document_boundaries=True, return_document_ids=True,
            return_cu_seqlens=True, dtype=np.int64,
        )  # fmt: skip
        seen += [label for label in found["labels"][0].tolist() if label >= 0]
        bounds = [at for at in found["cu_seqlens"][0].tolist() if at < L - 1]
        ids = found["document_ids"][0]
        assert [int(np.argmax(ids == number)) for number in range(ids.max() + 1)] == bounds
    rows = token_dataset("prose", lengths, 1).backend["shards"][0].getsamples(range(3))
    stream = [(at, token) for row in rows for at, token in enumerate(row["input_ids"])]
    stream = stream[: len(stream) // L * L]
    assert seen == [token for i, (at, token) in enumerate(stream) if at and i % L]


# A mask of what is trained on, made before packing


def turns(*parts):
    """Give tokens and loss mask of a conversation: (speaker, tokens) in order."""
    tokens = [token for _, said in parts for token in said]
    return tokens, [int(who == "assistant") for who, said in parts for _ in said]


@pytest.mark.parametrize("boundaries", [False, True])
def test_exactly_the_assistant_s_tokens_are_labels_in_packed_rows(boundaries):
    """Three turns, a tool between them, the end of a turn included; a row cuts the second one."""
    chats = [
        turns(("user", [10, 11]), ("assistant", [12, EOS]), ("tool", [13]), ("user", [14]),
              ("assistant", [15, 16, EOS])),
        turns(("assistant", [20, EOS]), ("user", [21]), ("assistant", [22, 23, EOS])),
    ]  # fmt: skip
    rows = [{"input_ids": tokens, "loss_mask": mask} for tokens, mask in chats]
    data = Dataset.from_dict("chats", {0: InMemoryShard(rows)})
    found, stream = [], [pair for chat in chats for pair in zip(*chat, strict=True)]
    for batch in packed(data, 5):
        out = batch.to_training(
            return_labels=True, return_loss_mask=True, dtype=np.int64,
            mask_document_boundaries=boundaries,
        )  # fmt: skip
        found.append((out["labels"][0].tolist(), out["loss_mask"][0].tolist()))
    begins = len(chats[0][0])
    for number, (labels, mask) in enumerate(found):
        for at, label in enumerate(labels, 5 * number + 1):
            token, said = stream[at]
            counts = said and not (boundaries and at == begins)
            assert label == (token if counts else -100)
            assert mask[at - 5 * number - 1] == counts
    assert len(found) == 3


def test_a_loss_mask_goes_with_the_documents_of_a_sequence_row():
    rows = [
        Row([Piece([1, 2, 3], flags=[0, 0, 1]), Piece([4, 5], flags=[1, 1])]),
        Row([Piece([6, 7], flags=[0, 0])]),
    ]
    found = batch_of(rows, "sequences", flags="loss_mask").to_training(
        return_labels=True, pad_to="longest", return_num_valid_tokens=True, dtype=np.int64
    )
    assert found["labels"].tolist() == [[-100, 3, 4, 5], [-100] * 4]
    assert found["num_valid_tokens"] == 3
