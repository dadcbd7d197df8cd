"""Lanes made by hand: documents whose tokens say where they come from, without any file."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from zephon.exec.block import Block, Buffer, Lost
from zephon.exec.lane_run import LaneRun
from zephon.exec.morsel import TOKENS, Morsel
from zephon.exec.operator import Operator
from zephon.exec.policies import Chain, Wrap
from zephon.exec.segment import Segment
from zephon.planner.physical import RowLayout
from zephon.work.course import Courses
from zephon.work.lane_stream import LaneStream
from zephon.work.refs import Refs
from zephon.work.token_lane import TokenLane

LAYOUT = RowLayout(tokens_field="input_ids", positions=True)


class Counted(LaneStream):
    """Draws rows 0, 1, 2, ... of one shard, components in turn."""

    def __init__(self, length, lane=0, components=1):
        self._length = length
        self.lane = lane
        self.components = components

    @property
    def length(self):
        return self._length

    def draw(self, start, count):
        stop = start + count if self._length is None else min(start + count, self._length)
        rows = np.arange(start, max(start, stop))
        return Refs.of(
            component=(rows % self.components).astype(np.int32),
            shard=rows * 0,
            row=rows,
            pass_index=np.zeros(len(rows), np.int32),
            ordinal=rows,
            lane=self.lane,
        )


class OneStrand(LaneStream):
    """Draws rows 0, 1, 2, ... of one component, from the beginning again after the last."""

    def __init__(self, component, rows, lane=0, endless=False):
        self.component, self.rows, self.lane = component, rows, lane
        self._length = None if endless else rows

    @property
    def length(self):
        return self._length

    def draw(self, start, count):
        stop = start + count if self._length is None else min(start + count, self._length)
        draws = np.arange(start, max(start, stop))
        return Refs.of(
            component=np.full(len(draws), self.component, np.int32),
            shard=draws * 0,
            row=draws % max(self.rows, 1),
            pass_index=(draws // max(self.rows, 1)).astype(np.int32),
            ordinal=draws,
            lane=self.lane,
        )


class NumberedStrands(Operator):
    """Makes document r of component c out of its length: tokens t(c, r, 0), t(c, r, 1), ..."""

    label = "number"

    def __init__(self, lengths):
        self.lengths = [np.asarray(each, np.int64) for each in lengths]

    def run(self, rows):
        refs = rows.refs
        pairs = zip(refs.component.tolist(), refs.row.tolist(), strict=True)
        length = np.array([self.lengths[c][r] for c, r in pairs], np.int64)
        first = refs.component.astype(np.int64) * 10_000_000 + refs.row * 1000
        return Morsel(refs, _tokens(first, length))


def token_lane(lengths, weights, *, lane=0, endless=(), **settings):
    """Make the parts of a lane whose strands have documents of these lengths."""
    count = len(lengths)
    return TokenLane(
        lane=lane,
        strands=tuple(
            OneStrand(c, len(each), lane, c in endless) for c, each in enumerate(lengths)
        ),
        courses=Courses.constant(np.array(weights) / sum(weights)),
        **{
            "must_draw": (None,) * count,
            "at_end": ("finish",) * count,
            "budgets": (None,) * count,
            **settings,
        },
    )


class Numbered(Operator):
    """Makes document r of lane l out of its length: tokens t(l, r, 0), t(l, r, 1), ..."""

    label = "number"

    def __init__(self, lengths):
        self.lengths = np.asarray(lengths, np.int64)

    def run(self, rows):
        length = self.lengths[rows.refs.row]
        first = rows.refs.lane.astype(np.int64) * 10_000_000 + rows.refs.row * 1000
        return Morsel(rows.refs, _tokens(first, length))


class Measured(Operator):
    """Measures rows: a length and a weight that the row's number gives."""

    label = "measure"

    def run(self, rows):
        length, weight = measures_of(rows.refs)
        return replace(rows, measures={"length": length, "weight": weight.view(np.int64)})


