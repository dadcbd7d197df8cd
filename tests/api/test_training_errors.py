"""``to_training``: arguments and rows that do not fit, and a batch without rows."""

import numpy as np
import pytest
import torch

from tests.columns_by_hand import engine_batch, user_batch
from zephon.errors import DataError, PlanError
from zephon.types import SampleBatch


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"return_label": True}, TypeError, "no argument 'return_label'; did you mean 'return_la"),
        ({"exclude_fields": "ids"}, TypeError, "exclude_fields must be a list or tuple of names"),
        ({"extra_fields": "mask"}, TypeError, "extra_fields must be a list or tuple of names"),
        ({"extra_fields": 3}, TypeError, "extra_fields must be a list or tuple of names"),
        ({"extra_fields": [1]}, TypeError, "extra_fields must hold names of fields, got 1; write"),
        ({"exclude_fields": [b"x"]}, TypeError, "exclude_fields must hold names of fields, got b"),
        ({"rename_fields": ["ids"]}, TypeError, "rename_fields must be a dict"),
        ({"rename_fields": {5: "x"}}, TypeError, "rename_fields must hold names of fields, got 5"),
        ({"rename_fields": {"ids": 5}}, TypeError, "rename_fields must hold names of fields, got"),
        ({"collate_fields": {5: list}}, TypeError, "collate_fields must hold names of fields, go"),
        ({"return_labels": "no"}, ValueError, "return_labels must be True or False, got 'no'; pa"),
        ({"flatten": 1}, ValueError, "flatten must be True or False, got 1; pass flatten=True"),
        ({"return_cu_seqlens": None}, ValueError, "return_cu_seqlens must be True or False, got"),
        (
            {"pad_to": 3, "pad_token_id": 300, "dtype": np.uint8},
            ValueError,
            "pad_token_id must fit uint8, got 300; pass a wider dtype",
        ),
        (
            {"pad_to": 300, "position_mode": "sequence", "dtype": np.int8},
            ValueError,
            "'positions' holds 299, which int8 cannot hold exactly; pass a wider dtype",
        ),
        ({"tokens_field": None}, ValueError, "tokens_field must be 'auto' or the name"),
        ({"tokens_field": "input_id"}, ValueError, "no tokens field 'input_id' in row 0; did you"),
        ({"position_mode": "sequences"}, ValueError, "position_mode must be .* mean 'sequence'"),
        ({"return_loss_mask": True}, ValueError, "return_loss_mask=True needs labels"),
        ({"return_num_valid_tokens": True}, ValueError, "return_num_valid_tokens=True needs la"),
        ({"eos_mask_loss": True, "eos_token_id": 1}, ValueError, "eos_mask_loss=True needs label"),
        ({"eos_mask_loss": True, "return_labels": True}, ValueError, "needs eos_token_id, got Non"),
        ({"eos_token_id": -1}, ValueError, "eos_token_id must be at least 0, got -1"),
        ({"eos_token_id": True}, ValueError, "eos_token_id must be an int, got True"),
        ({"eos_token_id": 1.0}, ValueError, "eos_token_id must be an int, got 1.0"),
        ({"ignore_index": "no"}, ValueError, "ignore_index must be an int, got 'no'"),
        ({"extra_fields": ["attention"]}, ValueError, "extra field 'attention' is missing in row"),
        ({"mask_document_boundaries": True}, ValueError, "mask_document_boundaries=True needs lab"),
        ({"mask_document_boundary": True}, TypeError, "did you mean 'mask_document_boundaries'"),
        ({"pad_to": "longst"}, ValueError, "pad_to must be 'longest', .*; did you mean 'longest'"),
        ({"pad_to": 0}, ValueError, "pad_to must be at least 1, got 0"),
        ({"pad_to": True}, ValueError, "pad_to must be an int, got True"),
        ({"pad_to": 1}, ValueError, "pad_to must be at least .* longest row, which are 2 in row 0"),
        ({"pad_token_id": 5}, ValueError, "pad_token_id=5 needs pad_to, got None"),
        ({"pad_to": 3, "pad_token_id": -1}, ValueError, "pad_token_id must be at least 0, got -1"),
        ({"pad_to": 3, "pad_token_id": 1.5}, ValueError, "pad_token_id must be an int, got 1.5"),
        ({"collate_fields": [list]}, TypeError, "collate_fields must be a dict from fields to"),
        ({"collate_fields": {"a": 1}}, TypeError, r"collate_fields\['a'\] must be a function"),
        ({"collate_fields": {"labels": list}}, ValueError, "got 'labels', which is made already"),
        ({"collate_fields": {"loss_mask": list}}, ValueError, "'loss_mask', which is made already"),
        (
            {"collate_fields": {"a": list}, "extra_fields": ["a"]},
            ValueError,
            "got 'a', which extra_fields names too",
        ),
        (
            {"collate_fields": {"image": list}},
            ValueError,
            "must name fields that every row has, got 'im",
        ),
        (
            {"extra_fields": ["document_ids"], "return_document_ids": True},
            ValueError,
            "got 'document_ids', which to_training makes itself",
        ),
        *(
            ({"extra_fields": [name], "return_labels": True}, ValueError, f"got '{name}', which to")
            for name in (
                *("loss_mask", "padding_mask", "num_valid_tokens", "cu_seqlens", "max_seqlen"),
                *("input_ids", "labels", "ids", "texts", "positions"),
            )
        ),
    ],
)
@pytest.mark.parametrize(
    "batch",
    [engine_batch([[1, 2]] * 2), user_batch({"input_ids": [1, 2]}, {"input_ids": [3, 4]})],
    ids=["engine", "records"],
)
def test_an_argument_that_does_not_fit_is_refused(batch, arguments, error, message):
    with pytest.raises(error, match=message):
        batch.to_training(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"return_cu_seqlens": True},
        {"return_document_ids": True},
        {"mask_document_boundaries": True, "return_labels": True},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_records_of_a_user_must_say_where_documents_begin(arguments):
    batch = user_batch({"input_ids": [1, 2]}, {"input_ids": [3, 4]})
    with pytest.raises(
        PlanError, match=f"{next(iter(arguments))}=True needs the field 'positions'"
    ):
        batch.to_training(**arguments)
    assert engine_batch([[1, 2]] * 2).to_training(**arguments)


