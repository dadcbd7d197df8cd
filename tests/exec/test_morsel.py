"""Columns of lists as arrays that share their memory."""

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import ExecutionError
from zephon.exec.morsel import number_view, token_view
from zephon.io.fields import NUMBERS, TOKENS, Column


@pytest.mark.parametrize("kind", NUMBERS)
def test_values_have_the_kind_of_their_column(kind):
    column = pa.array([[1, 0], [], [1]], Column("n", kind).type)
    view = number_view(column)
    assert view.values.dtype == np.dtype(kind)
    assert view.values.tolist() == [1, 0, 1]
    assert view.offsets.tolist() == [0, 2, 2, 3]
    assert view.values.ctypes.data == column.values.buffers()[1].address
    assert not view.values.flags.writeable
    assert number_view(column.slice(1)).offsets.tolist() == [2, 2, 3]


def test_tokens_are_int32_and_nothing_is_null():
    assert token_view(pa.array([[1]], TOKENS)).values.dtype == np.int32
    with pytest.raises(ExecutionError, match="expected type large_list<item: int32>, got"):
        token_view(pa.array([[1]], pa.large_list(pa.int64())))
    with pytest.raises(ExecutionError, match="expected a large list, got string"):
        number_view(pa.array(["a"]))
    for nulls in ([[1], None], [[1, None]]):
        with pytest.raises(ExecutionError, match="are null, expected none"):
            number_view(pa.array(nulls, TOKENS))
