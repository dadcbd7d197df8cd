"""Best fit: the example of the behaviour page, and the fullest row of several with room."""

from tests.exec.policies.packing import PAGE, lengths_of, packed
from zephon.exec.policies.best_fit import BestFit


def test_the_example_of_the_page():
    policy = BestFit(max_length=10, num_bins=2, components=1)
    rows, state = packed(policy, PAGE)
    assert lengths_of(rows) == [(5, 3, 2), (4, 6), (9, 1), (8,), (7,)]
    assert policy.dropped(state)["oversized"].tolist() == [12]


def test_the_fullest_row_with_room_takes_a_document():
    policy = BestFit(max_length=10, num_bins=3, components=1)
    assert lengths_of(packed(policy, [4, 8, 7, 3])[0]) == [(7, 3), (4,), (8,)]


def test_of_equally_full_rows_the_oldest_takes_it():
    policy = BestFit(max_length=10, num_bins=3, components=1)
    assert packed(policy, [6, 6, 6, 4])[0][0] == [(0, 0, 6), (3, 0, 4)]