@pytest.mark.parametrize(
    ("second", "arguments", "message"),
    [
        ({}, {}, "'tokens' must be in every row or in none, and row 1 has none"),
        (
            {"tokens": [1, 2], "positions": [0, 1], "loss_mask": [1, 1]},
            {"extra_fields": ["x"]},
            "'x' must be in every row or in none, and row 1 has none",
        ),
        (
            {"tokens": [1, 2], "x": 1, "loss_mask": [1, 1]},
            {},
            "'positions' must be in every row or in none, and row 1",
        ),
        (
            {"tokens": [1, 2], "x": 1, "positions": [0, 1]},
            {},
            "'loss_mask' must be in every row or in none, and row 1",
        ),
        (
            {"tokens": [1, 2], "positions": [0], "loss_mask": [1, 1]},
            {},
            "'positions' must have one value a token, and row 1 has 2 tokens and 1 values",
        ),
        (
            {"tokens": [1, 2], "positions": [0, 1], "loss_mask": [1, 1, 1]},
            {},
            "'loss_mask' must have one value a token, and row 1 has 2 tokens and 3 values",
        ),
        (
            {"tokens": [1, 2], "positions": [1, 2], "loss_mask": [1, 1]},
            {"return_cu_seqlens": True},
            "needs positions that start at 0, and those of row 1 start at 1",
        ),
        ({"tokens": "one two"}, {}, "'tokens' of row 1 must hold numbers .* got str 'one two'"),
        ({"tokens": [1, None]}, {}, r"'tokens' of row 1 must hold numbers .* got list \[1, None\]"),
        ({"tokens": [[1], [2]]}, {}, r"'tokens' must have one shape .* \(2,\) in row 0 and \(2, 1"),
        ({"tokens": 7}, {}, r"'tokens' must have one shape beside its length"),
    ],
)
@pytest.mark.parametrize("labels", [False, True])
def test_a_row_that_does_not_fit_is_refused_by_number(second, arguments, message, labels):
    first = {"tokens": [1, 2], "x": 1, "positions": [0, 1], "loss_mask": [1, 1]}
    with pytest.raises(DataError, match=message):
        user_batch(first, second).to_training(return_labels=labels, **arguments)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [(7, "got single values"), ([[1], [2]], "got nested sequences")],
)
def test_tokens_must_be_one_sequence_a_row(tokens, message):
    with pytest.raises(DataError, match=message):
        user_batch({"tokens": tokens}).to_training()


def test_positions_must_be_a_sequence():
    with pytest.raises(DataError, match=r"'positions' must have one value a token.*single value"):
        user_batch({"tokens": [1, 2], "positions": 0}).to_training()


@pytest.mark.parametrize("length", [-1, 3])
def test_padding_must_lie_inside_the_row(length):
    for batch in (
        user_batch({"tokens": [1, 2]}, {"tokens": [1, 2]}, padding=[0, length]),
        engine_batch([[1, 2]] * 2, padding=[0, length], packing="flat"),
    ):
        with pytest.raises(DataError, match=f"padding_length of row 1 .* 0 to 2.* got {length}"):
            batch.to_training(return_labels=True)
    with pytest.raises(DataError, match="padding_length of row 0 must be an int, got 'two'"):
        user_batch({"tokens": [1, 2]}, padding=["two"]).to_training()


