"""The class of operators: what it asks for, and what it does by itself."""

import copy
import pickle

import pytest

from tests.ops.records import records
from zephon.errors import PlanError
from zephon.ops import BaseOp, CountingAccumulator, OpContext, OpTraits, StageInfo
from zephon.ops.accumulators import PassthroughAccumulator
from zephon.ops.base import check_begun, remembers


class Twice(BaseOp):
    """Gives each record twice."""

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def process_many(self, elems):
        return [each for each in elems for _ in range(2)]


class Counting(Twice):
    def accumulator(self, *, deterministic, ctx):
        return CountingAccumulator(4)


class Serial(Twice):
    def traits(self):
        return OpTraits(preserves_cursor_order=True, requires_serial_state=True)


class Unbegun(Twice):
    def __init__(self):
        self.own = 1


def test_traits_and_process_many_must_be_written():
    with pytest.raises(TypeError, match=r"abstract.*process_many.*traits"):
        BaseOp()  # pyright: ignore[reportAbstractUsage]


def test_what_an_operator_need_not_say():
    op = Twice()
    (one,) = records(3)
    assert op.process_one(one) == [one, one]
    made = op.accumulator(deterministic=True, ctx=OpContext())
    assert isinstance(made, PassthroughAccumulator)
    assert op.validation_samples() is None
    assert Twice.plan_identity() == f"{__name__}.Twice"
    assert op.stage_info == StageInfo()


def test_setup_tells_where_the_operator_stands_and_teardown_takes_it_back():
    op = Twice()
    op.setup(OpContext({}, StageInfo(1, "stage", 2)))
    assert op.stage_info == StageInfo(1, "stage", 2)
    op.teardown()
    assert op.stage_info == StageInfo()


def test_operators_travel():
    op = Twice()
    op.stage_info = StageInfo(1, "stage", 2)
    assert copy.deepcopy(op).stage_info == op.stage_info


def test_stage_infos_travel():
    info = StageInfo(1, "stage", 2)
    assert pickle.loads(pickle.dumps(info)) == info


def test_an_operator_that_left_out_our_init_is_told_so():
    check_begun(Twice())
    message = r"^add_op: Unbegun.__init__ must call super\(\).__init__\(\), and did not; add the ca"
    with pytest.raises(PlanError, match=message):
        check_begun(Unbegun())


def test_what_must_see_its_lane_in_order():
    assert not remembers(Twice())
    assert remembers(Counting())
    assert remembers(Serial())
