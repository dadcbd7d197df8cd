"""The tokenize step against a loop that is slow and obvious, mode by mode."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, processors

from tests.exec.operators.morsels import children, lineages, payload_of
from zephon.errors import ExecutionError, TokenizerError
from zephon.exec.block import Lost
from zephon.exec.morsel import TOKENS, Morsel, token_view
from zephon.exec.operators.tokenize_column import TokenizeColumnOp
from zephon.exec.tokenizers import load_tokenizer
from zephon.io.made_rows import MadeRecords
from zephon.planner import physical
from zephon.types import SampleMeta
from zephon.work.refs import Refs

TEXT = pa.large_string()
BOS, EOS, PAD = 256, 257, 258


def byte_tokenizer() -> tokenizers.Tokenizer:
    """A token a byte; the template says BOS BOS text EOS."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.add_special_tokens(["<bos>", "<eos>", "<pad>"])
    made.post_processor = processors.TemplateProcessing(
        single="<bos> <bos> $A <eos>", special_tokens=[("<bos>", BOS), ("<eos>", EOS)]
    )
    return made


@pytest.fixture(scope="module")
def reference():
    return byte_tokenizer()


@pytest.fixture(scope="module")
def loaded(reference):
    return load_tokenizer(tokenizer=reference, add_special_tokens=True)


class Payload:
    has_metas = False

    def __init__(self, rows):
        self.rows = rows

    def take(self, indices):
        return Payload([self.rows[i] for i in indices])


def node(**settings):
    return physical.TokenizeColumn(
        **{
            "tokenizer": None,
            "tokenizer_id": None,
            "split_special_tokens": False,
            "field": "text",
            "special_tokens": "bos_eos",
            "bos_token_id": None,
            "eos_token_id": None,
            "max_length": None,
            "truncation": False,
            "split_long_samples": False,
            "padding": "none",
            "keep_mask": False,
            "keep_payload": False,
            **settings,
        }
    )


def morsel(texts, payload=None, first=0):
    count = len(texts)
    numbers = np.arange(count)
    refs = Refs.of(
        np.zeros(count, np.int32), numbers // 3, numbers, np.zeros(count, np.int32), numbers + first
    )
    columns = [pa.array(range(count)), pa.array(texts, TEXT)]
    return Morsel(refs, pa.RecordBatch.from_arrays(columns, names=["other", "text"]), payload)


def lists(rows, name="input_ids"):
    column = rows.columns.column(rows.columns.schema.get_field_index(name))
    assert column.type == TOKENS
    token_view(column)
    return column.to_pylist()


def slowly(reference, texts, spec):
    """Return (row, child, last, ids, mask) of every row, one document at a time."""
    made = []
    for place, text in enumerate(texts):
        plain = reference.encode(text, add_special_tokens=False).ids
        before, after = {
            "bos_eos": ([BOS], [EOS]),
            "bos": ([BOS], []),
            "eos": ([], [EOS]),
            "none": ([], []),
            "tokenizer_default": ([BOS, BOS], [EOS]),
        }[spec.special_tokens]
        if spec.truncation:
            plain = plain[: spec.max_length - len(before) - len(after)]
        row = before + plain + after
        pieces = [row]
        if spec.split_long_samples:
            pieces = [row[i : i + spec.max_length] for i in range(0, len(row), spec.max_length)]
            pieces = pieces or [[]]
        for child, piece in enumerate(pieces):
            missing = 0
            if spec.padding == "max_length":
                missing = max(0, spec.max_length - len(piece))
            ids, mask = piece + [PAD] * missing, [1] * len(piece) + [0] * missing
            made.append((place, child, child == len(pieces) - 1, ids, mask))
    return made


words = st.lists(
    st.one_of(
        st.text(max_size=10),
        st.sampled_from(["", "<eos>", "a<bos>b", " <pad>", "null", "é" * 20, "x" * 31]),
    ),
    max_size=6,
)
specs = st.builds(
    dict,
    special_tokens=st.sampled_from(["bos_eos", "bos", "eos", "none", "tokenizer_default"]),
    cut=st.sampled_from(["", "truncation", "split_long_samples"]),
    max_length=st.integers(3, 9),
    padding=st.sampled_from(["none", "longest", "max_length"]),
)


