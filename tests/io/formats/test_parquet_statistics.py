from datetime import date, datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zephon.expressions import Statistics
from zephon.io.fields import Column
from zephon.io.formats.parquet_statistics import FooterStatistics


@pytest.fixture
def told(tmp_path):
    """Write one column, and give what its file says of it, as a type that may be wider."""

    def write(values, wanted=None, *, patch=None, path=None, **options):
        array = values if isinstance(values, pa.Array) else pa.array(values)
        path = path or tmp_path / "a.parquet"
        if options.pop("polars", False):
            pl.DataFrame({"x": array}).write_parquet(path, **options)
        else:
            pq.write_table(pa.table({"x": array}), path, **options)
        if patch:
            patch_footer(path, *patch)
        return of_file(path, wanted or array.type)

    return write


def of_file(path, wanted, name="x", group=0):
    footer = pq.read_metadata(path)
    column = Column(name, "any", values=wanted)
    schema = footer.schema.to_arrow_schema()
    (found,) = FooterStatistics(str(path), footer, schema, [column]).of([group])
    return found.get(name)


def patch_footer(path, old, new):
    """Change bytes of a footer, and nothing before it."""
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert len(old) == len(new)
    assert old in content[start:]
    path.write_bytes(content[:start] + content[start:].replace(old, new))


def bounds(statistics):
    low, high = statistics.low, statistics.high
    return (None if low is None else low.as_py(), None if high is None else high.as_py())


SURE = [
    (pa.array([3, -2, None], pa.int8()), None),
    (pa.array([3, -(2**63), 2**63 - 1]), None),
    (pa.array([1, 2**32 - 1, None], pa.uint32()), None),
    (pa.array([1, 2**64 - 1], pa.uint64()), None),
    (pa.array([1, 2**16 - 1], pa.uint16()), pa.int32()),
    (pa.array([7, -7], pa.int32()), pa.float64()),
    (pa.array([0.5, None, -1e300]), None),
    (pa.array([0.1, 2], pa.float32()), pa.float64()),
    (pa.array([True, False, None]), None),
    (pa.array(["b", "é", None, ""]), pa.large_string()),
    (pa.array(["b", "a", "b"]).dictionary_encode(), pa.large_string()),
    (pa.array([date(1960, 1, 1), None, date(2020, 2, 29)]), None),
    (pa.array([datetime(1960, 1, 1), datetime(2020, 1, 1)], pa.timestamp("us")), None),
    (pa.array([1, -1], pa.timestamp("ns", "Europe/Berlin")), None),
    (pa.array([1, 5], pa.timestamp("ms")), None),
]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(("array", "wanted"), SURE, ids=lambda x: str(getattr(x, "type", x)))
def test_bounds_and_nulls_of_what_was_written(told, array, wanted, version):
    found = told(array, wanted, data_page_version=version)
    dtype = wanted or array.type
    values = array.cast(pa.large_string()) if pa.types.is_dictionary(array.type) else array
    plain = values.drop_null().cast(dtype)
    order = pl.from_arrow(plain).arg_sort()  # as it is in filters
    assert (found.low, found.high) == (plain[order[0]], plain[order[-1]])
    assert found.low.type == found.high.type == dtype
    assert (found.nulls, found.rows) == (array.null_count, len(array))


@pytest.mark.parametrize("array", [array for array, wanted in SURE if wanted is None])
def test_polars_tells_the_same(told, array):
    assert told(array, polars=True) == told(array)


def test_a_file_without_statistics_says_nothing(told):
    assert told([1, 2], write_statistics=False) == Statistics(None, None, None, 2)


def test_a_column_of_nulls_has_no_bounds(told):
    assert told([None, None], pa.large_string()) == Statistics(None, None, 2, 2)
    assert told(pa.nulls(3, pa.int64())) == Statistics(None, None, 3, 3)


def test_a_column_that_is_not_there_is_null(tmp_path):
    pq.write_table(pa.table({"y": [1, 2]}), tmp_path / "a.parquet")
    assert of_file(tmp_path / "a.parquet", pa.int64()) == Statistics(None, None, 2, 2)


def test_each_row_group_speaks_for_itself(tmp_path):
    table = pa.table({"w": [{"x": 9, "y": [9]}] * 4, "x": [1, 2, 3, 4], "z": [9] * 4})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    found = [of_file(tmp_path / "a.parquet", pa.int64(), group=group) for group in range(2)]
    assert [bounds(group) for group in found] == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2, 3], pa.duration("us")),
        pa.array([1, 2, 3], pa.time64("us")),
        pa.array([b"a", b"\xff", b"b"]),
        pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(9, 2)),
        pa.array(np.array([1, 2, 3], np.float16)),
        pa.array([[1], [2], [3]]),
        pa.array([{"a": 1}, {"a": 2}, {"a": 3}]),
    ],
    ids=lambda array: str(array.type),
)
def test_types_whose_bounds_are_not_given(told, array):
    assert bounds(told(array)) == (None, None)


