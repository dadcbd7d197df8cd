"""Rows as functions get them."""

from dataclasses import replace

import numpy as np
import pytest

from tests.exec.operators.morsels import morsel
from zephon.exec.operators.whole_rows import each_row


def each(rows, fields=(), masks=(), container="list"):
    return list(each_row(rows, fields, masks, container))


@pytest.mark.parametrize("count", [0, 3, 256, 257, 600])
def test_every_row_in_order(count):
    rows = morsel([{"n": n} for n in range(count)], ids=[[n] for n in range(count)])
    assert each(rows) == [{"n": n} for n in range(count)]
    assert each(rows, ("ids",)) == [{"n": n, "ids": [n]} for n in range(count)]


def test_columns_lie_over_the_row_and_others_stay_away():
    rows = morsel([{"ids": "below"}, "text"], ids=[[1, 2], [3]], more=[[4, 5], [6]])
    assert each(rows, ("ids", "gone"), ("mask",)) == [
        {"ids": [1, 2], "mask": [1, 1]},
        {"ids": [3], "mask": [1]},
    ]
    (first, _) = each(rows, ("ids",), container="np")
    assert first["ids"].dtype == np.int64
    first["ids"][:] = 0
    assert rows.columns.column("ids").to_pylist() == [[1, 2], [3]]


def test_without_whole_rows_each_is_a_dict_of_its_own():
    first, second = each(replace(morsel([1, 2]), payload=None))
    assert first == second == {}
    assert first is not second
