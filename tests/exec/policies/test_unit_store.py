"""The store of units against a dictionary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import plain, streams, units_of
from zephon.exec.policies import unit_store
from zephon.exec.policies.policy import AT_END
from zephon.exec.policies.unit_store import UnitStore


@settings(deadline=None, max_examples=40)
@given(streams(), st.randoms(use_true_random=False))
def test_units_come_back_as_they_were_whatever_is_taken_and_cleared_between(stream, choices):
    _, units = stream
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_store, "_LEAST", 4)  # so that it grows often
        store = UnitStore()
    wanted, at = {}, 0
    while at < len(units) or wanted:
        stop = min(len(units), at + choices.randrange(12))
        first = store.add(units.rows(at, stop))
        for place, (row, _) in enumerate(plain(units.rows(at, stop))):
            wanted[first + place] = row
        at = stop
        some = choices.sample(sorted(wanted), choices.randint(0, len(wanted)))
        numbers = np.array(some, np.int64)
        assert plain(store.look(numbers)) == [(wanted[n], AT_END) for n in some]
        assert plain(store.take(numbers, numbers + 7)) == [(wanted.pop(n), n + 7) for n in some]
        if choices.random() < 0.4:
            left = choices.sample(sorted(wanted), len(wanted))
            store.keep(np.array(left, np.int64))
            wanted = {place: wanted[number] for place, number in enumerate(left)}


def test_it_asks_to_be_cleared_once_more_than_half_was_taken_and_then_not_again():
    store, size = UnitStore(), unit_store._LEAST
    store.add(units_of([[(n, 0, 1), (n, 1, 1)] for n in range(size)], range(size)))
    taken = np.arange(size // 2)
    store.take(taken, taken)
    assert not store.wasteful
    store.take(np.array([size // 2]), np.array([0]))
    assert store.wasteful
    store.keep(np.arange(size // 2 + 1, size))
    assert not store.wasteful
