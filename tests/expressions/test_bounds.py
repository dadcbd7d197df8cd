"""Bounds prove that no row passes: never wrongly, and where they should."""

from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.expressions.known import row_filter
from zephon.errors import PlanError
from zephon.expressions import Statistics
from zephon.expressions.bounds import WholeTest
from zephon.expressions.taking_apart import test_of as taken_apart
from zephon.expressions.told import Told

NAN, INF = float("nan"), float("inf")
DAYS = [date(1969, 12, 31), date(2020, 2, 29), date(2024, 1, 1)]
TIMES = [datetime(1969, 12, 31, 23, 59, 59), datetime(2020, 2, 29), datetime(2024, 1, 1, 5)]
FLOATS = [NAN, INF, -INF, 0.0, -0.0, 0.1, 1.5, -3.0, 16777217.0]
WHOLE = [0, 1, 2, 5, 100, 127]
BIG = 2**53

# the values of a column, and the constants it is compared with
KINDS = {
    pa.int64(): ([*WHOLE, -3, BIG, BIG + 1, -BIG], [*WHOLE, -3, BIG, BIG + 1, 0.5, NAN, INF, None]),
    pa.int8(): ([*WHOLE, -3], [*WHOLE, -3, 300, -300, 0.5, None]),
    pa.uint64(): ([*WHOLE, BIG + 1, 2**64 - 1], [*WHOLE, -1, BIG, 0.5, 2**63 - 1, None]),
    pa.uint8(): ([*WHOLE, 255], [*WHOLE, -1, 256, 300, 0.5]),
    pa.float32(): (FLOATS, [*FLOATS, 1, 16777217, None]),
    pa.float64(): (FLOATS, [*FLOATS, 1, BIG + 1, None]),
    pa.bool_(): ([True, False], [True, False, None]),
    pa.large_string(): (
        ["", "a", "ab", "b", "größe", "木"],
        ["", "a", "aa", "b", "zz", "木", None],
    ),
    pa.large_binary(): ([b"", b"a", b"\xff"], [b"", b"a", b"b"]),
    pa.date32(): (DAYS, [*DAYS, *TIMES, None]),
    pa.timestamp("us"): (TIMES, [*DAYS, *TIMES, None]),
    pa.timestamp("s"): (TIMES, [*DAYS, *TIMES]),
    pa.timestamp("ms", "UTC"): (TIMES, [pl.lit(t).dt.replace_time_zone("UTC") for t in TIMES]),
    pa.decimal128(12, 2): (
        [Decimal("1.10"), Decimal("-3.25"), Decimal("0.00")],
        [Decimal("1.1"), Decimal("1.105"), 1, 0.5, 1.1],
    ),
}
SIGNS = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")


@st.composite
def cases(draw):
    """Draw a type, rows of two columns of it, and a predicate over these."""
    dtype = draw(st.sampled_from(list(KINDS)))
    values, constants = KINDS[dtype]
    some = st.lists(st.none() | st.sampled_from(values), min_size=1, max_size=4)
    left = draw(some)
    right = [draw(st.none() | st.sampled_from(values)) for _ in left]
    return dtype, (left, right), draw(predicates(dtype, constants))


def predicates(dtype, constants):
    column = st.sampled_from([pl.col("a"), pl.col("b")])
    constant = st.sampled_from(constants)
    literal = constant.map(lambda v: v if isinstance(v, pl.Expr) else pl.lit(v))
    sign = st.sampled_from(SIGNS)
    leaf = st.one_of(
        st.builds(lambda c, by, v: getattr(c, by)(v), column, sign, literal),
        st.builds(lambda c, by, v: getattr(v, by)(c), column, sign, literal),
        st.builds(
            lambda c, low, high, closed: c.is_between(low, high, closed),
            column, literal, literal, st.sampled_from(["both", "left", "right", "none"]),
        ),
        st.builds(lambda c: c.is_null(), column),
        st.builds(lambda c: c.is_not_null(), column),
        st.builds(lambda c, d: c < d, column, column),
        st.builds(lambda c, values: c.is_in(alike(values)), column, st.lists(constant, min_size=1)),
    )  # fmt: skip
    if pa.types.is_boolean(dtype):
        leaf |= column | column.map(lambda c: ~c)
    if pa.types.is_floating(dtype) or pa.types.is_integer(dtype):
        number = constant.filter(lambda value: isinstance(value, int | float))
        typed = st.builds(pl.lit, number, st.sampled_from([pl.Float32, pl.Float64]))
        leaf |= st.builds(lambda c, by, v: getattr(c, by)(v), column, sign, typed)
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            inner.map(lambda a: ~a),
            st.builds(pl.any_horizontal, inner, inner),
        ),
        max_leaves=4,
    )


def alike(values):
    """Leave only what can stand in one list."""
    kind = next((type(v) for v in values if v is not None and not isinstance(v, pl.Expr)), int)
    return [v for v in values if type(v) is kind] or [None]


def statistics(column):
    """Say of a column what a file says: bounds leave out nulls and NaN."""
    ordinary = [v for v in column.to_pylist() if v is not None and v == v]
    low, high = (min(ordinary), max(ordinary)) if ordinary else (None, None)
    bounds = [None if v is None else pa.scalar(v, column.type) for v in (low, high)]
    return Statistics(*bounds, column.null_count, len(column))


