import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zephon.errors import DataError
from zephon.io import Dataset, InMemoryShard
from zephon.io.fields import TEXT, TOKENS
from zephon.io.formats.arrow_rows import TableRows
from zephon.io.formats.format import DecodedGroup, GroupReader
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader

ROWS = [{"text": "x" * (n % 7) + str(n), "ids": list(range(n % 5))} for n in range(40)]


@pytest.fixture(scope="module", params=["parquet", "in_memory"])
def dataset(request, tmp_path_factory):
    parts = [ROWS[:17], [], ROWS[17:18], ROWS[18:]]
    if request.param == "in_memory":
        return Dataset.from_dict("d", {key: InMemoryShard(part) for key, part in enumerate(parts)})
    path = tmp_path_factory.mktemp("parquet")
    schema = pa.schema({"text": pa.string(), "ids": pa.list_(pa.int32())})
    for key, part in enumerate(parts):
        pq.write_table(
            pa.Table.from_pylist(part, schema), path / f"{key}.parquet", row_group_size=4
        )
    return Dataset.from_path("d", path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, len(ROWS) - 1), max_size=30), st.sampled_from([0, 200, 1 << 30]))
def test_any_request_gives_its_rows_in_order(dataset, read, text, tokens, picks, limit_bytes):
    rows = read(dataset, text, tokens, payload=True, limit_bytes=limit_bytes)
    taken = rows.take(picks)
    assert taken.columns.schema == pa.schema({"text": TEXT, "ids": TOKENS})
    assert taken.columns.to_pylist() == [ROWS[pick] for pick in picks]
    assert all(column.null_count == 0 for column in taken.columns.columns)
    whole = [taken.payload.row(i) for i in range(len(picks))]
    assert [row["text"] for row in whole] == [ROWS[pick]["text"] for pick in picks]
    assert [list(row["ids"]) for row in whole] == [ROWS[pick]["ids"] for pick in picks]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(ROWS)), st.integers(0, len(ROWS)))
def test_rows_that_follow_one_another(dataset, read, text, start, stop):
    picks = range(start, stop)
    assert read(dataset, text).values(picks) == [ROWS[pick]["text"] for pick in picks]


def test_rows_of_one_group_share_its_memory(tmp_path, read, text):
    pq.write_table(pa.table({"text": list("abcdefgh")}), tmp_path / "a.parquet")
    rows = read(Dataset.from_path("d", tmp_path), text)
    one, two = (rows.take(picks).columns.column(0) for picks in ([1, 2], [2, 3, 4]))
    assert one.buffers()[2].address == two.buffers()[2].address
    assert rows.cache.counts().misses == 1


def test_readers_of_the_same_columns_share_decoded_groups(dataset, text, tokens):
    cache = GroupCache(1 << 30)
    shards, rows = np.zeros(3, np.int64), np.arange(3)
    for columns in ((text,), (text,), (tokens,)):
        RowReader(dataset, columns, payload=False, cache=cache).take(shards, rows)
    assert cache.counts().misses == 2


def test_two_datasets_with_the_same_rows_do_not_mix(text):
    cache = GroupCache(1 << 30)
    for word in ("one", "two"):
        dataset = Dataset.from_dict("d", {0: InMemoryShard([{"text": word}])})
        reader = RowReader(dataset, (text,), payload=False, cache=cache)
        taken = reader.take(np.zeros(1, np.int64), np.zeros(1, np.int64))
        assert taken.columns.column(0).to_pylist() == [word]


def test_one_file_that_is_read_in_two_ways_does_not_mix(tmp_path, text):
    (tmp_path / "a.csv").write_text("text;x,text\none;two,three\n")
    cache = GroupCache(limit_bytes=1 << 20)
    found = []
    for delimiter in (",", ";"):
        options = {"delimiter": delimiter}
        data = Dataset.from_path("words", tmp_path, fmt="csv", format_options=options)
        taken = RowReader(data, (text,), payload=False, cache=cache).take(
            np.array([0]), np.array([0])
        )
        found.append(taken.columns.column(0).to_pylist())
    assert found == [["three"], ["one"]]


def test_the_bad_row_asked_for_first_is_named(read, text):
    bad = [{"text": None}]
    shards = {0: InMemoryShard([{"text": "a"}] * 3 + bad), 1: InMemoryShard(bad * 2)}
    rows = read(Dataset.from_dict("d", shards), text)
    with pytest.raises(DataError, match="shard '1', row 1:"):
        rows.take([0, 5, 3, 4])
    with pytest.raises(DataError, match="shard '0', row 3:"):
        rows.take([1, 3, 5])


def test_nothing_is_asked_for(dataset, read, text, tokens):
    taken = read(dataset, text, tokens, payload=True).take([])
    assert taken.columns.schema == pa.schema({"text": TEXT, "ids": TOKENS})
    assert (taken.columns.num_rows, len(taken.payload)) == (0, 0)


