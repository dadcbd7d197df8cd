"""Values that stay: equal copies that share nothing with them."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from zephon.exec.fingerprint import digest
from zephon.exec.lasting import Lasting

PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner)
)


def emptied(value):
    """Take everything out of a value, from the inside."""
    if isinstance(value, dict | list):
        for each in list(value.values() if isinstance(value, dict) else value):
            emptied(each)
        value.clear()


@given(st.lists(VALUES, max_size=4) | st.dictionaries(st.text(max_size=2), VALUES))
def test_who_changes_a_copy_changes_no_other(value):
    before = copy.deepcopy(value)
    lasting = Lasting(value)
    first = lasting.copy()
    assert first == before
    emptied(first)
    assert lasting.copy() == before
    assert lasting.digest == digest(before)


def test_rows_of_plain_values_are_copied_each():
    lasting = Lasting({"shards": [["a", 1], ["b", 2]], "one": [["c", [3]]]})
    first = lasting.copy()
    first["shards"][0].append(9)
    first["one"][0][1].append(9)
    assert lasting.copy() == {"shards": [["a", 1], ["b", 2]], "one": [["c", [3]]]}
