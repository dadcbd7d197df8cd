import numpy as np
import pyarrow as pa
import pytest

from zephon.io.frames import joined_values, picked_values

COLUMNS = [
    pa.array([1, None, 3, 4, 5, 6, 7, 8]),
    pa.array(["a", None, "", "d", "e", "f", "g", "h"], pa.large_string()),
    pa.array([[1], None, [], [None], [5], [6], [7], [8]], pa.large_list(pa.int64())),
    pa.array([{"x": 1}, None, {"x": None}] + [{"x": 4}] * 5),
    pa.nulls(8),
]


@pytest.mark.parametrize("rows", [[1], [2, 3, 4], [0, 1, 2, 3, 4, 5, 6, 7], [7, 0, 0, 3], [4, 3]])
def test_rows_of_columns_of_any_type(rows):
    found = picked_values(COLUMNS, np.array(rows))
    assert [column.type for column in found] == [column.type for column in COLUMNS]
    expected = [[column[row].as_py() for row in rows] for column in COLUMNS]
    assert [column.to_pylist() for column in found] == expected


def test_a_good_part_is_a_slice_and_a_small_one_a_copy():
    address = COLUMNS[0].buffers()[1].address
    part, few = (picked_values(COLUMNS, np.array(rows))[0] for rows in ([2, 3], [2]))
    assert part.buffers()[1].address == address
    assert few.buffers()[1].address != address


def test_columns_are_joined_and_put_in_order():
    for column in COLUMNS:
        pieces = [column.slice(4), column.slice(0, 2)]
        plain = column.to_pylist()
        assert joined_values(pieces, None, column.type).to_pylist() == plain[4:] + plain[:2]
        back = joined_values(pieces, np.array([4, 5, 0]), column.type)
        assert back.to_pylist() == [*plain[:2], plain[4]]
        assert joined_values([], None, column.type).type == column.type


def test_no_columns():
    assert picked_values([], np.array([1])) == []
