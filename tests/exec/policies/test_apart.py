"""Taking units apart: every piece a unit, in order, let go by the same arrival."""

from hypothesis import given
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed, plain, streams
from tests.exec.policies.known import Known
from zephon.exec.policies.apart import Apart


@given(streams(), GROUPINGS, st.data())
def test_each_piece_is_a_unit_of_its_own(stream, groups, data):
    known, units = stream
    at = data.draw(st.integers(0, len(units)))
    wanted = [([piece], trigger) for row, trigger in plain(units) for piece in row]
    assert feed(Apart(), units, known, groups, resume_at=at)[0] == wanted


def test_single_documents_pass_without_a_copy():
    known = Known([3, 4])
    units = known.units()
    assert Apart().push(None, units, known) is units