def test_timestamps_of_96_bits_have_no_bounds(told):
    array = pa.array([1, 2], pa.timestamp("ns"))
    found = told(array, use_deprecated_int96_timestamps=True)
    assert bounds(found) == (None, None)


def test_seconds_are_written_as_milliseconds_and_have_no_bounds_as_seconds(tmp_path):
    pq.write_table(pa.table({"x": pa.array([1, 2], pa.timestamp("s"))}), tmp_path / "a.parquet")
    assert of_file(tmp_path / "a.parquet", pa.timestamp("s")) is None
    assert of_file(tmp_path / "a.parquet", pa.timestamp("ms")).low.value == 1000


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([1, 2**60]), pa.int32()),
        (pa.array([1, 2**60]), pa.float64()),
        (pa.array([1, 2], pa.uint64()), pa.int64()),
        (pa.array([1.5, 2.5]), pa.float32()),
        (pa.array(["a", "b"]), pa.int64()),
        (pa.array([1, 2], pa.timestamp("ms")), pa.timestamp("us")),
        (pa.array([["a"]]), pa.large_list(pa.large_string())),
    ],
    ids=str,
)
def test_a_conversion_that_may_fail_is_left_out(told, array, wanted):
    assert told(array, wanted) is None


def test_not_a_number_is_no_bound(told):
    assert bounds(told([1.5, float("nan"), 2.5])) == (1.5, 2.5)
    assert bounds(told([float("nan")] * 2)) == (None, None)
    low, high, nan = (np.float64(x).tobytes() for x in (1.25, 2.75, np.nan))
    assert bounds(told([1.25, 2.75], patch=(high, nan))) == (None, None)
    assert bounds(told([1.25, 2.75], patch=(low, nan))) == (None, None)


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
def test_either_zero_stands_for_both(told, dtype):
    for zeros in ([0.0, 0.0], [-0.0, -0.0]):
        low, high = bounds(told(pa.array(zeros, dtype)))
        assert (str(low), str(high)) == ("-0.0", "0.0")


def test_bounds_that_contradict_each_other_are_none(told):
    low, high = (np.int64(x).tobytes() for x in (-123456789, 987654321))
    assert bounds(told([-123456789, 987654321], patch=(low, high))) == (987654321, 987654321)
    above = np.int64(987654322).tobytes()
    assert bounds(told([-123456789, 987654321], patch=(low, above))) == (None, None)


def test_a_bound_beyond_the_type_is_none(told):
    high = np.int32(120).tobytes()
    found = told(pa.array([-120, 120], pa.int8()), patch=(high, np.int32(1000).tobytes()))
    assert bounds(found) == (-120, None)


def test_a_bound_that_is_not_utf8_is_none(told):
    found = told(["aaaa", "zzzz"], pa.large_string(), patch=(b"zzzz", b"zzz\xff"))
    assert bounds(found) == (None, None)


def test_long_texts_have_bounds_where_the_writer_is_known_to_leave_them_whole(told):
    short, long = ["a", "z" * 31], ["a", "z" * 32]
    stranger = (b"parquet-cpp", b"parquet-xyz")
    assert bounds(told(long, pa.large_string())) == tuple(long)
    assert bounds(told(short, pa.large_string(), patch=stranger)) == tuple(short)
    assert bounds(told(long, pa.large_string(), patch=stranger)) == (None, None)
    assert bounds(told(["a", "z" * 5000], pa.large_string())) == (None, None)


def test_more_nulls_than_rows_are_not_believed(told):
    one, six = (np.int64(77).tobytes() + count for count in (b"\x16\x02", b"\x16\x0c"))
    assert told([77, 88, None]).nulls == 1
    found = told([77, 88, None], patch=(one, six))
    assert found == Statistics(None, None, None, 3)


def test_a_schema_that_is_not_the_footers_says_nothing(tmp_path):
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    other = pa.schema({"x": pa.int64(), "y": pa.int64()})
    wanted = [Column("x", "any", values=pa.int64())]
    assert FooterStatistics(str(path), pq.read_metadata(path), other, wanted).of([0]) == [{}]


def test_a_name_with_a_dot_is_a_column_or_a_field(tmp_path):
    table = pa.table({"a.b": [1, 2], "c": [{"d": 5}, {"d": 6}]})
    pq.write_table(table, tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    assert bounds(of_file(path, pa.int64(), "a.b")) == (1, 2)
    assert of_file(path, pa.int64(), "c.d") is None
