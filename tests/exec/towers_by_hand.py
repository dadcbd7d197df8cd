"""Towers made by hand: lanes upon operators that join, drop, double, number or delay records."""

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tests.exec.by_hand import (
    LAYOUT,
    Counted,
    Keeps,
    NumberedStrands,
    segment_of,
    token_lane,
    where,
    with_lost,
)
from tests.exec.lanes_written import lane_to_json
from tests.exec.policies.small import HoldLast, Weighing
from zephon.exec import entry as entries
from zephon.exec import lane_run, relay
from zephon.exec.assemble import Assembler, Naming
from zephon.exec.custom_steps import CustomStep
from zephon.exec.entry import Entry
from zephon.exec.morsel import TOKENS
from zephon.exec.operator import Operator
from zephon.exec.policies import Chain, Wrap
from zephon.exec.relay_rows import RowsOfRecords, records_of_rows
from zephon.exec.segment import Segment
from zephon.exec.towers import Ground, build_lane, read_in_lane
from zephon.ops import pack_meta
from zephon.types import SampleMeta, SampleRecord

COMPONENTS = 3
NAMING = Naming(
    component_id=np.arange(COMPONENTS, dtype=np.int32),
    dataset_id=np.arange(COMPONENTS) + 5,
    shard_id=np.array([7, 8, 9]),
    first_shard=np.arange(COMPONENTS),
    chunk_size=8,
)


def often(monkeypatch):
    """Let groups be of 4 rows, so that short lanes have many; ticks come as often."""
    monkeypatch.setattr(lane_run, "TICK", 8)
    monkeypatch.setattr(lane_run, "GROUP", 4)
    monkeypatch.setattr(relay, "GROUP", 4)
    monkeypatch.setattr(entries, "SNAPSHOT_GROUPS", 3)


class Uneven(CustomStep):
    """Remembers nothing: drops every third record, and doubles every fourth."""

    label = "uneven"

    def make_state(self, lane):
        return None

    def push(self, state, records):
        made = []
        for record in records:
            first = record.payload["input_ids"][0] // 1000
            copies = 0 if first % 3 == 1 else 2 if first % 4 == 0 else 1
            made += [
                SampleRecord(record.meta.child(i), {"input_ids": record.payload["input_ids"]})
                for i in range(copies)
            ]
        return state, made

    def finish(self, state):
        return []


class InPairs(CustomStep):
    """Joins each three records to one; what is held is given when it is flushed."""

    label = "in pairs"

    def make_state(self, lane):
        return []

    def push(self, state, records):
        made = []
        for record in records:
            state = [*state, record]
            if len(state) == 3:
                made, state = [*made, _joined(state)], []
        return state, made

    def finish(self, state):
        return [_joined(state)] if state else []


class Numbering(CustomStep):
    """Gives each record a number; the number, and what is held back, can be written down."""

    label = "numbering"
    snapshots = True

    def make_state(self, lane):
        return {"count": 0, "late": None}

    def push(self, state, records):
        made = []
        for record in records:
            tokens = [state["count"], *record.payload["input_ids"]]
            record = SampleRecord(record.meta, {"input_ids": tokens})
            late = state["late"]
            state = {"count": state["count"] + 1, "late": record}
            made += [] if late is None else [late]
        return state, made

    def finish(self, state):
        return [] if state["late"] is None else [state["late"]]

    def snapshot(self, state):
        late = state["late"]
        meta = late.meta
        key = [*meta.sample_id, meta.lane_id, meta.chunk_id, meta.chunk_offset]
        return {"count": state["count"], "late": key, "tokens": late.payload["input_ids"]}

    def restore(self, lane, saved):
        a, b, c, lane_id, chunk, offset = saved["late"]
        meta = SampleMeta((a, b, c), lane_id, chunk, offset)
        late = SampleRecord(meta, {"input_ids": list(saved["tokens"])})
        return {"count": saved["count"], "late": late}


def _joined(records):
    tokens = [t for record in records for t in record.payload["input_ids"]]
    first = records[0].meta
    meta = pack_meta(
        first.cursor,
        [ref for record in records for ref in record.meta.contribution_refs()],
        lane_id=first.lane_id,
        component_sample_counts=first.component_sample_counts,
    )
    return SampleRecord(meta, {"input_ids": tokens})


class Typed(Operator):
    """Makes a token column of whole rows."""

    label = "typed"

    def run(self, rows):
        values = [] if rows.payload is None else [row["input_ids"] for row in rows.payload.rows()]
        column = pa.array(values, TOKENS)
        columns = pa.RecordBatch.from_arrays([column], names=["input_ids"])
        return replace(rows, columns=columns, payload=None)


def assembler():
    return Assembler(LAYOUT, NAMING, pad_token_id=None)


def entry(step, every, chain=None, *more):
    return Entry(
        step=step,
        every=every,
        assembler=assembler(),
        rows=RowsOfRecords(NAMING, step.label),
        segment=Segment([[Typed(), *more]], LAYOUT, lambda refs: f"group {refs.ordinal[:1]}"),
        chain=chain or Chain(),
    )


