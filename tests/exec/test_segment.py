"""A fused run of steps: what one bad row spoils, and how its error is told."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.by_hand import LAYOUT, Counted, Numbered, chain_of, lane_of, segment_of, token
from tests.written import lines
from zephon import Dataset, InMemoryShard, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.errors import DataError, ExecutionError
from zephon.exec.launch import locate
from zephon.exec.morsel import TOKENS, Morsel
from zephon.exec.operator import Operator, RowError
from zephon.exec.segment import Segment
from zephon.io.fields import NUMBERS, Column
from zephon.planner.physical import RowLayout
from zephon.work.refs import Refs


class Refuses(Operator):
    """Raises for the rows named, as (lane, row); counts how often it ran."""

    label = "refuse"

    def __init__(self, bad, error=ValueError):
        self.bad = set(bad)
        self.error = error
        self.runs = 0

    def run(self, rows):
        self.runs += 1
        found = self.bad & set(zip(rows.refs.lane.tolist(), rows.refs.row.tolist(), strict=True))
        if found:
            raise self.error(f"bad rows {sorted(found)}")
        return rows


class Splits(Operator):
    """Makes two children of every row with an odd number, none of it read."""

    label = "split"

    def run(self, rows):
        odd = rows.refs.row % 2
        parent = np.repeat(np.arange(len(rows.refs)), 1 + odd)
        child = np.arange(len(parent)) - np.searchsorted(parent, parent)
        refs = rows.refs.take(parent)
        last = child == odd[parent]
        refs = Refs(refs.component, refs.shard, refs.row, refs.pass_index, refs.ordinal,
                    child.astype(np.int32), last, refs.lane)  # fmt: skip
        return Morsel(refs, rows.columns.take(pa.array(parent)), None)


def documents(block):
    """Give a block as (row, child, tokens)."""
    bounds, tokens = block.offsets.tolist(), block.buffer.columns["input_ids"]
    return [
        (int(block.refs.row[i]), int(block.refs.child[i]), tokens[a:b].tolist())
        for i, (a, b) in enumerate(itertools.pairwise(bounds))
    ]


def wanted(lengths, lane, rows):
    return [(row, 0, [token(lane, row, at) for at in range(lengths[row])]) for row in rows]


def draws(*lanes):
    """Give draws [first, stop) of lanes as one task has them."""
    return [Counted(None, lane).draw(first, stop - first) for lane, first, stop in lanes]


LENGTHS = [3, 0, 5, 1, 0, 2, 4, 7, 1, 1, 0, 6]


def test_each_lane_gets_a_block_of_its_own_draws():
    blocks = segment_of(LENGTHS).run(draws((2, 0, 4), (0, 3, 7), (1, 0, 1)))
    assert [documents(block) for block in blocks] == [
        wanted(LENGTHS, 2, range(4)),
        wanted(LENGTHS, 0, range(3, 7)),
        wanted(LENGTHS, 1, range(1)),
    ]
    assert [set(block.refs.lane.tolist()) for block in blocks] == [{2}, {0}, {1}]
    assert all(block.failure is None for block in blocks)
    assert {id(block.buffer) for block in blocks} == {id(blocks[0].buffer)}
    assert not blocks[0].buffer.columns["input_ids"].flags.writeable


def test_lanes_without_draws_get_empty_blocks():
    (block,) = segment_of(LENGTHS).run(draws((0, 5, 5)))
    assert documents(block) == []
    assert block.failure is None


def test_splits_stay_with_their_lane():
    blocks = segment_of(LENGTHS, Splits()).run(draws((1, 0, 3), (0, 0, 2)))
    assert [[(r, c) for r, c, _ in documents(b)] for b in blocks] == [
        [(0, 0), (1, 0), (1, 1), (2, 0)],
        [(0, 0), (1, 0), (1, 1)],
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.tuples(st.integers(0, 2), st.integers(0, 11)), max_size=4),
    st.lists(st.integers(0, 12), min_size=3, max_size=3),
)
def test_a_bad_row_spoils_only_what_follows_it_in_its_lane(bad, stops):
    segment = segment_of(LENGTHS, Refuses(bad, DataError))
    lanes = [(lane, 0, stop) for lane, stop in enumerate(stops) if stop]
    if not lanes:
        return
    for (lane, _, stop), block in zip(lanes, segment.run(draws(*lanes)), strict=True):
        first = min((row for at, row in bad if at == lane and row < stop), default=None)
        good = stop if first is None else first
        assert documents(block) == wanted(LENGTHS, lane, range(good))
        if first is None:
            assert block.failure is None
        else:
            assert isinstance(block.failure, DataError)
            assert str(block.failure) == f"bad rows [({lane}, {first})]"


def test_an_error_in_the_middle_step_is_like_one_in_the_last():
    bad = Refuses({(0, 2)}, DataError)
    segment = Segment([[bad], [Numbered(LENGTHS)]], LAYOUT, str)
    (block,) = segment.run(draws((0, 0, 8)))
    assert documents(block) == wanted(LENGTHS, 0, range(2))
    assert str(block.failure) == "bad rows [(0, 2)]"


def test_finding_a_bad_row_takes_few_tries():
    bad = Refuses({(0, 777)}, DataError)
    (block,) = segment_of([1] * 1024, bad).run(draws((0, 0, 1024)))
    assert len(block.refs) == 777
    assert bad.runs < 4 * 10 + 4


def test_errors_of_our_own_pass_as_they_are():
    error = DataError("dataset 'a', shard 'b', row 3: bad")

    class Fails(Operator):
        label = "fail"

        def run(self, rows):
            if 3 in rows.refs.row:
                raise error
            return rows

    (block,) = segment_of(LENGTHS, Fails()).run(draws((0, 0, 8)))
    assert block.failure is error


def test_other_errors_are_wrapped_with_step_dataset_shard_and_row(tmp_path):
    lines(tmp_path / "prose", "a.jsonl", [{"text": "x"}] * 6)
    lines(tmp_path / "prose", "b.jsonl", [{"text": "x"}] * 6)
    prose = Dataset.from_path("prose", tmp_path / "prose")
    source = StaticMixtureWorkSource([prose], MixtureSpec({"prose": 1}), shuffle_shards=False)
    bad = Refuses({(0, 4)}, ZeroDivisionError)

    def where(refs):
        return locate(source, refs)

    stream = source.lane_stream(0, 1)
    segment = Segment([[Numbered(LENGTHS), bad]], LAYOUT, where)
    (block,) = segment.run([stream.draw(6, 6)])
    assert documents(block) == wanted(LENGTHS, 0, range(4))
    assert isinstance(block.failure, ExecutionError)
    assert isinstance(block.failure, RuntimeError)
    assert isinstance(block.failure.__cause__, ZeroDivisionError)
    assert str(block.failure) == (
        "refuse failed on dataset 'prose', shard 'b.jsonl', row 4: bad rows [(0, 4)]"
    )


def test_every_component_is_located_by_its_own_shards(tmp_path):
    found = []
    for name in ("prose", "code"):
        lines(tmp_path / name, f"{name}.jsonl", [{"text": "x"}] * 3)
        found.append(Dataset.from_path(name, tmp_path / name))
    source = StaticMixtureWorkSource(found, {"prose": 0.5, "code": 0.5})
    refs = source.lane_stream(0, 1).draw(0, 6)
    said = {locate(source, refs.slice(i, i + 1)) for i in range(6)}
    assert said == {
        f"dataset '{name}', shard '{name}.jsonl', row {row}"
        for name in ("prose", "code")
        for row in range(3)
    }


def test_a_lane_reaches_its_failure_after_the_rows_before_it():
    bad = Refuses({(0, 6)}, DataError)
    (block,) = segment_of(LENGTHS, bad).run(draws((0, 0, 12)))
    run = lane_of(LENGTHS, chain_of(4))
    run.push(block)
    assert run.rows_placed == sum(LENGTHS[:6]) // 4
    assert run.failure is block.failure


def test_columns_beside_the_tokens_must_fit_them():
    class Adds(Operator):
        label = "add"

        def run(self, rows):
            tokens = rows.columns.column("input_ids")
            mask = tokens if 2 not in rows.refs.row else pa.array([[1]] * len(tokens), TOKENS)
            columns = pa.RecordBatch.from_arrays([tokens, mask], ["input_ids", "mask"])
            return Morsel(rows.refs, columns)

    layout = RowLayout(
        tokens_field="input_ids", aligned=("mask",), max_document_call="pack_sequences"
    )
    segment = segment_of(LENGTHS, Adds(), layout=layout)
    (block,) = segment.run(draws((0, 0, 2)))
    assert block.buffer.columns["mask"].tolist() == block.buffer.columns["input_ids"].tolist()
    (block,) = segment.run(draws((0, 2, 3)))
    assert isinstance(block.failure, DataError)
    assert str(block.failure).startswith(
        "pack_sequences: field 'mask' must have one value a token of 'input_ids', got 5 tokens"
    )


class Measures(Operator):
    """Measures each row by its number; refuses the rows named."""

    label = "measure"

    def __init__(self, bad=(), cause=None):
        self.bad = set(bad)
        self.cause = cause

    def run(self, rows):
        for position, row in enumerate(rows.refs.row.tolist()):
            if row in self.bad:
                raise RowError(position, f"{row} is no good", "mend it") from self.cause
        return replace(rows, measures={**rows.measures, "length": rows.refs.row * 10})


def test_measures_go_with_their_documents():
    blocks = segment_of(LENGTHS, Measures()).run(draws((2, 0, 4), (0, 3, 7), (1, 0, 0)))
    assert [block.measures["length"].tolist() for block in blocks] == [
        [0, 10, 20, 30], [30, 40, 50, 60], [],
    ]  # fmt: skip


@pytest.mark.parametrize("cause", [None, ZeroDivisionError("no")])
def test_a_bad_row_is_located_wherever_it_stands(cause):
    (block,) = segment_of(LENGTHS, Measures({5}, cause)).run(draws((0, 0, 9)))
    assert block.measures["length"].tolist() == [0, 10, 20, 30, 40]
    assert documents(block) == wanted(LENGTHS, 0, range(5))
    assert type(block.failure) is (DataError if cause is None else ExecutionError)
    assert block.failure.__cause__ is cause
    assert str(block.failure) == "measure: 5 is no good on row 5; mend it"


def test_a_document_that_must_not_be_packed_is_a_bad_row():
    layout = RowLayout(tokens_field="input_ids", max_document=5, max_document_call="pack_sequences")
    (block,) = segment_of(LENGTHS, layout=layout).run(draws((0, 0, 12)))
    assert documents(block) == wanted(LENGTHS, 0, range(7))
    assert isinstance(block.failure, DataError)
    assert str(block.failure) == (
        "pack_sequences: Sequence length 7 exceeds max_length 5 on row 7; pass "
        "drop_oversized=True, or tokenize with split_long_samples"
    )


@pytest.mark.parametrize("tokens_field", ["input_ids", None])
def test_a_measured_length_counts_instead_of_tokens(tokens_field):
    layout = RowLayout(tokens_field=tokens_field, max_document=80)
    (block,) = segment_of(LENGTHS, Measures(), layout=layout).run(draws((0, 0, 12)))
    assert block.refs.row.tolist() == list(range(9))
    assert "pack_flat: Sequence length 90 exceeds max_length 80 on row 9" in str(block.failure)


@pytest.mark.parametrize("kind", NUMBERS)
def test_aligned_columns_keep_their_kind(kind):
    class Adds(Operator):
        """Adds a column whose values begin elsewhere in memory than those of the tokens."""

        label = "add"

        def run(self, rows):
            tokens = rows.columns.column("input_ids")
            length = np.diff(tokens.offsets.to_numpy())
            values = [[1] * 40, *([n % 2] * n for n in length.tolist())]
            number = pa.array(values, Column("n", kind).type).slice(1)
            return Morsel(
                rows.refs, pa.RecordBatch.from_arrays([tokens, number], ["input_ids", "n"])
            )

    layout = RowLayout(tokens_field="input_ids", aligned=("n",), aligned_kinds=(kind,))
    for block in segment_of(LENGTHS, Adds(), layout=layout).run(draws((0, 0, 4), (1, 0, 8))):
        found = block.buffer.columns["n"]
        assert found.dtype == np.dtype(kind)
        for a, b in itertools.pairwise(block.offsets.tolist()):
            assert found[a:b].tolist() == [(b - a) % 2] * (b - a)


@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_a_row_of_the_users_that_fails_spoils_nothing_but_itself(runner):
    """Rows in memory are objects of the user's; one of them may fail in any way."""

    class Breaks(Mapping):
        def __getitem__(self, key):
            raise KeyError("the disk under this row is gone")

        def __contains__(self, key):
            return True

        def __iter__(self):
            return iter(())

        def __len__(self):
            return 0

    rows = [{"input_ids": [i] * 4} for i in range(70)] + [Breaks()]
    data = Dataset.from_dict("own", {7: InMemoryShard(rows)})
    source = StaticMixtureWorkSource([data], {"own": 1})
    pipe = Pipeline(source).pack_flat(8, algorithm="wrap").batch(1).options(runner=runner)
    found = []
    message = re.escape(
        "dataset 'own', shard '7', row 70: field 'input_ids' raised KeyError: 'the "
    )
    with pytest.raises(DataError, match=message):
        for batch in pipe:
            found.append(batch.records[0].payload["input_ids"])
    assert found == [[2 * i] * 4 + [2 * i + 1] * 4 for i in range(35)]