@settings(max_examples=120, deadline=None)
@given(words, specs)
def test_every_mode_equals_the_slow_way(reference, loaded, texts, spec):
    cut = spec.pop("cut")
    chosen = node(keep_mask=True, keep_payload=True, **spec, **({cut: True} if cut else {}))
    rows = TokenizeColumnOp(chosen, loaded).run(morsel(texts, Payload(list(texts))))
    came = list(
        zip(
            rows.refs.row.tolist(),
            rows.refs.child.tolist(),
            rows.refs.last_child.tolist(),
            lists(rows),
            lists(rows, "attention_mask"),
            strict=True,
        )
    )
    assert came == slowly(reference, texts, chosen)
    assert rows.payload.rows == [texts[row] for row in rows.refs.row]


def test_only_tokens_leave(loaded):
    rows = TokenizeColumnOp(node(), loaded).run(morsel(["ab"], Payload(["ab"])))
    assert rows.columns.schema.names == ["input_ids"]
    assert rows.payload is None


def test_no_rows_stay_no_rows(loaded):
    split = node(max_length=4, split_long_samples=True, padding="max_length", keep_mask=True)
    for chosen in (node(), split):
        rows = TokenizeColumnOp(chosen, loaded).run(morsel([]))
        assert lists(rows) == []
        assert len(rows.refs) == 0


def test_a_document_that_fits_reads_as_never_split(loaded):
    chosen = node(max_length=4, split_long_samples=True)
    before = morsel(["ab", "", "a"])
    rows = TokenizeColumnOp(chosen, loaded).run(before)
    assert rows.refs is before.refs
    rows = TokenizeColumnOp(chosen, loaded).run(morsel(["ab", "abc"]))
    assert rows.refs.row.tolist() == [0, 1, 1]
    assert rows.refs.child.tolist() == [0, 0, 1]
    assert rows.refs.last_child.tolist() == [True, False, True]


def test_what_a_row_measures_goes_with_each_of_its_parts(loaded):
    before = replace(morsel(["ab", "abc", ""]), measures={"weight": np.array([5, 6, 7])})
    for chosen, wanted in (
        (node(), [5, 6, 7]),
        (node(max_length=4, split_long_samples=True), [5, 6, 6, 7]),
    ):
        rows = TokenizeColumnOp(chosen, loaded).run(before)
        assert rows.measures["weight"].tolist() == wanted


def test_chosen_ids_go_before_the_tokenizers_own(loaded):
    rows = TokenizeColumnOp(node(bos_token_id=7, eos_token_id=8), loaded).run(morsel([""]))
    assert lists(rows) == [[7, 8]]


def test_the_template_is_the_tokenizers_own(loaded, reference):
    chosen = node(special_tokens="tokenizer_default")
    texts = ["", "ab", "a<eos>b"]
    rows = TokenizeColumnOp(chosen, loaded).run(morsel(texts))
    assert lists(rows) == [reference.encode(text).ids for text in texts]


def test_there_is_one_bos_and_a_second_one_in_text_is_warned_of(loaded, caplog):
    rows = TokenizeColumnOp(node(), loaded).run(morsel(["a"]))
    assert lists(rows)[0].count(BOS) == 1
    fresh = load_tokenizer(tokenizer=byte_tokenizer())
    rows = TokenizeColumnOp(node(), fresh).run(morsel(["<bos>a"]))
    assert lists(rows)[0].count(BOS) == 2
    assert "holds the special token '<bos>'" in caplog.text


def test_split_special_tokens_keeps_boundaries(reference):
    plain = load_tokenizer(tokenizer=reference, split_special_tokens=True)
    rows = TokenizeColumnOp(node(split_special_tokens=True), plain).run(morsel(["a<eos>b"]))
    assert lists(rows)[0].count(EOS) == 1
    assert len(lists(rows)[0]) == 9


