import json
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.filters_by_hand import frame_of, row_filter
from zephon.errors import DataError, PlanError, ShardError
from zephon.io import Dataset, InMemoryShard
from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.read_counts import ReadCounts
from zephon.io.reader import RowReader

TEXT = Column("text", "text")
TYPES = {"k": pa.int64(), "text": pa.large_string()}


class Filtered:
    """Reads the rows of a dataset that pass."""

    def __init__(self, dataset, *predicates, columns=(TEXT,), types=TYPES, payload=False, **how):
        self.cache = how.pop("cache", None) or GroupCache(1 << 30)
        self.keep = row_filter(types, *predicates) if predicates else None
        read = types if self.keep is None else {name: types[name] for name in self.keep.reads}
        self.reader = RowReader(
            dataset,
            columns,
            payload=payload,
            cache=self.cache,
            keep=self.keep,
            frame=frame_of({**read, **how.pop("frame", {})}),
        )
        counts = dataset.counts()
        self.shards = np.repeat(np.arange(len(counts)), counts)
        self.rows = np.concatenate([np.arange(count) for count in counts])

    def take(self, picks=None, **how):
        picks = np.arange(len(self.rows)) if picks is None else np.asarray(picks, np.int64)
        return self.reader.take(self.shards[picks], self.rows[picks], **how)


def rows_of(count):
    return [{"k": number, "text": f"row {number}"} for number in range(count)]


@pytest.fixture(params=["parquet", "jsonl", "in_memory"])
def dataset(request, tmp_path):
    """20 rows in two shards; Parquet in row groups of 4."""
    return made(request.param, [rows_of(20)[:13], rows_of(20)[13:]], tmp_path)


def made(kind, shards, path):
    if kind == "in_memory":
        return Dataset.from_dict("d", {key: InMemoryShard(rows) for key, rows in enumerate(shards)})
    for key, rows in enumerate(shards):
        if kind == "jsonl":
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (path / f"{key}.jsonl").write_text(lines)
        else:
            pq.write_table(pa.Table.from_pylist(rows), path / f"{key}.parquet", row_group_size=4)
    return Dataset.from_path("d", path)


def test_rows_that_pass_are_given_in_order(dataset):
    taken = Filtered(dataset, pl.col("k") % 3 == 1).take([15, 4, 4, 2, 1, 19, 16])
    assert taken.kept.tolist() == [1, 2, 4, 5, 6]
    assert taken.columns.column("text").to_pylist() == [f"row {n}" for n in (4, 4, 1, 19, 16)]
    assert taken.frame.to_pydict() == {"k": [4, 4, 1, 19, 16]}
    assert taken.frame.schema.types == [pa.int64()]
    assert (taken.payload, taken.faults) == (None, {})


def test_whole_rows_are_those_that_pass(dataset):
    taken = Filtered(dataset, pl.col("k") % 3 == 1, payload=True).take([15, 4, 1, 16])
    assert [dict(row) for row in taken.payload.rows()] == [rows_of(20)[n] for n in (4, 1, 16)]


def test_a_filter_may_look_at_a_column_that_is_read_as_text_too(dataset):
    taken = Filtered(dataset, pl.col("text").str.ends_with("7")).take()
    assert taken.columns.column("text").to_pylist() == ["row 7", "row 17"]
    assert taken.frame.column("text").to_pylist() == ["row 7", "row 17"]


def test_columns_of_the_frame_that_no_filter_looks_at(dataset):
    taken = Filtered(dataset, pl.col("k") > 17, frame={"text": pa.large_string()}).take()
    assert taken.frame.to_pylist() == rows_of(20)[18:]


def test_a_frame_without_a_filter(dataset):
    taken = Filtered(dataset).take([19, 0])
    assert taken.kept.tolist() == [0, 1]
    assert taken.frame.to_pylist() == [rows_of(20)[19], rows_of(20)[0]]
    assert taken.columns.to_pylist() == [{"text": "row 19"}, {"text": "row 0"}]


def test_no_row_passes(dataset):
    taken = Filtered(dataset, pl.col("k") < 0, payload=True).take([3, 4])
    assert (len(taken.kept), taken.columns.num_rows, taken.frame.num_rows) == (0, 0, 0)
    assert taken.columns.schema.types == [pa.large_string()]
    assert len(taken.payload) == 0


