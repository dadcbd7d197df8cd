"""Joining the splits of a source row: one unit a row, however many parts it has."""

from hypothesis import given
from hypothesis import strategies as st

from tests.exec.policies.feeding import feed, held_after
from tests.exec.policies.known import Known, pieces_of
from zephon.exec.policies import Together

ROWS = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=20)


def documents(rows):
    """Make documents of the lengths of each row's splits; give where each row ends, too."""
    lengths = [length for row in rows for length in row]
    last = [at == len(row) - 1 for row in rows for at in range(len(row))]
    return Known(lengths, last_parts=last), [at + 1 for at, ends in enumerate(last) if ends]


@given(ROWS, st.lists(st.integers(1, 5), max_size=9))
def test_all_splits_of_a_row_are_one_unit(rows, groups):
    """A lane pushes whole rows: groups are of rows, not of their splits."""
    known, ends = documents(rows)
    wanted, first = [], 0
    for row in rows:
        pieces = [(first + at, 0, length) for at, length in enumerate(row)]
        first += len(row)
        wanted.append((pieces, first - 1))
    sizes, at = [], 0
    for group in [*groups, len(rows) + 1]:
        stop = min(at + group, len(rows))
        if stop > at:
            sizes.append(ends[stop - 1] - (ends[at - 1] if at else 0))
            at = stop
    assert feed(Together(), known.units(), known, sizes)[0] == wanted
    assert held_after(Together(), known.units(), known, sizes, len(known.of_lengths)) == ([], {})


def test_whole_rows_stay_as_they_are():
    known = Known([3, 0, 5], first=40)
    units = Together().push(None, known.units(), known)
    assert pieces_of(units) == [[(40, 0, 3)], [(41, 0, 0)], [(42, 0, 5)]]
    assert units.trigger.tolist() == [40, 41, 42]