@pytest.mark.parametrize(("mode", "role"), [("bos_eos", "bos"), ("bos", "bos"), ("eos", "eos")])
def test_a_missing_id_says_which_to_pass(reference, mode, role):
    bare = tokenizers.Tokenizer.from_str(reference.to_str().replace("<bos>", "<b>"))
    bare = tokenizers.Tokenizer.from_str(bare.to_str().replace("<eos>", "<e>"))
    tokenizer = load_tokenizer(tokenizer=bare)
    with pytest.raises(
        TokenizerError,
        match=f"special_tokens='{mode}' needs a {role.upper()} id, .* pass {role}_token_id",
    ):
        TokenizeColumnOp(node(special_tokens=mode), tokenizer)
    TokenizeColumnOp(node(special_tokens=mode, bos_token_id=1, eos_token_id=2), tokenizer)
    TokenizeColumnOp(node(special_tokens="none"), tokenizer)


def test_padding_adopts_eos_and_needs_something(reference):
    without_pad = reference.to_str().replace("<pad>", "<p>")
    tokenizer = load_tokenizer(tokenizer=tokenizers.Tokenizer.from_str(without_pad))
    padded = node(max_length=4, padding="max_length", special_tokens="none")
    assert lists(TokenizeColumnOp(padded, tokenizer).run(morsel([""]))) == [[EOS] * 4]
    bare = load_tokenizer(
        tokenizer=tokenizers.Tokenizer.from_str(without_pad.replace("<eos>", "<e>"))
    )
    with pytest.raises(TokenizerError, match=r"needs a pad id, .* names neither a pad nor an EOS"):
        TokenizeColumnOp(padded, bare)


def test_a_template_needs_room(loaded):
    with pytest.raises(TokenizerError, match="max_length=2 leaves no room for the 3 special"):
        TokenizeColumnOp(
            node(special_tokens="tokenizer_default", truncation=True, max_length=2), loaded
        )


def test_an_id_beyond_int32_is_refused(loaded):
    with pytest.raises(TokenizerError, match="bos_token_id must be from 0 to 2147483647, got 21"):
        TokenizeColumnOp(node(bos_token_id=2**31), loaded)


def test_a_missing_column_and_nulls_are_refused(loaded):
    with pytest.raises(ExecutionError, match="no column 'body'; the columns are other, text"):
        TokenizeColumnOp(node(field="body"), loaded).run(morsel(["a"]))
    with pytest.raises(ExecutionError, match="1 of 2 documents are null"):
        TokenizeColumnOp(node(), loaded).run(morsel(["a", None]))


def test_a_slice_of_a_column_is_encoded_as_such(loaded):
    whole = morsel(["a", "bc", "def", ""])
    part = Morsel(whole.refs.slice(1, 3), whole.columns.slice(1, 2))
    everything = lists(TokenizeColumnOp(node(), loaded).run(whole))
    assert lists(TokenizeColumnOp(node(), loaded).run(part)) == everything[1:3]


def test_rows_that_say_who_they_are_go_on_when_they_are_split(loaded):
    metas = [SampleMeta((0, 0, n), 0, 0, n, lineage=(4,)) for n in range(3)]
    source = MadeRecords([{"n": n} for n in range(3)], metas)
    ends = np.array([False, True, True])
    rows = morsel(["abcde", "a", ""], payload_of(source, 3))
    rows = replace(rows, refs=replace(rows.refs, ordinal=np.array([0, 0, 1]), last_child=ends))
    for keep, below in ((True, [{"n": 0}, {"n": 0}, {"n": 1}, {"n": 2}]), (False, [{}] * 4)):
        chosen = node(
            max_length=3, split_long_samples=True, special_tokens="none", keep_payload=keep
        )
        made = TokenizeColumnOp(chosen, loaded).run(rows)
        assert lineages(made) == [(4, 0), (4, 1), (4,), (4,)]
        assert children(made) == [(0, 0, False), (0, 1, False), (0, 2, True), (1, 0, True)]
        assert made.payload.rows() == below
    assert TokenizeColumnOp(node(), loaded).run(rows).payload.meta(0) == metas[0]


def test_draws_that_are_lost_stay_lost(loaded):
    lost = Lost(morsel(["x"]).refs, np.array([1], np.int8))
    assert TokenizeColumnOp(node(), loaded).run(replace(morsel(["ab"]), lost=lost)).lost is lost
