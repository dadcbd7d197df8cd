"""Segments in worker processes: the same blocks as here, however rows are made and lost."""

import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import cloudpickle
import numpy as np
import pytest

from tests.exec.by_hand import LAYOUT, Counted, Numbered, where
from tests.written import dataset, in_order
from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import DataError, ExecutionError
from zephon.exec.launch import tokenizers_of
from zephon.exec.operator import Operator
from zephon.exec.parts import locate, segment_of
from zephon.exec.remote_segment import RemoteSegment
from zephon.exec.segment import Segment, Window
from zephon.exec.source_facts import SourceFacts
from zephon.io.formats.memory import ObjectRows
from zephon.io.group_cache import GroupCache
from zephon.io.payload import Payload
from zephon.options import RuntimeOptions
from zephon.planner.physical import RowLayout
from zephon.work.refs import Refs

ROWS = [{"text": "word " * (number % 7), "id": number} for number in range(40)]
LENGTHS = [3, 0, 5, 1, 0, 2, 4, 7, 1, 1, 0, 6]
DRAWS = [(0, 0, 7), (1, 0, 0), (2, 2, 9)]  # of lanes


def built(plan, source):
    return segment_of(plan, source, tokenizers_of(plan, RuntimeOptions()), GroupCache(1 << 20))


@contextmanager
def both(pipe, **settings):
    """Build the segment of a pipeline here, and for one worker."""
    plan, facts = pipe._compiled(), SourceFacts.of(pipe._source)
    here = built(plan, facts)
    there = RemoteSegment(
        partial(built, plan, facts), 1, partial(locate, facts), window=here.window, **settings
    )
    try:
        yield here, there
    finally:
        there.close()


@contextmanager
def by_hand(*operators, layout=LAYOUT, retries=0):
    segment = RemoteSegment(lambda: Segment([operators], layout, where), 1, where, retries)
    try:
        yield segment
    finally:
        segment.close()


def draws(source=None):
    streams = {lane: source.lane_stream(lane, 3) if source else Counted(12, lane)
               for lane, _, _ in DRAWS}  # fmt: skip
    return [streams[lane].draw(first, stop - first) for lane, first, stop in DRAWS]


def plain(block):
    """Give all of a block as plain values; tokens document by document."""
    columns = sorted(block.buffer.columns.items())
    bounds = list(zip(block.offsets[:-1].tolist(), block.offsets[1:].tolist(), strict=True))
    return {
        "refs": refs(block.refs),
        "columns": [
            (name, str(values.dtype), [values[a:b].tolist() for a, b in bounds])
            for name, values in columns
        ],
        "rows": None if block.payload is None else list(map(row_of, block.payload.rows())),
        "measures": {name: found.tolist() for name, found in block.measures.items()},
        "lost": (refs(block.lost.refs), block.lost.reason.tolist()),
        "failure": (type(block.failure), str(block.failure)),
        "cause": repr(getattr(block.failure, "__cause__", None)),
    }


def refs(table):
    return [(name, str(getattr(table, name).dtype), getattr(table, name).tolist())
            for name in table.__slots__]  # fmt: skip


def row_of(row):
    return [(key, type(value), np.asarray(value).tolist()) for key, value in row.items()]


def sharing(blocks):
    """Say of each block which is the first that has its buffer, and how much of that lives."""
    buffers = [id(block.buffer) for block in blocks]
    return [(buffers.index(id(block.buffer)), block.buffer.live) for block in blocks]


class Told:
    """Stands for the segment that each task brings with it, so that tests can share a worker."""

    def run(self, task):
        factory, *lanes = task
        return cloudpickle.loads(factory)().run(lanes)

    def close(self):
        pass


@pytest.fixture(scope="module")
def worker():
    there = RemoteSegment(Told, 1, where)
    yield there
    there.close()


def assert_same(pipe, worker=None):
    """Compare blocks made here with those of a worker of the segment's own, or of a shared one."""
    with both(pipe) as (here, there):
        wanted = here.run(draws(pipe._source))
        if worker is None:
            found = there.run(draws(pipe._source))
        else:
            factory = partial(built, pipe._compiled(), SourceFacts.of(pipe._source))
            found = worker.run([cloudpickle.dumps(factory), *draws(pipe._source)])
    assert [plain(block) for block in found] == [plain(block) for block in wanted]
    assert sharing(found) == sharing(wanted)
    return wanted


def every_kind(folder, rows=ROWS):
    """Mix rows of all formats, in turn."""
    kinds = ("parquet", "jsonl", "in_memory")
    return in_order(*(dataset(kind, folder / kind, rows, name=kind) for kind in kinds))


def test_tokens_are_the_same(tmp_path, worker):
    pipe = Pipeline(every_kind(tmp_path)).tokenize(field="text").batch(2)
    wanted = assert_same(pipe, worker)
    assert [len(block.refs) for block in wanted] == [7, 0, 7]
    assert sharing(wanted)[2][0] == 0


def test_whole_rows_are_the_same(tmp_path, worker):
    wanted = assert_same(Pipeline(every_kind(tmp_path)).batch(2), worker)
    assert [len(block.payload) for block in wanted] == [7, 0, 7]


def test_measures_of_functions_are_the_same(tmp_path, worker):
    shift = 3
    pipe = (
        Pipeline(every_kind(tmp_path))
        .pack_sequences(50, num_bins=2, length_fn=lambda row: int(row["id"]) % 5 + shift)
        .batch(2)
    )
    lengths = assert_same(pipe, worker)[0].measures["length"]
    assert min(lengths) >= shift
    assert len(set(lengths.tolist())) > 1


