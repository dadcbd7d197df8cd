"""One group as a file: its digest is that of its bytes, and its mapping counts for something."""

import pyarrow as pa
import pytest

from tests.io.spill.test_spill import group, key
from zephon.io.fields import NUMBERS, Column
from zephon.io.formats.format import DecodedGroup
from zephon.io.group_cache import GroupCache
from zephon.io.spill.file import (
    LEAST_MAPPED_BYTES,
    layout_of,
    mapped,
    packed,
    unpacked,
    write,
)
from zephon.io.spill.key import GroupKey


def map_again(path):
    """Map a written group both ways: as one that is seen first, and by its layout."""
    buffer = mapped(str(path), path.stat().st_size)
    first = unpacked(key(), buffer)
    return first, layout_of(key(), first, buffer).over(buffer)


def test_a_mapping_counts_for_its_bytes_and_a_small_one_for_more(tmp_path):
    whole = group()
    small = DecodedGroup(whole.columns.slice(0, 3), (), None, 1)
    write(str(tmp_path / "small"), packed(key(), small))
    assert (tmp_path / "small").stat().st_size < LEAST_MAPPED_BYTES
    assert [each.bytes for each in map_again(tmp_path / "small")] == [LEAST_MAPPED_BYTES] * 2
    long = whole.columns.take([1] * 20_000)
    write(str(tmp_path / "long"), packed(key(), DecodedGroup(long, (), None, 1)))
    size = (tmp_path / "long").stat().st_size
    assert size > LEAST_MAPPED_BYTES
    assert [each.bytes for each in map_again(tmp_path / "long")] == [size] * 2


def test_a_cache_holds_only_so_many_mappings(tmp_path):
    small = DecodedGroup(group().columns.slice(0, 3), (), None, 1)
    write(str(tmp_path / "small"), packed(key(), small))
    cache = GroupCache(10 * LEAST_MAPPED_BYTES)
    for number in range(50):
        cache.get(number, lambda: map_again(tmp_path / "small")[1], lambda found: found.bytes)
    assert cache.counts().groups == 10


@pytest.mark.parametrize("kind", NUMBERS)
def test_lists_of_any_numbers_come_back(kind, tmp_path):
    columns = (Column("n", kind),)
    rows = pa.array([[1, 0], [], [1]], columns[0].type)
    batch = pa.RecordBatch.from_arrays([rows], names=["n"])
    about = GroupKey(("/data/a.parquet", 1, 1), 0, 0, 3, columns, None)
    write(str(tmp_path / "n"), packed(about, DecodedGroup(batch, (), None, 1)))
    buffer = mapped(str(tmp_path / "n"), (tmp_path / "n").stat().st_size)
    first = unpacked(about, buffer)
    again = layout_of(about, first, buffer).over(buffer)
    assert first.columns.equals(batch)
    assert again.columns.equals(batch)
    again.columns.validate(full=True)


def test_columns_of_any_type_come_back(tmp_path):
    types = [pa.int64(), pa.large_string(), pa.large_list(pa.int8()), pa.bool_(), pa.date32()]
    columns = tuple(Column(str(dtype), "any", values=dtype) for dtype in types)
    values = [[1, None, 3], ["a", None, "c"], [[1], None, [None]], [True, None, False]]
    arrays = [pa.array(v, t) for v, t in zip([*values, [None] * 3], types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, names=[column.path for column in columns])
    about = GroupKey(("/data/a.parquet", 1, 1), 0, 0, 3, columns, None)
    write(str(tmp_path / "n"), packed(about, DecodedGroup(batch, (), None, 1)))
    buffer = mapped(str(tmp_path / "n"), (tmp_path / "n").stat().st_size)
    found = unpacked(about, buffer)
    assert found.columns.equals(batch)
    assert layout_of(about, found, buffer) is None
