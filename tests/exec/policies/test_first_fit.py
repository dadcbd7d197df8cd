"""First fit: the example of the behaviour page, and the oldest row of several with room."""

from tests.exec.policies.packing import PAGE, lengths_of, packed
from zephon.exec.policies.first_fit import FirstFit


def test_the_example_of_the_page():
    policy = FirstFit(max_length=10, num_bins=2, components=1)
    rows, state = packed(policy, PAGE)
    assert lengths_of(rows) == [(5, 3, 2), (4, 6), (9, 1), (8,), (7,)]
    assert policy.dropped(state)["oversized"].tolist() == [12]


def test_the_oldest_row_with_room_takes_a_document():
    policy = FirstFit(max_length=10, num_bins=3, components=1)
    assert lengths_of(packed(policy, [4, 8, 7, 3])[0]) == [(4, 3), (8,), (7,)]
