"""The order in which records leave: that of their arrival, whatever their places are."""

import pytest

from tests.ops.records import record
from zephon.exec.arrival_order import ArrivalOrder
from zephon.exec.operator import RowError


def order_of(*offsets, **named):
    order = ArrivalOrder(**named)
    for offset in offsets:
        order.add(record(offset).meta)
    return order


def leave(order, *offsets):
    for offset in offsets:
        order.check(record(offset).meta)


def test_arrival_counts_and_not_the_place():
    leave(order_of(7, 3, 5, 1), 7, 3, 3, 1)
    leave(order_of(7, 3, 5, 1), 5, 1)


@pytest.mark.parametrize("left", [(3, 7), (1, 5), (5, 3)])
def test_what_leaves_after_a_later_one_is_refused(left):
    with pytest.raises(RowError, match="in the order in which they came"):
        leave(order_of(7, 3, 5, 1), *left)


def test_what_came_before_it_was_watched_may_leave():
    order = order_of(7, 3, from_beginning=False)
    leave(order, 9, 7, 9)


def test_only_what_may_leave_yet_is_remembered():
    order = ArrivalOrder()
    for offset in range(1000):
        order.add(record(offset).meta)
        order.check(record(offset).meta)
    assert len(order._numbers) == len(order._came) == 1
