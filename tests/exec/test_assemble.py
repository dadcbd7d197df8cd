"""Placed rows to buffers: each token where it belongs, spans that tell whence, positions."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.by_hand import (
    LAYOUT,
    Splits,
    block_of,
    chain_of,
    lane_of,
    push,
    token,
    whole_documents,
)
from zephon.exec.assemble import Assembler, Naming, stack
from zephon.exec.policies import Chain
from zephon.exec.policies.first_fit import FirstFit
from zephon.io.formats.memory import ObjectRows
from zephon.io.payload import Payload
from zephon.planner.physical import RowLayout
from zephon.types import record_of

LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=40)
ROWS = st.sampled_from([None, 1, 2, 5, 8, 17])
SPANS = ("row_splits", "start", "length", "closes", "ends", "component", "dataset_id", "shard_id",
         "row", "ordinal", "child")  # fmt: skip


def packed(max_length, **more):
    """Lay documents end to end into rows of so many tokens; None: each is a row."""
    if max_length is None:
        return LAYOUT
    return replace(LAYOUT, packing="flat", max_length=max_length, **more)


def assembler(layout=LAYOUT, components=1, *, pad=None, chunk_size=8):
    naming = Naming(
        component_id=np.arange(components, dtype=np.int32),
        dataset_id=np.arange(components) + 10,
        shard_id=np.arange(components) + 100,
        first_shard=np.arange(components),
        chunk_size=chunk_size,
    )
    return Assembler(layout, naming, pad_token_id=pad)


def placed(lanes, max_length, sizes, components=1):
    """Run lanes to their end; give each with all of its rows."""
    taken = []
    for lane, lengths in enumerate(lanes):
        run = lane_of(lengths, chain_of(max_length), lane=lane, components=components)
        list(push(run, lengths, sizes))
        run.end()
        taken += [(run, rows) for rows in run.take(run.rows_placed)]
    return taken


def rows_by_hand(lanes, max_length):
    """List each row as (lane, [(row, place in the document), ...]), the slow way."""
    found = []
    for lane, lengths in enumerate(lanes):
        stream = whole_documents(lengths)
        if max_length is None:
            found += [(lane, [(row, at) for at in range(n)]) for row, n in enumerate(lengths)]
        else:
            whole = len(stream) // max_length * max_length
            found += [(lane, stream[at : at + max_length]) for at in range(0, whole, max_length)]
    return found


def same(one, other):
    assert one.columns.keys() == other.columns.keys()
    for name, column in one.columns.items():
        assert column.dtype == other.columns[name].dtype
        assert column.tolist() == other.columns[name].tolist(), name
    assert one.offsets.tolist() == other.offsets.tolist()
    assert one.lane.tolist() == other.lane.tolist()
    for name in SPANS:
        assert getattr(one.spans, name).tolist() == getattr(other.spans, name).tolist(), name


@settings(max_examples=80, deadline=None)
@given(st.lists(LENGTHS, min_size=1, max_size=3), ROWS, st.lists(st.integers(1, 9), max_size=4))
def test_every_token_stands_where_it_belongs(lanes, max_length, sizes):
    taken = placed(lanes, max_length, sizes)
    wanted = rows_by_hand(lanes, max_length)
    if not taken:
        assert wanted == []
        return
    rows = assembler(packed(max_length)).gather(taken)
    assert len(rows) == len(wanted)
    assert rows.columns["input_ids"].dtype == np.int64
    assert rows.columns["positions"].dtype == np.int32
    for i, (lane, places) in enumerate(wanted):
        first, stop = rows.offsets[i : i + 2]
        assert rows.lane[i] == lane
        assert rows.columns["input_ids"][first:stop].tolist() == [
            token(lane, row, at) for row, at in places
        ]
        a, b = rows.spans.row_splits[i : i + 2]
        spans = [(int(rows.spans.row[s]), int(rows.spans.start[s]), int(rows.spans.length[s]))
                 for s in range(a, b)]  # fmt: skip
        assert [(row, start + j) for row, start, n in spans for j in range(n)] == places
        positions = [j for _, _, n in spans for j in range(n)]
        assert rows.columns["positions"][first:stop].tolist() == positions


@settings(max_examples=50, deadline=None)
@given(LENGTHS, ROWS, st.integers(1, 3))
def test_spans_say_whose_tokens_they_are(lengths, max_length, components):
    taken = placed([lengths], max_length, [7], components)
    if not taken:
        return
    spans = assembler(packed(max_length), components).gather(taken).spans
    for s in range(len(spans.start)):
        row = int(spans.row[s])
        assert spans.ordinal[s] == row
        assert spans.component[s] == row % components
        assert spans.dataset_id[s] == 10 + row % components
        assert spans.shard_id[s] == 100 + row % components
        assert spans.closes[s] == (spans.start[s] + spans.length[s] == lengths[row])
        assert spans.ends[s] == spans.closes[s]
        assert spans.child[s] == -1


@settings(max_examples=50, deadline=None)
@given(st.lists(LENGTHS, min_size=1, max_size=3), ROWS)
def test_gathered_apart_and_stacked_is_gathered_at_once(lanes, max_length):
    taken = placed(lanes, max_length, [5])
    if not taken:
        return
    make = assembler(packed(max_length))
    apart = [
        make.gather([(run, rows.some(i, i + 1))]) for run, rows in taken for i in range(len(rows))
    ]
    same(make.gather(taken), stack(apart))


@settings(max_examples=50, deadline=None)
@given(LENGTHS, ROWS, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_blocks_change_no_row(lengths, max_length, sizes):
    whole = placed([lengths], max_length, [len(lengths)])
    if not whole:
        return
    make = assembler(packed(max_length))
    same(make.gather(whole), make.gather(placed([lengths], max_length, sizes)))


@settings(max_examples=30, deadline=None)
@given(LENGTHS, ROWS, st.data())
def test_a_batch_is_a_cut_of_the_rows(lengths, max_length, data):
    taken = placed([lengths], max_length, [6])
    if not taken:
        return
    make = assembler(packed(max_length), pad=5)
    rows = make.gather(taken)
    first = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(first + 1, len(rows)))
    batch = make.batch(rows).part(first, stop, None)
    wanted = rows_by_hand([lengths], max_length)[first:stop]
    assert len(batch) == stop - first
    assert batch.pad_token_id == 5
    assert (batch.packing, batch.max_length) == (make._layout.packing, max_length)
    if max_length is None:
        assert batch.padding is None
    else:
        assert batch.padding.tolist() == [0] * len(batch)
    for i, (_, places) in enumerate(wanted):
        record = record_of(batch, i)
        assert record.payload["input_ids"] == [token(0, row, at) for row, at in places]
        cursors = [c.sample_id[2] for c in record.meta.contribution_cursors()]
        if places:
            assert cursors == list(dict.fromkeys(row for row, _ in places))
            assert record.meta.component_token_counts == {0: len(places)}


def test_a_batch_is_a_view_and_its_rows_are_writable():
    taken = placed([[4, 4, 4, 4]], 4, [2])
    make = assembler(packed(4))
    rows = make.gather(taken)
    batch = make.batch(rows).part(1, 3, None)
    assert np.shares_memory(batch.fields["input_ids"].values, rows.columns["input_ids"])
    assert batch.fields["input_ids"].values.flags.writeable
    source = next(iter(taken[0][0].held.parts.values())).buffer.columns["input_ids"]
    assert not np.shares_memory(batch.fields["input_ids"].values, source)


def test_a_document_that_closes_counts_once():
    taken = placed([[10]], 4, [1])
    batch = assembler(packed(4)).batch(assembler(packed(4)).gather(taken)).part(0, 2, None)
    counts = [record_of(batch, i).meta.component_sample_counts for i in range(2)]
    assert [sum(c.values()) for c in counts] == [0, 0]
    taken = placed([[8]], 4, [1])
    batch = assembler(packed(4)).batch(assembler(packed(4)).gather(taken)).part(0, 2, None)
    counts = [record_of(batch, i).meta.component_sample_counts for i in range(2)]
    assert [sum(c.values()) for c in counts] == [0, 1]


def test_fields_beside_the_tokens_are_cut_alike():
    layout = RowLayout(
        tokens_field="input_ids",
        aligned=("attention_mask",),
        aligned_kinds=("int32",),
        packing="flat",
        max_length=4,
    )
    run = lane_of([3, 5], chain_of(4))
    mask = [1, 1, 0, 1, 0, 0, 1, 1]
    run.push(block_of([[1, 2, 3], [4, 5, 6, 7, 8]], attention_mask=mask))
    run.end()
    rows = assembler(layout).gather([(run, r) for r in run.take(2)])
    assert rows.columns["input_ids"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert rows.columns["attention_mask"].tolist() == mask
    assert "positions" not in rows.columns


@pytest.mark.parametrize("apart", [False, True])
def test_whole_rows_stay_with_their_documents(apart):
    layout = RowLayout(tokens_field="input_ids", payload=True)
    run = lane_of([2, 0, 1, 3], chain_of(None))
    for documents, first in (([[1, 2], []], 0), ([[3], [4, 5, 6]], 2)):
        source = ObjectRows([{"n": first}, {"n": first + 1}])
        payload = Payload((source,), np.zeros(2, np.int32), np.arange(2))
        run.push(block_of(documents, first=first, payload=payload))
    run.end()
    make = assembler(layout)
    taken = [(run, rows) for rows in run.take(4)]
    if apart:
        rows = stack([make.gather([(run, p.some(i, i + 1))]) for run, p in taken for i in (0, 1)])
    else:
        rows = make.gather(taken)
    batch = make.batch(rows).part(0, 4, None)
    assert [record_of(batch, i).payload for i in range(4)] == [
        {"n": 0, "input_ids": [1, 2]},
        {"n": 1, "input_ids": []},
        {"n": 2, "input_ids": [3]},
        {"n": 3, "input_ids": [4, 5, 6]},
    ]


def test_without_tokens_only_whole_rows_come_out():
    layout = RowLayout(tokens_field=None, payload=True)
    run = lane_of([0, 0], chain_of(None))
    source = ObjectRows([{"n": 0}, "not a dict"])
    payload = Payload((source,), np.zeros(2, np.int32), np.arange(2))
    run.push(block_of([[], []], payload=payload))
    run.end()
    make = assembler(layout)
    batch = make.batch(make.gather([(run, rows) for rows in run.take(2)])).part(0, 2, None)
    assert [record_of(batch, i).payload for i in range(2)] == [{"n": 0}, "not a dict"]


def test_names_follow_the_chunk_size():
    taken = placed([[1] * 20], 1, [20])
    make = assembler(packed(1), chunk_size=8)
    batch = make.batch(make.gather(taken)).part(0, 20, None)
    cursors = [record_of(batch, i).meta.cursor for i in range(20)]
    assert [c.base_offset for c in cursors] == [divmod(i, 8) for i in range(20)]
    assert all(c.sample_id == (10, 100, i) for i, c in enumerate(cursors))
    assert all(c.lineage == (0,) for c in cursors)


# Rows that are not full, and rows of documents side by side


def short_rows(lanes, max_length, sizes, *more):
    """Run lanes under first fit, one open row, to their end; give each with all of its rows."""
    taken = []
    for lane, lengths in enumerate(lanes):
        packer = FirstFit(max_length=max_length, num_bins=1, components=1)
        run = lane_of(lengths, Chain([packer]), lane=lane)
        list(push(run, lengths, sizes, *more))
        run.end()
        taken += [(run, rows) for rows in run.take(run.rows_placed)]
    return taken


def pieces_of(taken):
    """List each row as (lane, [(source row, length), ...])."""
    found = []
    for run, placed_rows in taken:
        rows = placed_rows.rows
        source = run.held.known(rows.seq).refs.row.tolist()
        pieces = list(zip(source, rows.length.tolist(), strict=True))
        found += [(run.lane, pieces[a:b]) for a, b in pairwise(rows.splits.tolist())]
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(LENGTHS, min_size=1, max_size=3), st.sampled_from([5, 12, 30]))
def test_short_rows_are_padded_to_their_width(lanes, max_length):
    taken = short_rows(lanes, max_length, [9])
    if not taken:
        return
    make = assembler(packed(max_length, pad_token_id=77))
    rows = make.gather(taken)
    wanted = pieces_of(taken)
    assert rows.offsets.tolist() == [max_length * i for i in range(len(wanted) + 1)]
    for i, (lane, pieces) in enumerate(wanted):
        at, total = max_length * i, sum(n for _, n in pieces)
        pad = max_length - total
        tokens = [token(lane, row, j) for row, n in pieces for j in range(n)]
        assert rows.columns["input_ids"][at : at + max_length].tolist() == tokens + [77] * pad
        numbers = [j for n in (*(n for _, n in pieces), pad) for j in range(n)]
        assert rows.columns["positions"][at : at + max_length].tolist() == numbers
        assert rows.padding[i] == pad
        a, b = rows.spans.row_splits[i : i + 2]
        assert rows.spans.length[a:b].tolist() == [n for _, n in pieces]
    apart = [make.gather([(run, p.some(i, i + 1))]) for run, p in taken for i in range(len(p))]
    same(rows, stack(apart))
    assert stack(apart).padding.tolist() == rows.padding.tolist()
    batch = make.batch(rows).part(0, len(rows), None)
    assert batch.padding.tolist() == rows.padding.tolist()
    first = record_of(batch, 0)
    assert sum(first.meta.component_token_counts.values()) == max_length - rows.padding[0]
    assert first.meta.padding_length == rows.padding[0]


@settings(max_examples=60, deadline=None)
@given(st.lists(LENGTHS, min_size=1, max_size=3), st.sampled_from([5, 12, 30]))
def test_documents_side_by_side_are_not_padded(lanes, max_length):
    layout = RowLayout(tokens_field="input_ids", packing="sequences", max_length=max_length)
    taken = short_rows(lanes, max_length, [9])
    if not taken:
        return
    make = assembler(layout)
    rows = make.gather(taken)
    wanted = pieces_of(taken)
    assert rows.padding is None
    assert np.diff(rows.offsets).tolist() == [sum(n for _, n in pieces) for _, pieces in wanted]
    batch = make.batch(rows).part(0, len(rows), None)
    for i, (lane, pieces) in enumerate(wanted):
        documents = record_of(batch, i).payload["packed_samples"]
        assert documents == [
            {"input_ids": [token(lane, row, j) for j in range(n)]} for row, n in pieces
        ]


def test_whole_rows_stay_with_their_documents_side_by_side():
    layout = RowLayout(
        tokens_field="input_ids",
        packing="sequences",
        max_length=4,
        pack_payloads="keep_list",
        payload=True,
    )
    packer = FirstFit(max_length=4, num_bins=1, components=1)
    run = lane_of([2, 1, 3, 4], Chain([packer]))
    for documents, first in (([[1, 2], [3]], 0), ([[4, 5, 6], [7, 8, 9, 10]], 2)):
        source = ObjectRows([{"n": first}, {"n": first + 1}])
        payload = Payload((source,), np.zeros(2, np.int32), np.arange(2))
        run.push(block_of(documents, first=first, payload=payload))
    run.end()
    make = assembler(layout)
    rows = make.gather([(run, placed_rows) for placed_rows in run.take(3)])
    one = {"packed_samples": [{"n": 0, "input_ids": [1, 2]}, {"n": 1, "input_ids": [3]}]}
    two = {"packed_samples": [{"n": 2, "input_ids": [4, 5, 6]}]}
    three = {"packed_samples": [{"n": 3, "input_ids": [7, 8, 9, 10]}]}
    found = [record_of(make.batch(rows).part(0, 3, None), i).payload for i in range(3)]
    assert sorted(found, key=str) == sorted([one, two, three], key=str)
    again = [record_of(make.batch(rows).part(i, i + 1, None), 0).payload for i in range(3)]
    assert again == found


def test_a_split_ends_itself_and_the_last_one_closes_its_row():
    """A split is a whole document, though its source row goes on."""
    taken = short_rows([[5, 3, 4]], 20, [3], Splits())
    spans = assembler(packed(20)).gather(taken).spans
    assert spans.row.tolist() == [0, 0, 1, 2, 2]
    assert spans.child.tolist() == [0, 1, -1, 0, 1]
    assert spans.closes.tolist() == [False, True, True, False, True]
    assert spans.ends.tolist() == [True] * 5
    assert spans.are_whole().all()


def test_a_document_that_is_cut_ends_in_its_last_piece():
    spans = assembler(packed(4)).gather(placed([[6, 2]], 4, [2])).spans
    assert (spans.row.tolist(), spans.start.tolist()) == ([0, 0, 1], [0, 4, 0])
    assert spans.ends.tolist() == [False, True, True]
    assert spans.are_whole().tolist() == [False, False, True]


KINDS = {
    "int32": ([1, 2, 3, 4, 5], np.int64),
    "int64": ([1, 1 << 40, -3, 4, 5], np.int64),
    "float32": ([0.5, 1.5, -2.0, 0.0, 9.0], np.float32),
    "float64": ([0.1, 0.2, 0.3, 0.4, 1e300], np.float64),
    "bool": ([True, False, True, True, False], np.bool_),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_aligned_keeps_its_kind_and_is_padded_with_zeros(kind):
    values, dtype = KINDS[kind]
    layout = RowLayout(
        tokens_field="input_ids",
        aligned=("own",),
        aligned_kinds=(kind,),
        packing="flat",
        max_length=4,
        pad_token_id=9,
    )
    run = lane_of([3, 2], Chain([FirstFit(max_length=4, num_bins=1, components=1)]))
    block = block_of([[1, 2, 3], [4, 5]])
    read_as = np.dtype(kind)
    block.buffer.columns["own"] = np.array(values, read_as)
    run.push(block)
    run.end()
    rows = assembler(layout).gather([(run, r) for r in run.take(2)])
    assert rows.columns["input_ids"].tolist() == [1, 2, 3, 9, 4, 5, 9, 9]
    own = rows.columns["own"]
    assert own.dtype == dtype
    wanted = np.zeros(8, dtype)
    wanted[[0, 1, 2, 4, 5]] = np.array(values, read_as)
    assert own.tolist() == wanted.tolist()