def test_a_filter_that_reads_nothing(dataset):
    assert Filtered(dataset, pl.lit(True)).take().columns.num_rows == 20
    assert Filtered(dataset, pl.lit(False)).take().columns.num_rows == 0


def test_a_filter_without_anything_to_read(dataset):
    taken = Filtered(dataset, pl.col("k") > 17, columns=()).take()
    assert (taken.kept.tolist(), taken.columns.num_rows) == ([18, 19], 2)


def test_a_filter_looks_at_columns_of_the_frame(dataset):
    keep = row_filter(TYPES, pl.col("k") > 1)
    with pytest.raises(PlanError, match="filter: the frame must hold what it reads, got none of k"):
        RowReader(dataset, (), payload=False, cache=GroupCache(0), keep=keep)


def test_an_absent_value_is_null_and_null_does_not_pass(tmp_path):
    rows = [{"text": "a"}, {"k": None, "text": "b"}, {"k": 1, "text": "c"}]
    for kind in ("jsonl", "in_memory"):
        found = Filtered(made(kind, [rows], tmp_path), pl.col("k") < 5).take()
        assert found.kept.tolist() == [2]


BAD = [
    {"k": 0, "text": "a"},
    {"k": 1, "text": None},
    {"k": 2, "text": "b"},
    {"k": 3, "text": None},
]


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
def test_a_bad_row_that_does_not_pass_never_raises(kind, tmp_path):
    data = made(kind, [BAD], tmp_path)
    taken = Filtered(data, pl.col("k") % 2 == 0).take()
    assert taken.columns.column("text").to_pylist() == ["a", "b"]
    with pytest.raises(DataError, match=r"dataset 'd', shard '0\S*', row 3.*'text' must be text"):
        Filtered(data, pl.col("k") >= 2).take()


@pytest.mark.parametrize("payload", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
def test_bad_rows_may_be_told_of_beside_the_others(kind, payload, tmp_path):
    """In the words of a reader without a filter."""
    data = made(kind, [BAD], tmp_path)
    taken = Filtered(data, pl.col("k") > 0, payload=payload).take([3, 0, 2, 1], late_faults=True)
    assert taken.kept.tolist() == [0, 2, 3]
    assert list(taken.faults) == [0, 2]
    for place, row in ((0, 3), (2, 1)):
        with pytest.raises(DataError) as raised:
            Filtered(data, payload=payload).take([row])
        assert taken.faults[place].why == str(raised.value)


def test_a_row_that_is_bad_in_a_column_of_the_filter_passes(tmp_path):
    rows = [{"k": 5, "text": "a"}, {"k": "five", "text": "b"}, {"k": 7, "text": None}]
    for kind in ("jsonl", "in_memory"):
        taken = Filtered(made(kind, [rows], tmp_path), pl.col("k") < 6).take(late_faults=True)
        assert taken.kept.tolist() == [0, 1]
        assert list(taken.faults) == [1]
        assert "'k' must be a value of type int64" in taken.faults[1].why


@pytest.mark.parametrize("kind", ["jsonl", "in_memory"])
def test_a_bad_row_that_another_predicate_drops_is_not_bad(kind, tmp_path):
    """Whatever the order of the predicates, and whether the filter raises for another row."""
    rows = [
        {"j": "1", "k": 1},
        {"j": "2", "k": "two"},
        {"j": "9", "k": "nine"},
        {"j": 5, "k": 9},
        {"j": 5, "k": 5},
        {"j": "3", "k": 3},
    ]
    data, types = made(kind, [rows], tmp_path), {"j": pa.large_string(), "k": pa.int64()}
    predicates = [pl.col("j").str.to_integer(strict=True) < 8, pl.col("k") < 8]
    for some in (predicates, predicates[::-1]):
        one = Filtered(data, *some, types=types, columns=())
        taken = one.take(late_faults=True)
        assert taken.kept.tolist() == [0, 1, 4, 5]
        assert list(taken.faults) == [1, 2]
    rows[5]["j"] = "three"
    data = made(kind, [rows], tmp_path)
    taken = Filtered(data, *predicates, types=types, columns=()).take(late_faults=True)
    assert taken.kept.tolist() == [0, 1, 4, 5]
    assert list(taken.faults) == [1, 2, 3]


def test_a_text_that_is_not_utf8_is_bad_for_the_filter_too(tmp_path):
    text = pa.array([b"a", b"\xff", b"b"]).view(pa.string())
    table = pa.table({"k": [1, 2, 3], "text": text})
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=False)
    data = Dataset.from_path("d", tmp_path)
    for columns in ((), (TEXT,)):
        one = Filtered(data, pl.col("text") == "b", columns=columns)
        assert one.take([0, 2]).kept.tolist() == [1]
        with pytest.raises(DataError, match="row 1: field 'text' must be"):
            one.take()


