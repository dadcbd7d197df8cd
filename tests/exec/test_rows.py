"""The documents that a lane holds: the table against a plain dict, and what is let go of."""

import weakref
from dataclasses import replace
from itertools import count, pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.by_hand import Counted, block_of
from zephon.exec import rows
from zephon.exec.block import Known
from zephon.exec.rows import UNREAD, HeldRows
from zephon.io.payload import Payload, RowSource

NOTHING = np.empty(0, np.int64)


def tokens_of(held, seqs):
    """Read held documents as the assembler does."""
    part, start, _ = held.places(np.asarray(seqs, np.int64))
    length = held.lengths(np.asarray(seqs, np.int64))
    return [
        held.parts[p].buffer.columns["input_ids"][s : s + n].tolist()
        for p, s, n in zip(part.tolist(), start.tolist(), length.tolist(), strict=True)
    ]


def whole_rows_of(held, seqs):
    """Read the whole rows of held documents as the assembler does."""
    part, _, index = held.places(np.asarray(seqs, np.int64))
    return [
        held.parts[p].payload.row(i) for p, i in zip(part.tolist(), index.tolist(), strict=True)
    ]


def release_before(held, seq, *, leaving=False):
    """Let go of the documents before one; the others are in rows, or policies hold them."""
    rest = np.arange(seq, held.next_seq)
    return held.release([rest], NOTHING) if leaving else held.release([], rest)


def clearing_often():
    """Let the table be cleared from the fifth dead entry on."""
    return mock.patch.object(rows, "_LEAST_DEAD", 4)


class Lines(RowSource):
    """Whole rows as bytes of its own, of which some can be copied out."""

    def __init__(self, lines):
        self.lines = lines

    def row(self, index):
        return {"n": self.lines[index]}

    def some(self, rows):
        return Lines([self.lines[row] for row in rows.tolist()]), np.arange(len(rows))


def payload_of(numbers):
    source = Lines(list(numbers))
    return Payload((source,), np.zeros(len(numbers), np.int32), np.arange(len(numbers)))


DOCUMENTS = st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=30)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(DOCUMENTS, st.sampled_from([0, 0.1, 0.5, 0.9, 1])), max_size=12),
    st.randoms(use_true_random=False),
)
def test_it_holds_what_came_until_it_is_released(steps, order):
    """Documents leave in any order; the others keep all that is known of them."""
    held, plain, alive = HeldRows(3, measures=("length", "weight")), {}, []
    with clearing_often():
        for documents, share in steps:
            numbers = range(len(plain), len(plain) + len(documents))
            measures = {
                "length": np.array([7 * n % 5 for n in numbers], np.int64),
                "weight": np.array([n / 3 for n in numbers]).view(np.int64),
            }
            block = block_of(
                documents, lane=3, first=len(plain), payload=payload_of(numbers), measures=measures
            )
            assert held.append(block) == len(plain)
            plain.update(zip(numbers, documents, strict=True))
            alive = [seq for seq in (*alive, *numbers) if order.random() < share]
            leaving = [seq for seq in alive if order.random() < 0.3]
            staying = [seq for seq in alive if seq not in leaving or order.random() < 0.1]
            kept = held.release(
                [np.array(leaving, np.int64), np.array(leaving[::2], np.int64)],
                np.array([*staying, *staying[::3]], np.int64),
            )
            assert kept == sum(len(plain[seq]) for seq in staying)
            seqs = np.array(order.sample(alive, len(alive)), np.int64)
            assert held.lengths(seqs).tolist() == [len(plain[seq]) for seq in seqs.tolist()]
            assert held.components(seqs).tolist() == [0] * len(seqs)
            assert held.last_parts(seqs).all()
            assert held.measures("length", seqs).tolist() == (7 * seqs % 5).tolist()
            assert held.measures("weight", seqs).view(np.float64).tolist() == (seqs / 3).tolist()
            assert held.marks(seqs).tolist() == [[seq, seq] for seq in seqs.tolist()]
            known = held.known(seqs)
            assert known.refs.row.tolist() == known.position.tolist() == seqs.tolist()
            assert known.measures[0].tolist() == (7 * seqs % 5).tolist()
            assert set(known.refs.lane.tolist()) <= {3}
            assert tokens_of(held, seqs) == [plain[seq] for seq in seqs.tolist()]
            assert whole_rows_of(held, seqs) == [{"n": seq} for seq in seqs.tolist()]


