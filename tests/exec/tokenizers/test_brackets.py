"""Brackets, cuts and padding against loops that are slow and obvious."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zephon.exec.tokenizers.brackets import bracket, cut, pad
from zephon.exec.tokenizers.encoder import Encoded, offsets_of

documents = st.lists(st.lists(st.integers(0, 99), max_size=12), max_size=10)
few_ids = st.lists(st.integers(100, 109), max_size=3).map(tuple)


def encoded(rows: list[list[int]]) -> Encoded:
    values = np.array([token for row in rows for token in row], np.int32)
    return Encoded(values, offsets_of(np.array([len(row) for row in rows], np.int64)))


def rows_of(made: Encoded) -> list[list[int]]:
    assert made.values.dtype == np.int32
    assert made.offsets.dtype == np.int64
    starts, stops = made.offsets[:-1].tolist(), made.offsets[1:].tolist()
    return [made.values[a:b].tolist() for a, b in zip(starts, stops, strict=True)]


@given(documents, few_ids, few_ids, st.none() | st.integers(0, 9))
def test_bracket_is_a_concatenation(rows, prefix, suffix, room):
    max_length = None if room is None else room + len(prefix) + len(suffix)
    made = bracket(encoded(rows), prefix=prefix, suffix=suffix, max_length=max_length)
    assert rows_of(made) == [[*prefix, *row[:room], *suffix] for row in rows]


def test_nothing_to_put_around_copies_nothing():
    plain = encoded([[1, 2], [], [3]])
    assert bracket(plain, max_length=2).values is plain.values


@given(documents, st.integers(1, 6))
def test_cut_slices_each_row(rows, max_length):
    whole = encoded(rows)
    cuts = cut(whole.offsets, max_length)
    wanted = [
        (parent, child, row[start : start + max_length], start + max_length >= len(row))
        for parent, row in enumerate(rows)
        for child, start in enumerate(range(0, max(1, len(row)), max_length))
    ]
    came = zip(
        cuts.parent.tolist(),
        cuts.child.tolist(),
        rows_of(Encoded(whole.values, cuts.offsets)),
        cuts.last.tolist(),
        strict=True,
    )
    assert list(came) == wanted


@given(documents, st.integers(1, 9))
def test_pad_fills_up_and_never_cuts(rows, length):
    made, mask = pad(encoded(rows), length=length, pad_id=7)
    missing = [max(0, length - len(row)) for row in rows]
    assert rows_of(made) == [row + [7] * n for row, n in zip(rows, missing, strict=True)]
    assert rows_of(Encoded(mask, made.offsets)) == [
        [1] * len(row) + [0] * n for row, n in zip(rows, missing, strict=True)
    ]
