"""Weights at groups of rows; what is forgotten, and what cannot be drawn."""

import numpy as np
import pytest

from zephon.errors import ExecutionError
from zephon.exec.group_stream import GroupStream

ONE, OTHER = np.array([0.5, 0.5]), np.array([0.2, 0.8])


def test_weights_are_those_of_the_group():
    stream = GroupStream()
    stream.add(0, ONE)
    stream.add(1, OTHER)
    stream.add_like_last(2)
    assert [stream.weights_at(n) is w for n, w in ((0, ONE), (1, OTHER), (2, OTHER))] == [True] * 3
    assert stream.weights(1, 3).tolist() == [[0.2, 0.8], [0.2, 0.8]]
    assert stream.length is stream.weights_at(7) is stream.weights(1, 4) is stream.weights(1, 1)


def test_the_latest_weights_are_not_forgotten():
    stream = GroupStream()
    for group in range(4):
        stream.add(group, ONE if group < 3 else OTHER)
    stream.forget_before(9)
    assert stream.weights_at(2) is None
    stream.add_like_last(4)
    assert stream.weights_at(4) is stream.weights_at(3) is OTHER


def test_groups_cannot_be_drawn():
    with pytest.raises(ExecutionError, match="groups 3 to 5 of an operator"):
        GroupStream().draw(3, 2)