@pytest.mark.parametrize(
    ("shard", "row", "message"),
    [
        (4, 0, "shards must be 0 to 3, got 4 to 4"),
        (-1, 0, "shards must be 0 to 3, got -1"),
        (0, 17, "row must be 0 to 16, got 17"),
        (0, -1, "row must be 0 to 16, got -1"),
        (1, 0, "row must be 0 to -1, got 0"),
    ],
)
def test_rows_that_are_not_there(dataset, read, text, shard, row, message):
    with pytest.raises(IndexError, match=message):
        read(dataset, text).reader.take(np.array([shard]), np.array([row]))


def test_a_dataset_without_shards(read, text):
    assert read(Dataset.from_dict("d", {}), text).take().columns.num_rows == 0


def test_a_reader_without_payload_gives_none(dataset, read, text):
    assert read(dataset, text).take([0]).payload is None


GROUPS, GROUP_ROWS = 30, 20


class CountedGroups(GroupReader):
    """Decodes groups whose text lies in NumPy memory that tells when it is let go."""

    def __init__(self, groups):
        self.groups = groups
        self.live = self.peak = self.decoded = 0

    def read(self, shard, group):
        found = self.groups.read(shard, group)
        _, offsets, text = found.columns.column(0).buffers()
        memory = np.frombuffer(text, np.uint8).copy()
        weakref.finalize(memory, self.gone)
        self.live += 1
        self.decoded += 1
        self.peak = max(self.peak, self.live)
        buffers = [None, offsets, pa.py_buffer(memory)]
        column = pa.Array.from_buffers(TEXT, found.columns.num_rows, buffers)
        payload = TableRows(pa.table({"text": column})) if found.payload else None
        columns = pa.RecordBatch.from_arrays([column], names=["text"])
        return DecodedGroup(columns, found.faults, payload, found.bytes)

    def gone(self):
        self.live -= 1


@pytest.fixture
def counted(tmp_path, read, text, monkeypatch):
    table = pa.table({"text": [f"row {n}" for n in range(GROUPS * GROUP_ROWS)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=GROUP_ROWS)

    def make(**choices):
        rows = read(Dataset.from_path("d", tmp_path), text, limit_bytes=0, **choices)
        groups = CountedGroups(rows.reader._groups)
        monkeypatch.setattr(rows.reader, "_groups", groups)
        return rows, groups

    return make


@pytest.mark.parametrize("payload", [False, True])
@pytest.mark.parametrize("picked", [1, 4])
def test_few_rows_of_many_groups_hold_no_group(counted, payload, picked):
    rows, groups = counted(payload=payload)
    picks = np.arange(GROUPS * GROUP_ROWS).reshape(GROUPS, GROUP_ROWS)[:, 3 : 3 + picked].ravel()
    for request in (picks, np.random.default_rng(0).permutation(picks)):
        groups.peak = groups.decoded = 0
        taken = rows.take(request)
        assert groups.decoded >= GROUPS - 1  # the newest may still be in the cache
        assert groups.peak <= 2  # the one in the cache, and the one being read
        assert groups.live <= 1
        assert taken.columns.column(0).to_pylist() == [f"row {n}" for n in request]
        if payload:
            found = [taken.payload.row(i)["text"] for i in range(len(request))]
            assert found == [f"row {n}" for n in request]


def test_a_good_part_of_one_group_is_not_copied(counted):
    rows, groups = counted()
    taken = rows.take(range(5, 10))
    rows.cache.clear()
    assert groups.live == 1
    assert taken.columns.column(0).to_pylist() == [f"row {n}" for n in range(5, 10)]
    del taken
    assert groups.live == 0


def test_few_neighbours_of_one_group_are_copied(counted):
    rows, groups = counted()
    taken = rows.take(range(5, 9))
    rows.cache.clear()
    assert groups.live == 0
    assert taken.columns.column(0).to_pylist() == [f"row {n}" for n in range(5, 9)]


@pytest.mark.parametrize(("picked", "live"), [(9, 0), (10, 1)])
def test_whole_rows_hold_their_group_from_half_of_it_on(counted, picked, live):
    rows, groups = counted(payload=True)
    payload = rows.take(np.arange(GROUP_ROWS)[::2].tolist()[:picked]).payload
    rows.cache.clear()
    assert groups.live == live
    assert payload.row(1) == {"text": "row 2"}


def test_tasks_in_one_group_larger_than_the_cache_decode_it_once(counted):
    rows, groups = counted()
    for start in range(0, GROUP_ROWS, 2):
        rows.take([start, start + 1])
    assert groups.decoded == 1


def test_a_bad_row_deep_in_a_request_is_found_before_later_ones(read, text):
    bad = {
        key: InMemoryShard([{"text": "a"}, {"text": key if key % 2 else "b"}]) for key in range(9)
    }
    rows = read(Dataset.from_dict("d", bad), text)
    with pytest.raises(DataError, match=r"shard '7', row 1: .* got"):
        rows.take([0, 2, 15, 3, 11, 7])
