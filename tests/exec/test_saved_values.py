"""Integers as text: they come back as they were, and text that is damaged is refused."""

import base64
import json

import numpy as np
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from zephon.exec.saved_values import pack, unpack

INT64 = np.iinfo(np.int64)


@settings(max_examples=200, deadline=None)
@given(arrays(np.int64, st.integers(0, 60), elements=st.integers(INT64.min, INT64.max)))
def test_integers_come_back_as_they_were(values):
    text = pack(values)
    assert json.loads(json.dumps(text)) == text
    found = unpack(text)
    assert found.dtype == np.int64
    assert found.tolist() == values.tolist()


@given(st.lists(st.booleans()), st.sampled_from(["?", "i1", "i2", "i4", "u1", "u4"]))
def test_narrower_types_and_booleans_come_back_as_numbers(values, kind):
    assert unpack(pack(np.array(values, kind))).tolist() == [int(v) for v in values]


def test_what_grows_evenly_is_stored_narrow():
    assert pack(np.arange(10**12, 10**12 + 5)).startswith("di8:")
    assert pack(np.arange(100)).startswith("di1:")
    assert len(pack(np.arange(100_000))) < 200


def test_what_jumps_about_is_stored_as_it_is():
    values = np.random.default_rng(3).integers(0, 100, 5000)
    assert pack(values).startswith("vi1:")
    assert pack(np.sort(values)).startswith("di1:")
    assert unpack(pack(values)).tolist() == values.tolist()


@pytest.mark.parametrize(
    "text", ["", "di1", "di3:AAAA", "di1:!!", "vi1:AAAA", "df8:", ":", "i8:KLUv/Q", "vi8:KLUv/Q"]
)
def test_text_that_holds_no_integers_is_refused(text):
    with pytest.raises(ValueError, match=r"\S"):
        unpack(text)


def test_a_column_cut_in_the_middle_of_a_number_is_refused():
    half = base64.b64encode(zstd.compress(b"\x01\x02\x03")).decode()
    with pytest.raises(ValueError, match="reshape"):
        unpack(f"di2:{half}")
