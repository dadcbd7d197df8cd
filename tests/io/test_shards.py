import copy
import hashlib
import pickle

import numpy as np
import pyarrow as pa
import pytest

from tests.written import lines, parquet
from zephon.io import Dataset, InMemoryShard
from zephon.io.shard import ListedBy, Shard
from zephon.io.shards import Shards


def described(name, groups, size=100):
    rows = np.array(groups, np.int64)
    return Shard(
        name=name, path=f"/d/{name}", rows=int(rows.sum()), bytes=size, decoded_bytes=2 * size,
        group_rows=rows, mtime_ns=7,
    )  # fmt: skip


@pytest.fixture
def shards():
    return Shards.of(
        [described("a", [2, 3]), described("b", []), described("c", [4], size=50)], directory="/d"
    )


def test_columns(shards):
    assert shards.names.to_pylist() == ["a", "b", "c"]
    assert shards.rows.tolist() == [5, 0, 4]
    assert shards.bytes.tolist() == [100, 100, 50]
    assert shards.decoded_bytes.tolist() == [200, 200, 100]
    assert shards.unit_counts().tolist() == [2, 0, 1]
    assert shards.group_rows.tolist() == [2, 3, 4]
    assert not shards.rows.flags.writeable
    assert not shards.group_rows.flags.writeable


def test_a_shard_is_made_when_it_is_asked_for(shards):
    found = shards[2]
    assert found == described("c", [4], size=50)
    assert (found.path, found.mtime_ns, found.decoded_bytes) == ("/d/c", 7, 100)
    assert found.group_rows.tolist() == [4]
    assert shards[np.int64(0)].group_rows.tolist() == [2, 3]
    assert shards[-1].name == "c"
    assert [shard.name for shard in shards] == ["a", "b", "c"]
    assert [shard.name for shard in shards[::-2]] == ["c", "a"]
    assert [shard.name for shard in reversed(shards)] == ["c", "b", "a"]
    assert described("b", []) in shards
    for beyond in (3, -4):
        with pytest.raises(IndexError, match=f"there are 3, got position {beyond}"):
            shards[beyond]


def test_equal_means_the_same_names_places_rows_and_bytes(shards):
    same = Shards.of(list(shards), directory="/d", listed_by=ListedBy("index.json", "d"))
    assert same == shards
    assert hash(same) == hash(shards)
    assert same[0] == shards[0]  # though it does not know when it was written
    assert same[0].mtime_ns == 0
    assert Shards.of(list(shards), directory="/e") != shards
    assert Shards.of(list(shards)[:2], directory="/d") != shards
    for other in (described("x", [4], 50), described("c", [3], 50), described("c", [4], 51)):
        assert Shards.of([*shards[:2], other], directory="/d") != shards
    assert shards != [*shards]


def test_the_digest_is_of_names_rows_and_bytes(shards):
    def numbers(*values):
        return np.array(values, "<i8").tobytes()

    whole = numbers(3) + numbers(1, 1, 1) + numbers(5, 0, 4) + numbers(100, 100, 50) + b"abc"
    assert shards.digest() == hashlib.sha256(whole).hexdigest()
    moved = Shards.of(list(shards), directory="/elsewhere")
    assert moved.digest() == shards.digest()
    other = Shards.of([*shards[:2], described("d", [4], 50)], directory="/d")
    assert other.digest() != shards.digest()


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_pickling_keeps_everything_that_is_known(tmp_path, kind):
    for number in range(3):
        rows = [{"text": "x" * n} for n in range(number * 5)]
        if kind == "parquet":
            parquet(tmp_path, f"{number}.parquet", pa.table({"text": [r["text"] for r in rows]}))
        else:
            lines(tmp_path, f"{number}.jsonl", rows)
    shards = Dataset.from_path("d", tmp_path).shards
    other = pickle.loads(pickle.dumps(shards))
    assert other == shards == copy.deepcopy(shards)
    assert not other.rows.flags.writeable
    for mine, its in zip(shards, other, strict=True):
        assert mine.mtime_ns == its.mtime_ns > 0
        assert mine.group_rows.tolist() == its.group_rows.tolist()
        assert mine.decoded_bytes == its.decoded_bytes
    if kind == "parquet":
        assert [shard.layout for shard in other] == [shard.layout for shard in shards]
    else:
        assert other[2].layout.offsets.tolist() == shards[2].layout.offsets.tolist()
        assert other[2].layout.opening == shards[2].layout.opening == b'{"text": ""}'


def test_rows_in_memory_have_no_path():
    rows = InMemoryShard([{"t": "a"}])
    shards = Dataset.from_dict("d", {4: rows, 2: InMemoryShard([])}).shards
    assert [shard.name for shard in shards] == ["2", "4"]
    assert [shard.path for shard in shards] == ["", ""]
    assert shards[1].memory is rows
    assert shards[1].identity is rows


def test_no_shard_at_all():
    shards = Shards.of([], directory="")
    assert list(shards) == []
    assert shards.group_rows.dtype == shards.rows.dtype == np.int64
    assert len(shards.digest()) == 64
    assert Dataset.from_dict("d", {}).max_count() == 0


def test_a_million_shards_are_columns_only():
    """Nothing is made for each of them: columns are shared, and one shard is a look-up."""
    count = 10**6
    many = np.full(count, 3, np.int64)
    shards = Shards(
        directory="/d",
        names=pa.array(np.char.zfill(np.arange(count).astype("U7"), 7), pa.large_string()),
        rows=many,
        bytes=many,
        decoded_bytes=many,
        group_starts=np.arange(count + 1),
        group_rows=many,
    )
    dataset = Dataset("d", "parquet", "/d", shards)
    assert np.shares_memory(dataset.counts(), many)
    assert np.shares_memory(dataset.raw_bytes(), many)
    assert np.shares_memory(dataset.group_sizes(), many)
    assert dataset.total() == 3 * count
    assert dataset.mean_row_bytes() == 1
    assert dataset.mean_group_bytes() == 3
    assert dataset.ids()[-1] == count - 1
    assert shards[999_999].name == "0999999"