def test_bad_rows_end_their_lane_alike(tmp_path, worker):
    rows = [{**row, "text": None if row["id"] == 2 else row["text"]} for row in ROWS]
    wanted = assert_same(
        Pipeline(every_kind(tmp_path, rows)).tokenize(field="text").batch(2), worker
    )
    assert {type(block.failure) for block in wanted} == {type(None), DataError}


def test_rows_that_functions_make_and_drop_are_the_same(tmp_path, worker):
    def odd(row):
        return {**row, "many": np.zeros(2000), "text": "odd"} if row["id"] % 2 else None

    wanted = assert_same(Pipeline(every_kind(tmp_path)).map_transform(odd).batch(2), worker)
    assert len(wanted[0].refs) + len(wanted[0].lost) == 7
    assert len(wanted[0].lost) > 0


def test_errors_of_functions_keep_their_cause(tmp_path, worker):
    def length(row):
        return 1 // (int(row["id"]) % 2)

    pipe = Pipeline(every_kind(tmp_path)).pack_sequences(50, num_bins=2, length_fn=length).batch(2)
    wanted = assert_same(pipe, worker)
    assert type(wanted[0].failure.__cause__) is ZeroDivisionError


class Wide(Operator):
    """Gives every row the tokens of all rows below it, of which only its own are asked for."""

    label = "wide"

    def run(self, rows):
        count = 3000
        narrow, wide = np.zeros(count, np.int32), np.zeros(count, np.int64)
        every = Refs.of(narrow, wide, np.arange(count) % 12, narrow, wide)
        made = Numbered([50] * 12).run(replace(rows, refs=every))
        columns = made.columns.slice(1000, len(rows.refs))
        return replace(rows, columns=columns)


def test_only_the_tokens_of_the_blocks_come_back():
    with by_hand(Wide()) as segment:
        here = Segment([[Wide()]], LAYOUT, where).run(draws())
        found = segment.run(draws())
    assert [plain(block) for block in found] == [plain(block) for block in here]
    assert len(here[0].buffer.columns["input_ids"]) > 50 * 1000
    assert len(found[0].buffer.columns["input_ids"]) == 50 * 14


def test_windows_are_cut_as_they_are_here():
    lanes = [Window(Counted(12, lane).draw(0, 8), 2 * lane, 5) for lane in range(2)]
    here = Segment([[Numbered(LENGTHS)]], LAYOUT, where, window=4)
    with by_hand(Numbered(LENGTHS)) as segment:
        found = segment.run(lanes)
    assert [plain(block) for block in found] == [plain(block) for block in here.run(lanes)]
    assert [block.refs.row.tolist() for block in found] == [[0, 1, 2, 3, 4], [2, 3, 4]]


def test_tasks_come_back_in_order_of_their_handles():
    with by_hand(Numbered(LENGTHS)) as segment:
        runner = segment.make_runner()
        handles = [
            segment.submit(runner, partial(lambda at: [Counted(12).draw(at, 1)], at))
            for at in range(12)
        ]
        assert [len(h.result()[0].buffer.columns["input_ids"]) for h in handles] == LENGTHS
        ids = segment.pool.process_ids()
        runner.close()
    assert len(ids) == 1
    assert not any(os.path.exists(f"/proc/{each}") for each in ids)


class Ends(Operator):
    label = "end"

    def run(self, rows):
        os._exit(9)


def test_a_task_that_ends_its_workers_is_located():
    with by_hand(Ends(), retries=1) as segment, pytest.raises(ExecutionError) as found:
        segment.run(draws())
    assert str(found.value).startswith(
        "options: runner='process' needs workers that live until a task is done, and one ended "
        "with exit code 9 on one of 14 rows from row 0, to row 8, 2 times in a row; look there"
    )


def test_a_row_that_no_pickle_carries_is_a_bad_row():
    rows = [{"id": 0}, {"id": 1}, {"id": 2, "lock": threading.Lock}, {"id": 3}]

    class Locks(Operator):
        """Puts a lock into whole rows, which are objects."""

        label = "lock"

        def run(self, given):
            objects = [
                {**row, **({"lock": row["lock"]()} if "lock" in row else {})} for row in rows
            ]
            count = len(given.refs)
            source = ObjectRows(objects)
            payload = Payload((source,), np.zeros(count, np.int32), given.refs.row % 4)
            return replace(given, payload=payload)

    with by_hand(Locks(), layout=RowLayout(tokens_field=None, payload=True)) as segment:
        one, two = segment.run([Counted(4, 0).draw(0, 4), Counted(4, 1).draw(0, 2)])
    assert [row["id"] for row in one.payload.rows()] == [0, 1]
    assert [row["id"] for row in two.payload.rows()] == [0, 1]
    assert len(one.refs) == 2
    assert isinstance(one.failure, ExecutionError)
    assert str(one.failure).startswith(
        "options: runner='process' needs rows that cloudpickle takes, on row 2 got TypeError: "
    )
    assert two.failure is None


def test_a_source_that_no_pickle_takes_still_gives_its_facts():
    class Locked(StaticMixtureWorkSource):
        """Holds what no pickle takes."""

    source = Locked([Dataset.from_dict("d", {0: InMemoryShard(ROWS)})], {"d": 1.0})
    source.lock = threading.Lock()
    assert_same(Pipeline(source).batch(2))