def measures_of(refs):
    """Give the length and the weight of rows, as ``Measured`` makes them."""
    return refs.row * 5 % 7 + 1, refs.row / 8 + refs.component


class Keeps(Operator):
    """Loses the rows for which ``keep`` is false, given the references."""

    label = "keep"

    def __init__(self, keep):
        self.keep = keep

    def run(self, rows):
        return rows.keep(np.flatnonzero(self.keep(rows.refs)), 1)


def with_lost(block, draws):
    """Say of draws that gave no document that they are lost, rows that are even by a filter."""
    gone = draws.take(~np.isin(draws.ordinal, block.refs.ordinal))
    return replace(block, lost=Lost(gone, (1 + gone.row % 2).astype(np.int8)))


class Splits(Operator):
    """Makes two rows of each that has an even number, and marks them."""

    label = "split"

    def run(self, rows):
        twice = np.where(rows.refs.row % 2 == 0, 2, 1)
        parent = np.repeat(np.arange(len(rows.refs)), twice)
        child = np.arange(len(parent)) - np.repeat(np.cumsum(twice) - twice, twice)
        refs = replace(
            rows.refs.take(parent),
            child=child.astype(np.int32),
            last_child=child == twice[parent] - 1,
        )
        measures = {name: values[parent] for name, values in rows.measures.items()}
        return Morsel(refs, rows.columns.take(pa.array(parent)), None, measures)


def _tokens(first, length):
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    values = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], length)
    column = pa.LargeListArray.from_arrays(
        pa.array(offsets), pa.array(values.astype(np.int32)), type=TOKENS
    )
    return pa.RecordBatch.from_arrays([column], names=["input_ids"])


def token(lane, row, at):
    return lane * 10_000_000 + row * 1000 + at


def whole_documents(lengths, lane=0):
    """List the stream of a lane as (row, place in the document)."""
    return [(row, at) for row, length in enumerate(lengths) for at in range(length)]


def where(refs):
    return f"row {int(refs.row[0])}" if len(refs) else "no row"


def segment_of(lengths, *more, layout=LAYOUT):
    return Segment([[Numbered(lengths), *more]], layout, where)


def lane_of(lengths, chain, *, lane=0, components=1, state=None, measures=()):
    stream = Counted(len(lengths), lane, components)
    return LaneRun(lane, stream, chain, components, state, measures)


def chain_of(max_length):
    """Wrap into rows of this length; None makes each document a row."""
    return Chain() if max_length is None else Chain([Wrap(max_length=max_length)])


def push(run, lengths, sizes, *more):
    """Push the lane's draws in blocks of the given sizes, the last one over again."""
    segment, sizes = segment_of(lengths, *more), list(sizes) or [1]
    at = run.intakes[0].next_draw
    while at < len(lengths):
        size = max(1, sizes.pop(0) if len(sizes) > 1 else sizes[0])
        draws = run.intakes[0].stream.draw(at, size)
        (block,) = segment.run([draws])
        run.push(with_lost(block, draws))
        at += size
        yield at


def block_of(documents, *, lane=0, first=0, payload=None, measures=None, **aligned):
    """Make a block, in a buffer of its own, of documents given as lists of tokens."""
    rows = np.arange(first, first + len(documents))
    refs = Refs.of(
        component=np.zeros(len(rows), np.int32),
        shard=rows * 0,
        row=rows,
        pass_index=np.zeros(len(rows), np.int32),
        ordinal=rows,
        lane=lane,
    )
    tokens = np.array([t for document in documents for t in document], np.int32)
    columns = {"input_ids": tokens, **{name: np.array(v, np.int32) for name, v in aligned.items()}}
    buffer = Buffer(columns, len(tokens), len(tokens))
    offsets = np.cumsum([0, *map(len, documents)])
    return Block(refs, buffer, offsets, payload, measures=measures or {})