LENGTHS = [n * 7 % 5 + 1 for n in range(90)]
GROUND = Ground(segment_of(LENGTHS, Keeps(lambda refs: refs.row % 11 != 3)), Chain())
PACKED = Ground(segment_of(LENGTHS), Chain([HoldLast(3), Wrap(max_length=6)]))
STRANDS = [[n * 7 % 5 + 1 for n in range(20 + 15 * c)] for c in range(COMPONENTS)]
MERGED = Ground(
    Segment([[NumberedStrands(STRANDS), Keeps(lambda refs: refs.row % 7 != 3)]], LAYOUT, where),
    Chain([HoldLast(2)]),
)
ODD = Keeps(lambda refs: refs.row % 2 == 1)
TOWERS = {
    "remembers nothing": (GROUND, [partial(entry, Uneven(), 1)]),
    "behind a packer": (PACKED, [partial(entry, Uneven(), 1)]),
    "flushed": (GROUND, [partial(entry, InPairs(), 3)]),
    "flushed behind a packer, packed": (
        PACKED,
        [partial(entry, InPairs(), 2, Chain([HoldLast(2), Wrap(max_length=7)]))],
    ),
    "writes itself down": (GROUND, [partial(entry, Numbering(), 0)]),
    "writes itself down, held back": (
        PACKED,
        [partial(entry, Numbering(), 0, Chain([HoldLast(9)]))],
    ),
    "filtered above": (GROUND, [partial(entry, Uneven(), 1, Chain([HoldLast(2)]), ODD)]),
    "strands below, weights above": (
        MERGED,
        [partial(entry, InPairs(), 2, Chain([Weighing(), HoldLast(3)]))],
    ),
    "two floors": (
        PACKED,
        [
            partial(entry, InPairs(), 2, Chain([HoldLast(3)])),
            partial(entry, Numbering(), 0, Chain([Wrap(max_length=9)])),
        ],
    ),
    "three floors": (
        GROUND,
        [
            partial(entry, Numbering(), 0, Chain([HoldLast(5)])),
            partial(entry, Uneven(), 1, Chain([HoldLast(4), Wrap(max_length=5)])),
            partial(entry, InPairs(), 4, Chain([HoldLast(2)])),
        ],
    ),
}


def start(name, state=None):
    ground, entries = TOWERS[name]
    draws = Counted(len(LENGTHS), 0, COMPONENTS)
    if ground is MERGED:
        draws = token_lane(STRANDS, (0.5, 0.3, 0.2), at_end=("finish", "finish", "stop"))
    return build_lane(ground, [make() for make in entries], 0, draws, COMPONENTS, state)


def step(name, run, size):
    """Let the tower have a group that is there, or bring the bottom on."""
    if run.advance():
        return
    for floor in run.floors():
        if floor.failure is not None:
            raise floor.failure
    bottom = run.bottom
    if bottom.wants is None:
        bottom.end()
        return
    intake = bottom.intakes[bottom.wants]
    draws = intake.stream.draw(intake.next_draw, size)
    (block,) = TOWERS[name][0].segment.run([draws])
    intake.next_draw += len(draws)
    bottom.push(with_lost(block, draws), bottom.wants, len(draws))


def rows_of(name, run, count):
    """Take rows; give the tokens of each, with what they are made of."""
    found = []
    for placed in run.take(count):
        read_in_lane(TOWERS[name][0], run, placed.rows.seq)
        records = records_of_rows(assembler(), run, [placed])
        refs = run.held.known(placed.rows.seq).refs
        names = list(
            zip(refs.component.tolist(), refs.shard.tolist(), refs.row.tolist(), strict=True)
        )
        splits = pairwise(placed.rows.splits.tolist())
        for record, (a, b) in zip(records, splits, strict=True):
            found.append((list(record.payload["input_ids"]), names[a:b]))
    run.release()
    return found


def written(run, rows):
    return json.dumps(lane_to_json(run.state_at(rows)))


def run_all(name, sizes, state=None, *, rows=0, forget=False):
    """Run a tower to its end; give all states from a row on, and all rows from there on."""
    run = start(name, state)
    states, found = [], []
    number = 0
    while not run.ended or run.rows_taken < run.rows_placed:
        while len(states) + rows <= run.rows_taken:
            states.append(written(run, rows + len(states)))
        if run.rows_taken < run.rows_placed:
            found += rows_of(name, run, 1)
            if forget:
                run.forget_before(run.rows_taken)
        else:
            step(name, run, sizes[number % len(sizes)])
            number += 1
    states += [written(run, at) for at in range(rows + len(states), run.rows_placed + 1)]
    return states, found, run


WHOLE = {}


def whole(name):
    if name not in WHOLE:
        WHOLE[name] = run_all(name, [1])
    return WHOLE[name]
