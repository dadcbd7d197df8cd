import polars as pl
import pyarrow as pa

from tests.filters_by_hand import row_filter
from zephon.io.fields import Column
from zephon.io.spill.key import GroupKey

NUMBER = pa.int64()
FILE = ("/data/a.parquet", 10, 5)


def key(dtype=NUMBER, keep=None):
    return GroupKey(FILE, 0, 0, 3, (Column("k", "any", values=dtype),), None, keep)


def below(limit):
    return row_filter({"k": NUMBER}, pl.col("k") < limit)


def test_equal_filters_make_equal_keys():
    assert key(keep=below(1)) == key(keep=below(1))
    assert hash(key(keep=below(1))) == hash(key(keep=below(1)))
    assert len({key(), key(keep=below(1)), key(keep=below(2))}) == 3


def test_what_a_filter_left_does_not_last():
    assert key().lasts
    assert not key(keep=below(1)).lasts


def test_types_tell_files_apart():
    types = [
        NUMBER,
        pa.int32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        pa.struct({"a": pa.int64()}),
        pa.struct({"b": pa.int64()}),
    ]
    assert len({key(dtype) for dtype in types}) == len({key(t).digest for t in types}) == 6
    assert key().digest == key().digest