@pytest.mark.parametrize("leaving", [False, True])
def test_buffers_are_let_go_of_with_their_last_document(leaving):
    held = HeldRows(0)
    gone = []
    for number in range(4):
        block = block_of([[number] * 5, [number] * 5], first=2 * number)
        gone.append(weakref.ref(block.buffer.columns["input_ids"]))
        held.append(block)
        del block
    release_before(held, 3, leaving=leaving)
    assert [ref() is None for ref in gone] == [True, False, False, False]
    release_before(held, 4, leaving=leaving)
    assert [ref() is None for ref in gone] == [True, True, False, False]
    release_before(held, 8, leaving=leaving)
    assert all(ref() is None for ref in gone)
    assert held.parts == {}


def test_the_table_does_not_grow_with_what_was_released():
    held = HeldRows(0)
    for number in range(8000):
        held.append(block_of([[1], [2], [3]], first=3 * number))
        if number % 50 == 0:
            release_before(held, held.next_seq - 3)
    assert held._table.shape[1] <= 2 * rows._LEAST_DEAD
    assert tokens_of(held, [held.next_seq - 1]) == [[3]]
    release_before(held, held.next_seq - 3)
    assert len(held.parts) == 1


@pytest.mark.parametrize("every", [1, 2, 7, 60])
@pytest.mark.parametrize("released", [0, 64, 65, 128, 299, 300])
def test_what_stays_is_found_again_after_the_table_moved(released, every):
    """Survivors are found by search, what came after the clearing by number, and both at once."""
    held = HeldRows(0)
    for first in range(0, 300, 7):
        documents = [[seq] * (1 + seq % 3) for seq in range(first, min(first + 7, 300))]
        held.append(block_of(documents, first=first))
    alive = np.arange(released, 300, every)
    with clearing_often():
        held.release([], alive)
        for _ in range(3):
            wanted = [[seq % 1000] * (1 + seq % 3) for seq in alive.tolist()]
            assert tokens_of(held, alive) == wanted
            assert held.known(alive).refs.row.tolist() == alive.tolist()
            first = held.next_seq
            documents = [[seq % 1000] * (1 + seq % 3) for seq in range(first, first + 500)]
            assert held.append(block_of(documents, first=first)) == first
            assert held.known_from(first).refs.row.tolist() == list(range(first, first + 500))
            alive = np.concatenate([alive[::2], np.arange(first, first + 500, every)])
            held.release([alive[::2]], alive[1::2])


def test_an_empty_block_holds_nothing():
    held = HeldRows(0)
    assert held.append(block_of([])) == 0
    assert (held.next_seq, held.parts) == (0, {})
    assert held.release([], NOTHING) == 0


@pytest.mark.parametrize("count", [255, 256, 257, 1000])
def test_growing_keeps_everything(count):
    held = HeldRows(0)
    held.append(block_of([[i] for i in range(10)]))
    held.append(block_of([[i] for i in range(10, count)], first=10))
    assert tokens_of(held, range(count)) == [[i] for i in range(count)]
    assert held.known(np.arange(count)).refs.row.tolist() == list(range(count))


# Sparse holding: policies keep a few documents of many blocks


def kept_alive(*lanes):
    """Count the tokens and documents of all parts, and the tokens of the arrays behind them."""
    parts = [part for held in lanes for part in held.parts.values()]
    arrays = {id(part.buffer): part.buffer.columns["input_ids"] for part in parts}
    entries = sum(part.tokens + part.documents for part in parts)
    return entries, sum(len(values) for values in arrays.values())


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([[0], [1], [1, 30], [0, 5, 200]]),
    st.integers(1, 40),
    st.integers(1, 60),
    st.randoms(use_true_random=False),
)
def test_what_is_kept_alive_is_at_most_twice_what_is_held(sizes, block, most, order):
    """As under a shuffle: some of what came stays, anywhere, for any time."""
    held, staying, lengths = HeldRows(0), [], []
    for _ in range(20):
        first = held.next_seq
        documents = [[first + i] * order.choice(sizes) for i in range(block)]
        numbers = range(first, first + block)
        held.append(block_of(documents, first=first, payload=payload_of(numbers)))
        lengths += map(len, documents)
        staying = order.sample([*staying, *numbers], min(most, len(staying) + block))
        tokens = held.release([], np.array(staying, np.int64))
        assert tokens == sum(lengths[seq] for seq in staying)
        entries, values = kept_alive(held)
        assert entries <= 2 * (tokens + len(staying))
        assert values <= 2 * (tokens + len(staying))
        sources = {id(s): s for part in held.parts.values() for s in part.payload._sources}
        assert sum(len(s.lines) for s in sources.values()) <= 2 * (tokens + len(staying))
        assert tokens_of(held, staying) == [[seq] * lengths[seq] for seq in staying]
        assert whole_rows_of(held, staying) == [{"n": seq} for seq in staying]


