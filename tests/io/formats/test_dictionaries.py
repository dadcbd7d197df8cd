"""Numbers beyond a dictionary are found, however deep it lies."""

import numpy as np
import pyarrow as pa
import pytest

from zephon.io.formats.dictionaries import check_dictionaries


def numbered(*numbers, size=2):
    """A dictionary column with numbers that nobody looked at."""
    indices = pa.array(numbers, pa.int32())
    values = pa.array([f"{n}" for n in range(size)], pa.string())
    return pa.DictionaryArray.from_arrays(indices, values, safe=False)


def columns(inner):
    rows = len(inner)
    yield inner
    yield pa.chunked_array([numbered(0, 1), inner])
    yield pa.StructArray.from_arrays([pa.array(range(rows)), inner], ["n", "d"])
    yield pa.ListArray.from_arrays(pa.array(np.arange(rows + 1), pa.int32()), inner)
    yield pa.LargeListArray.from_arrays(pa.array([0, rows]), inner)
    keys = pa.array([f"{n}" for n in range(rows)])
    yield pa.MapArray.from_arrays(pa.array(np.arange(rows + 1), pa.int32()), keys, inner)


@pytest.mark.parametrize("numbers", [(0, 2), (0, -1), (1, 0, 99)])
def test_a_number_beyond_its_dictionary(numbers):
    for column in columns(numbered(*numbers)):
        with pytest.raises(ValueError, match="column 'd' has a value beyond the 2 of its dict"):
            check_dictionaries(pa.table({"n": pa.nulls(len(column)), "d": column}))


def test_good_numbers_and_nulls():
    for column in columns(numbered(0, None, 1, 1)):
        check_dictionaries(pa.table({"d": column}))
    check_dictionaries(pa.table({"d": numbered(None, size=0), "e": numbered(None, size=0)}))
    check_dictionaries(pa.table({"n": [1, 2]}))
    check_dictionaries(pa.table({}))
