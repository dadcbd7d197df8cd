"""Messages to and from workers: what arrives, whose memory it has, and what stays open."""

import gc
import os
import pickle
import re
import socket
import threading
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import DataError
from zephon.exec.runners import transport
from zephon.exec.runners.bodies import pack_alone, unpack
from zephon.exec.runners.transport import IN_FILE, Kind, collect, pack
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.line_blocks import LineBlocks, RowLines
from zephon.io.formats.line_rows import LineRows, Place
from zephon.io.formats.memory import ObjectRows

LARGE = IN_FILE // 8 + 1000  # numbers of 8 bytes


def sent(value, kind=Kind.DONE):
    """Send a value through a socket pair; return what arrives."""
    ours, theirs = socket.socketpair()
    with ours, theirs, pack(value) as parcel:
        poster = threading.Thread(target=parcel.post, args=(ours, kind))
        poster.start()
        found = collect(theirs)
        poster.join()
    assert found[0] is kind
    return unpack(found[1])


def open_files():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def nothing_left_open():
    before = open_files()
    yield
    assert open_files() == before


@pytest.mark.parametrize("count", [0, 1, 600, LARGE])
def test_values_arrive_as_they_were(count):
    with nothing_left_open():
        numbers = np.arange(count)
        found = sent({"a": numbers, "b": numbers[::2], "c": ["text", None], "d": np.float32(2)})
        assert list(found) == ["a", "b", "c", "d"]
        assert found["a"].tolist() == numbers.tolist()
        assert found["b"].tolist() == numbers[::2].tolist()
        assert (found["c"], found["d"]) == (["text", None], np.float32(2))
        del found


@pytest.mark.parametrize("count", [10, 600, LARGE])
def test_arrays_may_be_written_where_they_could_be(count):
    fixed = np.arange(count)
    fixed.flags.writeable = False
    free, found = sent((np.arange(count), fixed))
    assert not found.flags.writeable
    free += 1
    assert free.tolist() == list(range(1, count + 1))
    assert found.tolist() == list(range(count))


def test_what_is_shared_in_a_message_stays_shared():
    numbers = np.arange(LARGE)
    first, second = sent([numbers, numbers])
    assert first is second


def test_a_slice_brings_its_own_memory_alone():
    with pack(np.arange(LARGE)[:100]) as parcel:
        assert parcel.size < 2000


def test_large_arrays_are_views_of_the_file_and_small_ones_are_not():
    large, small = sent((np.arange(LARGE), np.arange(100)))
    assert np.shares_memory(large, np.asarray(transport._maps.pop()))
    assert not isinstance(small.base, memoryview)


@pytest.mark.parametrize("most", [0, 1])
def test_beyond_some_maps_a_body_is_copied(monkeypatch, most):
    monkeypatch.setattr(transport, "MOST_MAPS", most)
    gc.collect()
    before = open_files()
    found = [sent(np.arange(LARGE) + shift) for shift in range(3)]
    assert open_files() == before + most
    assert [array[-1] for array in found] == [LARGE - 1, LARGE, LARGE + 1]
    assert all(array.flags.writeable for array in found)


def test_tables_come_back_as_views_and_objects_as_their_own():
    """What is left of a few Python objects must not keep the whole message alive."""
    table = TableRows(pa.table({"n": np.arange(LARGE)}))
    objects = ObjectRows([{"values": np.arange(LARGE)}])
    rows, found = sent((table, objects))
    assert rows.row(7) == {"n": 7}
    (mapped,) = list(transport._maps)
    values = found._rows[0]["values"]
    assert values.tolist() == list(range(LARGE))
    assert not np.shares_memory(values, np.asarray(mapped))
    assert np.shares_memory(rows._columns[0].chunk(0).to_numpy(), np.asarray(mapped))


def test_lines_bring_their_own_place_alone():
    count = 100_000
    blocks = LineBlocks(*(np.arange(count + 1) * step for step in (50, 2, 3)), b"{")
    lines = RowLines(np.array([0, 9]), np.array([8, 12]), np.array([0, 1]), 2)
    given = LineRows(b'{"n": 1}\nbad\n', lines, Place("words", "a.jsonl", blocks, 7))
    with pack(given) as parcel:
        assert parcel.size < 3000
    found = sent(given)
    assert found.row(0) == {"n": 1}
    with pytest.raises(DataError) as wanted:
        given.row(1)
    with pytest.raises(DataError, match=re.escape(str(wanted.value))):
        found.row(1)
    assert "row 15 (line 23, byte 359)" in str(wanted.value)


def test_functions_that_no_module_holds_arrive():
    factor = 3
    assert sent(lambda x: x * factor)(5) == 15


def test_a_parcel_can_be_sent_again():
    ours, theirs = socket.socketpair()
    with ours, theirs, pack(np.arange(LARGE)) as parcel:
        found = []
        for _ in range(2):
            parcel.post(ours, Kind.TASK)
            found.append(unpack(collect(theirs)[1]))
    found[0][:] = 0
    assert found[1].tolist() == list(range(LARGE))


def test_what_cannot_be_pickled_raises_and_leaves_nothing():
    with nothing_left_open(), pytest.raises(TypeError, match="pickle"):
        pack([np.arange(LARGE), threading.Lock()])


@pytest.mark.parametrize("begun", [b"", b"\x03", bytes([3, 0]) + (99).to_bytes(8, "little") + b"x"])
def test_a_message_that_ends_early_is_the_end(begun):
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(begun)
        ours.close()
        with pytest.raises(EOFError):
            collect(theirs)


def test_a_file_that_did_not_come_is_an_error_of_its_own():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(bytes([3, 1]) + (99).to_bytes(8, "little"))
        with pytest.raises(OSError, match="too many files are open"):
            collect(theirs)


def test_without_anonymous_memory_a_nameless_file_serves(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with nothing_left_open():
        assert sent(np.arange(LARGE)).tolist() == list(range(LARGE))
    assert list(tmp_path.iterdir()) == []


def test_more_buffers_than_one_call_writes_arrive_in_order():
    arrays = [np.full(600, number) for number in range(1500)]
    found = sent(arrays)
    assert all((array == number).all() for number, array in enumerate(found))


def test_alone_is_plain_pickle():
    assert pickle.loads(pack_alone(np.arange(LARGE))).tolist() == list(range(LARGE))
