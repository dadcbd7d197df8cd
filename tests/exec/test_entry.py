"""How an operator of the user takes its groups: flushed, written down, or told of the end."""

import pytest

from tests.exec.towers_by_hand import InPairs, Numbering, Uneven, entry
from zephon.errors import ExecutionError
from zephon.exec.entry import SNAPSHOT_GROUPS
from zephon.types import SampleMeta, SampleRecord


def records(*rows):
    return [
        SampleRecord(SampleMeta((5, 7, row), 0, 0, row), {"input_ids": [1000 * row]})
        for row in rows
    ]


def tokens(made):
    return [record.payload["input_ids"] for record in made]


def test_what_is_held_leaves_with_the_last_group_of_an_interval():
    pairs = entry(InPairs(), 2)
    memory = pairs.begin(0, None)
    memory, made = pairs.take(memory, 0, records(0, 1, 2, 3), last=False)
    assert tokens(made) == [[0, 1000, 2000]]
    memory, made = pairs.take(memory, 1, records(4), last=False)
    assert (memory, tokens(made)) == (None, [[3000, 4000]])
    assert [pairs.flushes(n) for n in range(1, 5)] == [False, True, False, True]
    assert [pairs.remembers(n) for n in range(5)] == [False, True, False, True, False]
    assert pairs.span == 2


def test_at_the_end_of_a_lane_all_leaves():
    numbers = entry(Numbering(), 0)
    memory, made = numbers.take(numbers.begin(0, None), 0, records(3, 4), last=False)
    assert tokens(made) == [[0, 3000]]
    memory, made = numbers.take(memory, 1, [], last=True)
    assert (memory, tokens(made)) == (None, [[1, 4000]])
    assert (numbers.span, numbers.flushes(16), numbers.remembers(16)) == (
        SNAPSHOT_GROUPS,
        False,
        True,
    )


def test_what_was_written_down_is_read_back():
    numbers = entry(Numbering(), 0)
    memory, _ = numbers.take(numbers.begin(0, None), 0, records(3, 4), last=False)
    again = numbers.begin(0, numbers.step.snapshot(memory))
    for each in (memory, again):
        assert tokens(numbers.take(each, 1, records(5), last=True)[1]) == [[1, 4000], [2, 5000]]


class Hearing(Uneven):
    """Tells what it hears of the end."""

    def source_exhausted(self, state, component):
        return [SampleRecord(SampleMeta((5, 7, 0), 0, 0), {"input_ids": [component]})]

    def finish(self, state):
        return records(9)


def test_the_end_of_every_component_is_told_before_the_flush():
    hearing = entry(Hearing(), 3)
    _, made = hearing.take(None, 5, [], last=True)
    assert tokens(made) == [[0], [1], [2], [9000]]
    assert tokens(hearing.take(None, 5, [], last=False)[1]) == [[9000]]


def test_tombstones_leave_nothing_and_a_group_without_rows_is_a_lost_draw():
    uneven = entry(Uneven(), 1)
    gone, kept = records(1, 2)
    block = uneven.block(0, 7, [SampleRecord(gone.meta.with_tombstone(), gone.payload), kept])
    assert (block.refs.row.tolist(), block.refs.ordinal.tolist(), len(block.lost)) == ([2], [7], 0)
    block = uneven.block(0, 8, [SampleRecord(gone.meta.with_tombstone(), gone.payload)])
    assert (len(block.refs), block.offsets.tolist()) == (0, [0])
    assert (block.lost.refs.ordinal.tolist(), block.lost.reason.tolist()) == ([8], [2])


def test_what_is_neither_flushed_nor_written_down_is_refused():
    with pytest.raises(ExecutionError, match="in pairs: what it remembers must be flushed"):
        entry(InPairs(), 0)