@pytest.mark.parametrize("kind", ["jsonl", "in_memory"])
def test_a_good_value_beside_a_bad_one_is_known(kind, tmp_path):
    """Also where only whole rows, or columns that no predicate reads, make the row bad."""
    rows = [{"k": 1, "text": 5}, {"k": 9, "text": 6}, {"k": 9, "text": "b"}]
    data = made(kind, [rows], tmp_path)
    one = Filtered(data, pl.col("k") > 5, frame={"text": pa.large_string()}, payload=True)
    taken = one.take(late_faults=True)
    assert taken.kept.tolist() == [1, 2]
    assert {place: fault.unknown for place, fault in taken.faults.items()} == {0: {"text"}}
    assert taken.frame.to_pydict() == {"k": [9, 9], "text": [None, "b"]}
    both = Filtered(data, pl.col("text") == "x", pl.col("k") < 5).take(late_faults=True)
    assert both.kept.tolist() == [0]


def test_a_line_that_is_bad_elsewhere_is_known_to_a_filter(tmp_path):
    lines = (b'{"k": 1, "text": "a", "x": "\xff"}', b'{"k": 9, "text": "b", "x": "\xff"}')
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    one = Filtered(Dataset.from_path("d", tmp_path), pl.col("k") > 5, payload=True)
    taken = one.take(late_faults=True)
    assert taken.kept.tolist() == [1]
    assert taken.faults[0].why.startswith(
        "dataset 'd', shard 'a.jsonl', row 1 (line 2, byte 32): a line must be UTF-8"
    )
    assert taken.faults[0].unknown == frozenset()


