"""The documents that a lane holds: the table against a plain dict, and what is let go of."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.by_hand import Counted, block_of
from zephon.exec.rows import UNREAD, HeldRows


def tokens_of(held, seq):
    """Read one held document as the assembler does."""
    (part,), (start,), _ = held.places(np.array([seq]))
    (length,) = held.lengths(np.array([seq]))
    return held.parts[int(part)].buffer.columns["input_ids"][start : start + length].tolist()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=90), st.floats(0, 1)),
        max_size=12,
    )
)
def test_it_holds_what_came_until_it_is_released(steps):
    held, plain, oldest = HeldRows(3), {}, 0
    for documents, share in steps:
        block = block_of(documents, lane=3, first=len(plain))
        first = held.append(block)
        assert first == len(plain)
        plain.update({first + i: document for i, document in enumerate(documents)})
        oldest += int(share * (held.next_seq - oldest))
        held.release_before(oldest)
        alive = np.arange(oldest, held.next_seq)
        assert held.lengths(alive).tolist() == [len(plain[seq]) for seq in alive.tolist()]
        refs = held.refs(alive)
        assert refs.row.tolist() == refs.ordinal.tolist() == alive.tolist()
        assert set(refs.lane.tolist()) <= {3}
        assert [tokens_of(held, seq) for seq in alive.tolist()] == [
            plain[seq] for seq in alive.tolist()
        ]


def test_buffers_are_let_go_of_with_their_last_document():
    held = HeldRows(0)
    gone = []
    for number in range(4):
        block = block_of([[number] * 5, [number] * 5], first=2 * number)
        gone.append(weakref.ref(block.buffer.columns["input_ids"]))
        held.append(block)
        del block
    held.release_before(3)
    assert [ref() is None for ref in gone] == [True, False, False, False]
    held.release_before(4)
    assert [ref() is None for ref in gone] == [True, True, False, False]
    held.release_before(8)
    assert all(ref() is None for ref in gone)


def test_the_table_does_not_grow_with_what_was_released():
    held = HeldRows(0)
    for number in range(500):
        held.append(block_of([[1], [2], [3]], first=3 * number))
        held.release_before(held.next_seq - 3)
    assert held._table.shape[1] <= 512
    assert tokens_of(held, held.next_seq - 1) == [3]
    assert len(held.parts) <= 2


@pytest.mark.parametrize("released", [64, 65, 128, 129, 200, 299, 300])
def test_what_stays_is_found_again_after_the_table_moved(released):
    held = HeldRows(0)
    for first in range(0, 300, 7):
        documents = [[seq] * (1 + seq % 3) for seq in range(first, min(first + 7, 300))]
        held.append(block_of(documents, first=first))
    held.release_before(released)
    for _ in range(2):
        alive = range(released, 300)
        assert [tokens_of(held, seq) for seq in alive] == [[s] * (1 + s % 3) for s in alive]
        assert held.refs(np.array(alive, np.int64)).row.tolist() == list(alive)
        held.append(block_of([[7]] * 500, first=300))


def test_an_empty_block_holds_nothing():
    held = HeldRows(0)
    assert held.append(block_of([])) == 0
    assert (held.next_seq, held.parts) == (0, {})


def test_documents_known_by_reference_wait_for_their_tokens():
    held = HeldRows(2)
    refs = Counted(5, lane=2).draw(0, 5)
    assert held.append_unread(refs, np.array([3, 0, 2, 4, 1])) == 0
    part, _, _ = held.places(np.arange(5))
    assert part.tolist() == [UNREAD] * 5
    assert held.lengths(np.arange(5)).tolist() == [3, 0, 2, 4, 1]
    assert held.refs(np.array([3, 1])).row.tolist() == [3, 1]

    block = block_of([[9] * 9, [6, 7], [], [1, 2, 3]])
    held.fill(np.array([0, 2]), block, np.array([3, 1]))
    assert tokens_of(held, 0) == [1, 2, 3]
    assert tokens_of(held, 2) == [6, 7]
    part, _, _ = held.places(np.arange(5))
    assert (part == UNREAD).tolist() == [False, True, False, True, True]


def test_what_was_filled_in_is_let_go_of_like_the_rest():
    held = HeldRows(0)
    held.append_unread(Counted(3).draw(0, 3), np.array([1, 1, 1]))
    block = block_of([[7], [8], [9]])
    ref = weakref.ref(block.buffer.columns["input_ids"])
    held.fill(np.array([0, 1]), block, np.array([0, 1]))
    del block
    held.release_before(1)
    assert ref() is not None
    held.release_before(2)
    assert ref() is None


@pytest.mark.parametrize("count", [255, 256, 257, 1000])
def test_growing_keeps_everything(count):
    held = HeldRows(0)
    held.append(block_of([[i] for i in range(10)]))
    held.append(block_of([[i] for i in range(10, count)], first=10))
    assert [tokens_of(held, seq) for seq in range(count)] == [[i] for i in range(count)]
    assert held.refs(np.arange(count)).row.tolist() == list(range(count))


def shared(sizes):
    """Make one buffer of documents of 10 tokens, and a lane's block of it for each size."""
    whole = block_of([[100 * i + at for at in range(10)] for i in range(sum(sizes))])
    blocks, first = [], 0
    for size in sizes:
        stop = first + size
        blocks.append(
            replace(
                whole,
                refs=whole.refs.slice(first, stop),
                offsets=whole.offsets[first : stop + 1],
            )
        )
        first = stop
    return whole.buffer, blocks


def test_what_a_lane_still_holds_is_copied_out_of_a_buffer_that_the_others_left():
    """One slow lane must not keep the tokens of sixteen."""
    buffer, blocks = shared([3] * 16)
    gone = weakref.ref(buffer.columns["input_ids"])
    lanes = [HeldRows(lane) for lane in range(16)]
    for held, block in zip(lanes, blocks, strict=True):
        held.append(block)
    del buffer, blocks, block
    for held in lanes[1:]:
        held.release_before(3)
    assert gone() is not None
    wanted = [tokens_of(lanes[0], seq) for seq in range(3)]
    lanes[0].release_before(1)
    assert gone() is None
    assert [tokens_of(lanes[0], seq) for seq in (1, 2)] == wanted[1:]
    kept = [part.buffer.columns["input_ids"].nbytes for part in lanes[0].parts.values()]
    assert sum(kept) <= 3 * 10 * 4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_copying_out_changes_no_document(sizes, order):
    lanes = [HeldRows(lane) for lane in range(len(sizes))]
    plain = [[] for _ in sizes]
    oldest = [0 for _ in sizes]
    for _ in range(12):
        if order.random() < 0.4:
            _, blocks = shared(sizes)
            for held, block, known in zip(lanes, blocks, plain, strict=True):
                first = held.append(block)
                known += [tokens_of(held, first + i) for i in range(len(block.refs))]
        lane = order.randrange(len(sizes))
        held = lanes[lane]
        oldest[lane] += order.randint(0, held.next_seq - oldest[lane])
        held.release_before(oldest[lane])
        for held, known, first in zip(lanes, plain, oldest, strict=True):
            alive = range(first, held.next_seq)
            assert [tokens_of(held, seq) for seq in alive] == [known[seq] for seq in alive]
            for part in held.parts.values():
                assert 0 <= part.buffer.live <= part.buffer.size