@settings(max_examples=150)
@given(cases(), st.booleans(), st.booleans())
def test_no_row_passes_where_bounds_say_so(case, without_low, without_nulls):
    dtype, (left, right), predicate = case
    try:
        chosen = row_filter(predicate, fields=(("a", dtype), ("b", dtype)))
    except (PlanError, OverflowError):
        assume(False)
    frame = pa.record_batch({"a": pa.array(left, dtype), "b": pa.array(right, dtype)})
    about = {name: statistics(frame.column(name)) for name in ("a", "b")}
    told = about["a"]
    about["a"] = Statistics(
        None if without_low else told.low,
        told.high,
        None if without_nulls else told.nulls,
        told.rows,
    )
    try:
        kept = chosen.keeps(frame)
    except Exception:  # a value that the predicate does not take is no kept row
        assume(False)
    other = {name: Statistics(None, None, None, told.rows) for name in about}
    found = chosen.may_keep([other, about, {}, about]).tolist()
    assert found == [chosen.may_keep([each])[0] for each in (other, about, {}, about)]
    if not found[1]:
        assert not kept.any()


def may(predicate, dtype, low, high, nulls=0, rows=9):
    chosen = row_filter(predicate, fields=(("a", dtype),))
    bounds = (None if v is None else pa.scalar(v, dtype) for v in (low, high))
    (found,) = chosen.may_keep([{"a": Statistics(*bounds, nulls, rows)}])
    return found


A, ZERO, FIVE, SEVEN = pl.col("a"), pl.lit(0), pl.lit(5), pl.lit(7)
NONE_OF_1_TO_5 = [
    A < 1, A <= 0, A > 5, A >= 6, A == 7, A == 0, ZERO >= A, FIVE < A, SEVEN <= A, SEVEN == A,
    A < 0.5, A > 5.5, A.is_in([0, 7]), A.is_between(6, 9), A.is_between(-3, 0), A.is_null(),
    A.is_between(5, 9, closed="none"), A.is_between(-3, 1, closed="left"),
    (A > 2) & (A > 5), (A < 1) | (A > 5), (A < 1).alias("x"), A < -(2**40),
]  # fmt: skip
SOME_OF_1_TO_5 = [
    A < 2, A <= 1, A > 4, A >= 5, A == 3, A != 3, A != 1, A.is_in([0, 3]), A.is_between(5, 9),
    A.is_between(2, 3, closed="none"), A.is_not_null(), (A > 2) & (A < 1) | (A > 4),
    A + 1 < 2, A * 0 > 5, ~(A > 5), pl.lit(None) < A,
]  # fmt: skip


@pytest.mark.parametrize("predicate", NONE_OF_1_TO_5, ids=str)
def test_what_is_beyond_the_bounds_is_proved(predicate):
    assert not may(predicate, pa.int32(), 1, 5)
    assert may(predicate, pa.int32(), None, None, None)


@pytest.mark.parametrize("predicate", SOME_OF_1_TO_5, ids=str)
def test_what_may_be_is_not_excluded(predicate):
    assert may(predicate, pa.int32(), 1, 5)


def test_nan_is_larger_than_every_bound_and_in_no_list():
    floats = pa.float32()
    for predicate in (A > 5, A >= 6, A != 1, A == NAN, A.is_in([7.0, NAN]), A.is_between(6, NAN)):
        assert may(predicate, floats, 1, 1), str(predicate)
        assert may(predicate, floats, None, None)
    for predicate in (A < 1, A == 7, A.is_in([7.0]), A.is_between(6, 9)):
        assert not may(predicate, floats, 1, 5), str(predicate)


def test_a_literal_is_converted_as_when_rows_are_compared():
    tenth = pa.scalar(0.1, pa.float32()).as_py()  # a little more than 0.1
    assert may(A == 0.1, pa.float32(), 0.1, 0.1)
    assert not may(pl.lit(0.1, pl.Float64) == A, pa.float32(), tenth, tenth)
    assert not may(pl.lit(date(2020, 1, 1)) > A, pa.timestamp("us"), TIMES[1], TIMES[2])


def test_comparisons_are_null_where_all_values_are():
    for predicate in (A > 5, A != 5, A == 5, A.is_in([5]), A.is_not_null()):
        assert not may(predicate, pa.int32(), None, None, nulls=9), str(predicate)
    assert may(A.is_null(), pa.int32(), None, None, nulls=9)
    assert not may(A, pa.bool_(), None, None, nulls=9)


def test_booleans_are_bounded_too():
    assert not may(A, pa.bool_(), False, False)
    assert not may(~A, pa.bool_(), True, True)
    assert may(A, pa.bool_(), False, True)
    assert may(~A, pa.bool_(), False, True)


def test_a_column_that_nobody_speaks_of_may_hold_anything():
    chosen = row_filter(A > 5, pl.col("b") > 5, fields=(("a", pa.int8()), ("b", pa.int8())))
    low = Statistics(pa.scalar(0, pa.int8()), pa.scalar(1, pa.int8()), 0, 3)
    assert chosen.may_keep([{}, {"b": low}, {"a": low}]).tolist() == [True, False, False]


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("dtype", [pa.int64(), pa.int8(), pa.uint64(), pa.uint8()], ids=str)
def test_whole_numbers_are_compared_as_polars_compares_them(dtype, sign):
    values, constants = KINDS[dtype]
    groups = [
        {"a": Statistics(low=pa.scalar(low, dtype), high=pa.scalar(high, dtype), nulls=0, rows=3)}
        for low in values
        for high in values
        if low <= high
    ]
    for constant in constants:
        if not isinstance(constant, int):
            continue
        predicate = row_filter(getattr(pl.col("a"), sign)(constant), fields=(("a", dtype),))
        test = taken_apart(predicate.predicates[0])
        assert isinstance(test, WholeTest)
        for some in (groups, groups[:1], [{}, *groups]):
            found, told = test.may_pass(Told(some)), test.otherwise.may_pass(Told(some))
            assert found.tolist() == told.tolist()