def test_of_rows_without_tokens_those_that_stay_are_copied_out():
    held = HeldRows(0)
    sources = []
    for number in range(10):
        payload = payload_of(range(10 * number, 10 * number + 10))
        sources.append(weakref.ref(payload._sources[0]))
        held.append(block_of([[]] * 10, first=10 * number, payload=payload))
        del payload
    staying = np.arange(3, 100, 10)
    assert held.release([], staying) == 0
    assert all(ref() is None for ref in sources)
    assert [part.documents for part in held.parts.values()] == [1] * 10
    assert whole_rows_of(held, staying) == [{"n": seq} for seq in staying.tolist()]


def test_what_is_leaving_soon_is_not_copied():
    held = HeldRows(0)
    block = block_of([[seq] * 10 for seq in range(10)])
    held.append(block)
    held.release([np.array([4, 5])], np.array([9]))
    assert held.parts[0].buffer is block.buffer
    held.release([np.array([5])], np.array([9]))
    assert held.parts[0].buffer is block.buffer
    held.release([], np.array([9]))
    assert held.parts[0].buffer.columns["input_ids"].tolist() == [9] * 10
    assert block.buffer.live == 0
    assert tokens_of(held, [9]) == [[9] * 10]


def test_columns_beside_the_tokens_are_copied_with_them():
    held = HeldRows(0)
    mask = [seq % 2 for seq in range(10) for _ in range(3)]
    held.append(block_of([[seq] * 3 for seq in range(10)], mask=mask))
    held.release([], np.array([3, 8]))
    (part,) = held.parts.values()
    assert part.buffer.columns["input_ids"].tolist() == [3, 3, 3, 8, 8, 8]
    assert part.buffer.columns["mask"].tolist() == [1, 1, 1, 0, 0, 0]


# Documents known by reference


def counted(size, lane=0, length=(), measures=()):
    """Give what is known of the first draws of a lane."""
    refs = Counted(size, lane=lane).draw(0, size)
    table = np.array(measures, np.int64).reshape(len(measures), size)
    return Known(refs, np.array(length, np.int64), refs.ordinal, table)


def test_documents_known_by_reference_wait_for_their_tokens():
    held = HeldRows(2, measures=("length",))
    known = counted(5, 2, [3, 0, 2, 4, 1], [[5, 6, 7, 8, 9]])
    assert held.append_unread(known) == 0
    part, _, _ = held.places(np.arange(5))
    assert part.tolist() == [UNREAD] * 5
    assert held.unread == 5
    assert held.lengths(np.arange(5)).tolist() == [3, 0, 2, 4, 1]
    assert held.known(np.array([3, 1])).refs.row.tolist() == [3, 1]
    assert held.measures("length", np.array([4, 0])).tolist() == [9, 5]
    again = held.known(np.array([1, 2]))
    assert again.measures.tolist() == [[6, 7]]
    assert again.position.tolist() == [1, 2]

    block = block_of([[9] * 9, [6, 7], [], [1, 2, 3]])
    held.fill(np.array([0, 2]), block, np.array([3, 1]))
    assert tokens_of(held, [0, 2]) == [[1, 2, 3], [6, 7]]
    part, _, _ = held.places(np.arange(5))
    assert (part == UNREAD).tolist() == [False, True, False, True, True]
    assert held.unread == 3


def test_what_was_filled_in_is_let_go_of_like_the_rest():
    held = HeldRows(0)
    held.append_unread(counted(3, 0, [1, 1, 1]))
    block = block_of([[7], [8], [9]])
    ref = weakref.ref(block.buffer.columns["input_ids"])
    held.fill(np.array([0, 1]), block, np.array([0, 1]))
    del block
    held.release([np.array([1, 2])], NOTHING)
    assert ref() is not None
    assert tokens_of(held, [1]) == [[8]]
    held.release([], np.array([2]))
    assert ref() is None


def test_of_what_was_read_again_only_what_is_held_stays():
    """A block may hold the other splits of a row, too."""
    held = HeldRows(0)
    held.append_unread(counted(2, 0, [2, 3]))
    block = block_of([[seq] * (2 + seq % 2) for seq in range(10)], payload=payload_of(range(10)))
    held.fill(np.array([0, 1]), block, np.array([4, 7]))
    assert held.release([], np.array([0, 1])) == 5
    (part,) = held.parts.values()
    assert part.buffer.columns["input_ids"].tolist() == [4, 4, 7, 7, 7]
    assert whole_rows_of(held, [0, 1]) == [{"n": 4}, {"n": 7}]


