import numpy as np
import pytest

from zephon.io.faults import BadRow
from zephon.io.taken_parts import TakenPart, bad_rows, places_of


def part(start, found, rows=None, faults=()):
    found = None if found is None else np.array(found)
    count = len(found) if rows is None else rows
    return TakenPart(
        start=start,
        found=found,
        columns=(),
        frame=(),
        faults=faults,
        source=None,
        places=np.arange(count),
    )


@pytest.mark.parametrize(
    ("order", "kept", "back"),
    [
        (None, [1, 3, 4], None),
        ([2, 0, 1, 3, 4], [0, 3, 4], None),
        ([4, 3, 2, 1, 0], [0, 1, 3], [2, 1, 0]),
        ([0, 4, 1, 2, 3], [2, 3, 4], [1, 2, 0]),
    ],
)
def test_rows_that_pass_stand_in_the_order_of_the_request(order, kept, back):
    parts = [part(0, [1]), part(2, [1, 2])]
    order = None if order is None else np.array(order)
    found = places_of(parts, order, 5, filtered=True)
    assert [None if each is None else each.tolist() for each in found] == [kept, back]


def test_without_a_filter_all_rows_are_given():
    parts = [part(0, None, 2), part(2, None, 1)]
    kept, back = places_of(parts, np.array([2, 0, 1]), 3, filtered=False)
    assert (kept.tolist(), back.tolist()) == ([0, 1, 2], [1, 2, 0])


def test_no_row_passes():
    kept, back = places_of([], np.array([1, 0]), 2, filtered=True)
    assert (len(kept), back) == (0, None)


def test_the_bad_row_that_was_asked_for_first_comes_first():
    parts = [
        part(0, None, 2, [BadRow(1, "b"), BadRow(0, "a")]),
        part(2, [0, 2], faults=[BadRow(1, "z"), BadRow(1, "y")]),
    ]

    def listed(order):
        return [(asked, place, bad.detail) for asked, place, bad in bad_rows(parts, order)]

    assert listed(None) == [(0, 0, "a"), (1, 1, "b"), (4, 4, "y"), (4, 4, "z")]
    turned = np.array([4, 3, 2, 1, 0])
    assert listed(turned) == [(0, 4, "y"), (0, 4, "z"), (3, 1, "b"), (4, 0, "a")]


def test_of_what_is_wrong_with_one_row_the_same_goes_first():
    raised, frame = BadRow(0, "a", raised=True), BadRow(0, "b", "k")
    for order in ([raised, frame, BadRow(0, "c")], [BadRow(0, "c"), frame, raised]):
        found = bad_rows([part(0, None, 1, order)], None)
        assert [bad.detail for _, _, bad in found] == ["c", "b", "a"]
