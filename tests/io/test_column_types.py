from itertools import combinations, permutations

import pyarrow as pa
import pytest

from zephon.io.column_types import joined, joined_all, may_become, plain

TYPES = [
    pa.null(), pa.bool_(), pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.float16(),
    pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal128(12, 4), pa.decimal128(38, 1),
    pa.decimal256(70, 40), pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
    pa.binary(), pa.binary(4), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"),
    pa.duration("ms"), pa.timestamp("ms"), pa.timestamp("us", "UTC"),
    pa.timestamp("us", "Europe/Berlin"), pa.list_(pa.null()), pa.list_(pa.int8(), 3),
    pa.list_view(pa.float32()), pa.map_(pa.string(), pa.int8()),
    pa.struct([("b", pa.int8()), ("a", pa.null())]),
    pa.struct([("b", pa.float32()), ("c", pa.int8())]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.uint64(), pa.int8(), pa.int64()),
        (pa.int8(), pa.float32(), pa.float64()),
        (pa.float32(), pa.float16(), pa.float32()),
        (pa.null(), pa.string(), pa.large_string()),
        (pa.string(), pa.dictionary(pa.int8(), pa.string_view()), pa.large_string()),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), pa.decimal128(12, 4)),
        (pa.decimal128(10, 2), pa.int8(), pa.decimal128(22, 2)),
        (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("s", "UTC"), pa.timestamp("s", "Asia/Tokyo"), pa.timestamp("s", "UTC")),
        (pa.list_(pa.null()), pa.list_(pa.int8(), 2), pa.large_list(pa.int8())),
        (
            pa.struct([("b", pa.int8()), ("a", pa.string())]),
            pa.struct([("b", pa.int16())]),
            pa.struct([("a", pa.large_string()), ("b", pa.int16())]),
        ),
        (pa.int8(), pa.string(), None),
        (pa.bool_(), pa.int8(), None),
        (pa.string(), pa.binary(), None),
        (pa.float64(), pa.decimal128(3, 1), None),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
        (pa.date32(), pa.timestamp("us"), None),
        (pa.list_(pa.int8()), pa.list_(pa.string()), None),
    ],
)
def test_what_holds_two_types(first, second, both):
    assert joined(first, second) == joined(second, first) == both


def test_the_order_does_not_matter_and_each_may_become_the_joined():
    for some in combinations(TYPES, 3):
        found = joined_all(some)
        assert {joined_all(order) for order in permutations(some)} == {found}, some
        assert found is None or all(may_become(dtype, found) for dtype in some), some


def test_plain_types_are_their_own_plain_type():
    for dtype in TYPES:
        assert plain(plain(dtype)) == plain(dtype)
        assert may_become(dtype, plain(dtype))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int8(), pa.large_string()),
        (pa.large_string(), pa.int8()),
        (pa.bool_(), pa.int8()),
        (pa.float64(), pa.decimal128(3, 1)),
        (pa.date32(), pa.timestamp("us", "UTC")),
        (pa.struct([("a", pa.int8()), ("b", pa.int8())]), pa.struct([("a", pa.int8())])),
    ],
)
def test_what_may_not_become(found, wanted):
    assert not may_become(found, wanted)
    assert not may_become(pa.list_(found), pa.large_list(wanted))