def test_unread_documents_survive_a_clearing():
    held = HeldRows(0)
    held.append_unread(counted(100, 0, range(100)))
    held.append(block_of([[seq] for seq in range(100, 200)], first=100))
    staying = np.arange(0, 200, 10)
    with clearing_often():
        assert held.release([], staying) == sum(range(0, 100, 10)) + 10
    assert held.unread == 10
    part, _, _ = held.places(staying)
    assert (part == UNREAD).tolist() == [True] * 10 + [False] * 10
    assert held.known(staying).refs.row.tolist() == staying.tolist()
    held.fill(np.array([30]), block_of([[1] * 30]), np.array([0]))
    assert tokens_of(held, [30, 100]) == [[1] * 30, [100]]
    assert held.unread == 9


# Several lanes share the buffer of a task


def shared(sizes, length=10):
    """Make one buffer of documents of 10 tokens, and a lane's block of it for each size."""
    documents = [[100 * i + at for at in range(length)] for i in range(sum(sizes))]
    whole = block_of(documents, payload=payload_of(range(sum(sizes))))
    bounds = np.cumsum([0, *sizes]).tolist()
    return whole.buffer, [
        replace(
            whole,
            refs=whole.refs.slice(a, b),
            offsets=whole.offsets[a : b + 1],
            payload=whole.payload.take(np.arange(a, b)),
        )
        for a, b in pairwise(bounds)
    ]


@pytest.mark.parametrize("leaving", [False, True])
def test_what_a_lane_still_holds_is_copied_out_of_a_buffer_that_the_others_left(leaving):
    """One slow lane must not keep the tokens of sixteen."""
    buffer, blocks = shared([3] * 16)
    gone = weakref.ref(buffer.columns["input_ids"])
    lanes = [HeldRows(lane) for lane in range(16)]
    for held, block in zip(lanes, blocks, strict=True):
        held.append(block)
    del buffer, blocks, block
    for held in lanes[1:]:
        release_before(held, 3, leaving=leaving)
    assert gone() is not None
    wanted = tokens_of(lanes[0], range(3))
    release_before(lanes[0], 1, leaving=leaving)
    assert gone() is None
    assert tokens_of(lanes[0], [1, 2]) == wanted[1:]
    assert whole_rows_of(lanes[0], [1, 2]) == [{"n": 1}, {"n": 2}]
    kept = [part.buffer.columns["input_ids"].nbytes for part in lanes[0].parts.values()]
    assert sum(kept) <= 3 * 10 * 4


def test_a_buffer_goes_when_every_lane_holds_a_little_of_it():
    buffer, blocks = shared([8] * 4)
    gone = weakref.ref(buffer.columns["input_ids"])
    lanes = [HeldRows(lane) for lane in range(4)]
    for held, block in zip(lanes, blocks, strict=True):
        held.append(block)
    del buffer, blocks, block
    wanted = [tokens_of(held, [2]) for held in lanes]
    for held in lanes:
        held.release([], np.array([2]))
    assert gone() is None
    assert kept_alive(*lanes)[1] == 4 * 10
    assert [tokens_of(held, [2]) for held in lanes] == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_copying_out_changes_no_document(sizes, order):
    lanes = [HeldRows(lane) for lane in range(len(sizes))]
    plain = [{} for _ in sizes]
    for _ in range(12):
        if order.random() < 0.4:
            _, blocks = shared(sizes)
            for held, block, known in zip(lanes, blocks, plain, strict=True):
                seqs = range(first := held.append(block), first + len(block.refs))
                found = zip(tokens_of(held, seqs), whole_rows_of(held, seqs), strict=True)
                known.update(zip(seqs, found, strict=True))
        lane = order.randrange(len(sizes))
        held = lanes[lane]
        plain[lane] = {seq: d for seq, d in plain[lane].items() if order.random() < 0.6}
        alive = np.array(list(plain[lane]), np.int64)
        with clearing_often():
            if order.random() < 0.5:
                held.release([], alive)
            else:
                held.release([alive[::3]], alive[np.arange(len(alive)) % 3 > 0])
        for held, known in zip(lanes, plain, strict=True):
            assert tokens_of(held, list(known)) == [tokens for tokens, _ in known.values()]
            assert whole_rows_of(held, list(known)) == [row for _, row in known.values()]
            for part in held.parts.values():
                assert 0 <= part.buffer.live <= part.buffer.size
    for held, known in zip(lanes, plain, strict=True):
        held.release([], np.array(list(known), np.int64))
    for held in lanes:  # once more, now that all the others have let go
        held.release([], np.array(list(plain[held.lane]), np.int64))
    entries, values = kept_alive(*lanes)
    tokens = sum(len(tokens) for known in plain for tokens, _ in known.values())
    documents = sum(map(len, plain))
    assert entries <= 2 * (tokens + documents)
    assert values <= 2 * entries