def test_a_line_that_is_no_json_passes_and_raises(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"k": 9, "text": "a"}\n{"k": 1,\n{"k": 2, "text": "b"}\n')
    one = Filtered(Dataset.from_path("d", tmp_path), pl.col("k") < 5)
    assert one.take([0, 2]).kept.tolist() == [1]
    with pytest.raises(DataError, match=r"row 1 \(line 2, byte 22\): a line must be one JSON"):
        one.take()


DIVIDED = pl.col("text").str.to_integer(strict=True) > 3


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
def test_a_filter_that_raises_spoils_the_rows_it_raises_for(kind, tmp_path):
    rows = [{"k": 0, "text": text} for text in ("1", "5", "five", "7", "x", "2")]
    one = Filtered(made(kind, [rows], tmp_path), DIVIDED, payload=True)
    taken = one.take([5, 3, 1, 0, 3])
    assert taken.kept.tolist() == [1, 2, 4]
    assert [row["text"] for row in taken.payload.rows()] == ["7", "5", "7"]
    taken = one.take([4, 5, 1, 2], late_faults=True)
    assert taken.kept.tolist() == [0, 2, 3]
    assert list(taken.faults) == [0, 2]
    assert taken.faults[0].step == "filter"
    with pytest.raises(DataError, match=r"^filter: col\(\"text\"\).* raised .* on ") as raised:
        one.take([1, 2, 4])
    assert taken.faults[2].why in str(raised.value)
    ways_out = "mend or remove the row, or filter it out before, or pass on_error='skip' or .*"
    assert re.search(f"row 2; {ways_out} to its dataset$", str(raised.value))
    assert "\n" not in str(raised.value)


def test_statistics_spare_row_groups(tmp_path):
    one = Filtered(made("parquet", [rows_of(16), rows_of(6)], tmp_path), pl.col("k") >= 13)
    assert one.take().columns.column("text").to_pylist() == ["row 13", "row 14", "row 15"]
    found = one.reader.counts()
    assert (found.read, found.skipped, found.emptied) == (1, 5, 0)
    one.take()
    assert one.reader.counts() == found


def test_values_that_may_be_bad_are_looked_at_unless_another_predicate_drops_them(tmp_path):
    rows = [{"j": number, "k": 2**40 * (number % 2), "text": ""} for number in range(8)]
    types = {"j": pa.int64(), "k": pa.int32()}
    data = made("parquet", [rows], tmp_path)
    one = Filtered(data, pl.col("k") < 0, types=types)
    assert one.take([0, 2, 4]).columns.num_rows == 0
    assert one.reader.counts().skipped == 0
    with pytest.raises(DataError, match="row 1: field 'k' must be a value of type int32"):
        one.take()
    both = Filtered(data, pl.col("k") < 0, pl.col("j") > 9, types=types)
    assert both.take().columns.num_rows == 0
    assert both.reader.counts() == ReadCounts(skipped=2)
    together = Filtered(data, (pl.col("k") < 0) & (pl.col("j") > 9), types=types)
    with pytest.raises(DataError, match="row 1: field 'k'"):
        together.take()


def test_other_columns_are_read_only_where_a_row_passes(tmp_path):
    rows = [{"k": number, "text": "x" * 5000} for number in range(16)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=4, write_statistics=False)
    data = Dataset.from_path("d", tmp_path)
    one = Filtered(data, pl.col("k") == 5, payload=True)
    assert one.take().kept.tolist() == [5]
    found = one.reader.counts()
    assert (found.read, found.skipped, found.emptied) == (4, 0, 3)
    everything = Filtered(data, payload=True)
    everything.take()
    counts = everything.reader.counts()
    assert counts.read == 4
    assert 1 < counts.bytes / found.bytes < 4.2


def test_skipped_and_emptied_groups_are_remembered(tmp_path):
    one = Filtered(made("parquet", [rows_of(8)], tmp_path), pl.col("k") < 0)
    one.take()
    assert one.reader.counts() == ReadCounts(skipped=2)
    assert one.cache.counts().groups == 0  # that nothing is left costs no entry
    one.take()
    assert one.reader.counts() == ReadCounts(skipped=2)


def test_a_file_that_changed_is_refused_where_nothing_of_it_is_read(tmp_path):
    one = Filtered(made("parquet", [rows_of(12)], tmp_path), pl.col("k") < 0)
    one.take([0, 1])
    (tmp_path / "0.parquet").write_bytes(b"")
    assert one.take([2, 3]).columns.num_rows == 0  # of what is known already
    for _ in range(2):
        with pytest.raises(ShardError, match="the file must stay as it was"):
            one.take([2, 4])


def test_many_row_groups_of_many_shards_are_told_apart(tmp_path):
    shards = [[{"k": number * (key + 1), "text": ""} for number in range(150)] for key in range(3)]
    for key, rows in enumerate(shards):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{key}.parquet", row_group_size=1)
    one = Filtered(Dataset.from_path("d", tmp_path), pl.col("k") == 140)
    picks = np.random.default_rng(0).permutation(450)
    taken = one.take(picks)
    assert sorted(picks[taken.kept].tolist()) == [140, 220]  # 2 * 70; no 3 * n is 140
    assert one.reader.counts().skipped == 448
    one.take(picks[:200])
    assert one.reader.counts().skipped == 448


@pytest.mark.parametrize("payload", [False, True])
def test_only_rows_that_pass_are_held(payload, tmp_path):
    rows = [{"k": number, "text": "x" * 1000} for number in range(1000)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    one = Filtered(Dataset.from_path("d", tmp_path), pl.col("k") % 100 == 0, payload=payload)
    before = pa.total_allocated_bytes()
    one.take([0])
    assert pa.total_allocated_bytes() - before < 100_000
    assert one.cache.counts().bytes < 100_000


def test_filters_and_frames_do_not_share_groups(dataset):
    cache = GroupCache(1 << 30)
    first = Filtered(dataset, pl.col("k") < 2, cache=cache)
    second = Filtered(dataset, pl.col("k") < 3, cache=cache)
    same = Filtered(dataset, pl.col("k") < 2, cache=cache)
    plain = Filtered(dataset, cache=cache)
    assert [one.take([0, 1, 2]).columns.num_rows for one in (first, second, plain)] == [2, 3, 3]
    misses = cache.counts().misses
    assert same.take([0, 1, 2]).columns.num_rows == 2
    assert cache.counts().misses == misses


def test_a_column_that_a_shard_does_not_have_is_null(tmp_path):
    pq.write_table(pa.table({"k": [1, 2], "text": ["a", "b"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["c", "d"]}), tmp_path / "b.parquet")
    data = Dataset.from_path("d", tmp_path)
    assert Filtered(data, pl.col("k") > 1).take().kept.tolist() == [1]
    assert Filtered(data, pl.col("k").is_null()).take().kept.tolist() == [2, 3]