def test_an_eos_id_that_does_nothing_is_warned_of_at_the_caller():
    with pytest.warns(UserWarning, match="eos_token_id=2 does nothing") as caught:
        engine_batch([[1, 2]]).to_training(eos_token_id=2)
    assert caught[0].filename == __file__


def test_an_empty_batch_answers_with_nothing():
    empty = SampleBatch([])
    assert empty.to_training() == {"ids": [], "texts": []}
    everything = {
        "return_labels": True,
        "return_loss_mask": True,
        "return_num_valid_tokens": True,
        "return_padding_mask": True,
        "return_cu_seqlens": True,
        "return_document_ids": True,
        "mask_document_boundaries": True,
        "collate_fields": {"image": list},
    }
    assert empty.to_training(**everything, rename_fields={"input_ids": "x", "ids": "who"}) == {
        "who": [],
        "texts": [],
        "loss_mask": [],
        "num_valid_tokens": 0,
        "padding_mask": [],
        "cu_seqlens": [],
        "max_seqlen": [],
        "document_ids": [],
    }
    flat = empty.to_training(**everything, flatten=True)
    assert (flat["cu_seqlens"], flat["max_seqlen"]) == ([0], 0)
    with pytest.raises(PlanError):
        empty.to_training(return_loss_mask=True)


@pytest.mark.parametrize(
    ("dtype", "width"), [(np.uint8, 257), (np.int16, 32769), (torch.bfloat16, 258)]
)
def test_numbers_of_a_long_row_must_fit_the_type(dtype, width):
    batch = engine_batch([[0] * width])
    with pytest.raises(DataError, match=f"'positions' holds {width - 1}, which .* cannot hold ex"):
        batch.to_training(position_mode="sequence", dtype=dtype)
    batch = engine_batch([[0] * (width - 1)])
    found = batch.to_training(position_mode="sequence", dtype=dtype)["positions"]
    assert found[0].tolist() == list(range(width - 1))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([2**53 + 1], [0.5], "one type of numbers, got 9007199254740993 in row 0, which float64"),
        (
            np.array([2**63], np.uint64),
            [-1],
            "one type of numbers, got 9223372036854775808 in row 0, which int64",
        ),
    ],
)
def test_rows_that_one_type_does_not_hold_are_refused(first, second, message):
    for scalars in (False, True):
        rows = [{"ids": [0], "x": value[0] if scalars else value} for value in (first, second)]
        with pytest.raises(DataError, match=f"'x' must have {message}"):
            user_batch(*rows).to_training(extra_fields=["x"], dtype=np.float64)
    documents = [{"ids": first}, {"ids": second}]
    with pytest.raises(DataError, match="in document 0 of row 0, which"):
        user_batch({"packed_samples": documents}).to_training()


def test_whole_rows_of_several_types_keep_their_values():
    rows = [np.array([2**53 + 1], np.uint64), np.array([-1]), [True]]
    out = user_batch(*({"ids": row} for row in rows)).to_training(dtype=None)
    assert out["input_ids"] == [[2**53 + 1], [-1], [1]]


@pytest.mark.parametrize("name", ["positions", "loss_mask"])
def test_what_acts_must_have_one_value_a_token(name):
    batch = user_batch({"ids": [1, 2], name: [[0, 0, 0], [1, 1, 1]]})
    for labels in (False, True):
        with pytest.raises(DataError, match=rf"'{name}' .* one value a token, .* shape \(3,\)"):
            batch.to_training(return_labels=labels, return_cu_seqlens=name == "positions")
    mixed = user_batch({"ids": [1, 2], name: [0, 1]}, {"ids": [1, 2], name: [[0], [1]]})
    with pytest.raises(DataError, match=rf"'{name}' must have one shape .*\(2, 1\) in row 1"):
        mixed.to_training()


@pytest.mark.parametrize("count", [1, 3])
def test_a_field_that_a_row_lacks_is_refused_at_every_batch_size(count):
    rows = [{"ids": [1], "text": "x"}, {"ids": [1], "text": "y"}, {"ids": [1]}]
    batch = user_batch(*rows[-count:])
    with pytest.raises(DataError, match=f"'text'.* and row {count - 1} has none"):
        batch.to_training(collate_fields={"text": list})


def test_a_batch_must_be_of_records():
    with pytest.raises(TypeError, match=r"SampleBatch: records must be a list .* got 5; write Sam"):
        SampleBatch(5)
    with pytest.raises(PlanError, match="extra field 'x' is missing in row 0; there are none to"):
        user_batch(np.array([1, 2])).to_training(extra_fields=["x"])