# Documents that wait to be merged


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.randoms(use_true_random=False))
def test_waiting_documents_stay_whatever_else_is_let_go(strands, order):
    """Two lanes share each buffer; documents arrive from strands in any order and leave so."""
    names = ("length",)
    lanes = [HeldRows(lane, strands, names) for lane in range(2)]
    waiting = [[[] for _ in range(strands)] for _ in lanes]  # (tokens, draw of the strand)
    alive = [{} for _ in lanes]
    draws, tokens, made = count(), [0, 0], [[0] * strands for _ in lanes]
    for _ in range(15):
        strand = order.randrange(strands)
        documents = [[order.randrange(99)] * order.choice([0, 1, 9]) for _ in range(8)]
        numbers = [seq + 50 for seq in range(8)]
        whole = block_of(documents, payload=payload_of(numbers))
        cut = order.randrange(9)
        for lane, (a, b) in enumerate(((0, cut), (cut, 8))):
            first = made[lane][strand]
            refs = replace(whole.refs.slice(a, b), ordinal=np.arange(first, first + b - a))
            measures = {"length": refs.ordinal * 3}
            part = whole.payload.take(np.arange(a, b))
            block = replace(
                whole, refs=refs, offsets=whole.offsets[a : b + 1], payload=part, measures=measures
            )
            lanes[lane].wait(strand, block)
            waiting[lane][strand] += [
                (documents[a + i], numbers[a + i], first + i) for i in range(b - a)
            ]
            made[lane][strand] += b - a
        lane = order.randrange(2)
        held, queues = lanes[lane], waiting[lane]
        counts = [(s, order.randint(0, len(queue))) for s, queue in enumerate(queues)]
        counts = [(s, n) for s, n in counts if n]
        if counts:
            arriving = [document for s, n in counts for document in queues[s][:n]]
            for s, n in counts:
                del queues[s][:n]
            places = np.array(order.sample(range(len(arriving)), len(arriving)))
            ordinals = [next(draws) for _ in arriving]
            first = held.append_merged(counts, places, np.array(ordinals), tokens[lane])
            for at, place in enumerate(places.tolist()):
                mark = [ordinals[at], tokens[lane]]
                tokens[lane] += len(arriving[place][0])
                alive[lane][first + at] = (*arriving[place], mark)
        alive[lane] = {s: d for s, d in alive[lane].items() if order.random() < 0.7}
        with clearing_often():
            held.release([], np.array(list(alive[lane]), np.int64))
        for held, known in zip(lanes, alive, strict=True):
            seqs = np.array(list(known), np.int64)
            assert tokens_of(held, seqs) == [document for document, *_ in known.values()]
            assert whole_rows_of(held, seqs) == [{"n": n} for _, n, *_ in known.values()]
            assert held.known(seqs).position.tolist() == [p for _, _, p, _ in known.values()]
            assert held.measures("length", seqs).tolist() == [3 * p for *_, p, _ in known.values()]
            assert held.marks(seqs).tolist() == [mark for *_, mark in known.values()]
    for lane, held in enumerate(lanes):  # what still waits arrives as it came
        counts = [(s, len(queue)) for s, queue in enumerate(waiting[lane]) if queue]
        arriving = [document for queue in waiting[lane] for document in queue]
        if arriving:
            places = np.arange(len(arriving))
            first = held.append_merged(counts, places, places, tokens[lane])
            seqs = range(first, first + len(arriving))
            assert tokens_of(held, seqs) == [document for document, *_ in arriving]
            assert whole_rows_of(held, seqs) == [{"n": n} for _, n, _ in arriving]
        assert sum(part.waiting for part in held.parts.values()) == 0


def test_what_waits_is_let_go_with_its_strand():
    held = HeldRows(0, strands=2)
    gone = []
    for strand in (0, 1):
        block = block_of([[strand] * 5] * 4)
        gone.append(weakref.ref(block.buffer.columns["input_ids"]))
        held.wait(strand, block)
        del block
    held.append_merged([(0, 1)], np.array([0]), np.array([0]), 0)
    held.release([], NOTHING)
    assert [ref() is None for ref in gone] == [False, False]
    held.drop_waiting(0)
    held.release([], NOTHING)
    assert [ref() is None for ref in gone] == [True, False]
