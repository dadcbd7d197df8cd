"""Copies of operators: one a thread, begun once, ended once; and what their factories get."""

import threading
from typing import ClassVar

import pytest

from tests.ops.records import offsets, records
from zephon.errors import ExecutionError
from zephon.exec.group_calls import GroupCalls
from zephon.ops import BaseOp, CountingAccumulator, OpTraits, PassthroughAccumulator, StageInfo
from zephon.ops.arguments import custom_op
from zephon.ops.context import OpServices
from zephon.planner.logical import CustomOp

SERVICES = OpServices(io_options="options")


class Kept(BaseOp):
    """Writes down, in a list that copies share, what happens to which copy."""

    log: ClassVar[list] = []

    def __init__(self):
        super().__init__()
        self.table = {"begun": 0}

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def setup(self, ctx):
        super().setup(ctx)
        self.table["begun"] += 1
        self.log.append(("setup", id(self), ctx.get("io_options")))

    def teardown(self):
        self.log.append(("teardown", id(self)))

    def process_many(self, elems):
        self.log.append(("process", id(self)))
        return elems


def calls_of(op, **named):
    return GroupCalls(CustomOp(**custom_op(op, **named)), SERVICES)


def functions(**named):
    return calls_of("f", **{"process_many": list, "preserves_cursor_order": True, **named})


@pytest.fixture
def log():
    Kept.log.clear()
    return Kept.log


def test_a_thread_works_on_its_own_copy_which_is_begun_and_ended_once(log):
    op = Kept()
    calls = calls_of(op)
    seen = []

    def work():
        for _ in range(2):
            assert offsets(calls.worker().process(records(1, 2))) == [1, 2]
        seen.append(calls.worker().instance)

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert op not in seen
    assert seen[0] is not seen[1]
    assert op.table == {"begun": 0}
    assert [each.table for each in seen] == [{"begun": 1}, {"begun": 1}]
    calls.close()
    calls.close()
    for copy in seen:
        mine = [what for what, who, *_ in log if who == id(copy)]
        assert mine == ["setup", "process", "process", "teardown"]
    assert ("setup", id(seen[0]), "options") in log


def test_a_copy_knows_where_it_stands(log):
    info = StageInfo(2, "maps", 1)
    op = Kept()
    calls = GroupCalls(CustomOp(**custom_op(op)), SERVICES, info)
    assert calls.worker().instance.stage_info is info
    assert op.stage_info == StageInfo()


def test_after_the_end_a_copy_begins_anew(log):
    calls = calls_of(Kept())
    first = calls.worker()
    calls.close()
    assert calls.worker() is not first
    calls.close()


def test_a_copy_that_nobody_else_has_is_ended_when_it_is_given_back(log):
    calls = calls_of(Kept())
    one, other = calls.new_worker(), calls.new_worker()
    assert one.instance is not other.instance
    calls.release(one)
    assert [what for what, *_ in log] == ["setup", "setup", "teardown"]
    calls.close()
    assert [what for what, *_ in log].count("teardown") == 2


class Stuck(Kept):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


class Unready(Kept):
    def setup(self, ctx):
        raise OSError("no model")


class Unending(Kept):
    def teardown(self):
        super().teardown()
        raise OSError("still open")


def test_what_cannot_be_copied_belongs_into_setup(log):
    message = r"^add_op 'Stuck': every worker needs a copy .* TypeError: .*; build in setup\(\) wh"
    with pytest.raises(ExecutionError, match=message):
        calls_of(Stuck()).worker()


def test_a_setup_that_fails_is_told_with_its_cause(log):
    with pytest.raises(
        ExecutionError, match=r"^add_op 'Unready': setup raised OSError: no mode"
    ) as e:
        calls_of(Unready()).worker()
    assert isinstance(e.value.__cause__, OSError)


def test_a_setup_that_fails_is_not_tried_again():
    tried = []

    class Counted(Kept):
        def setup(self, ctx):
            tried.append(1)
            raise OSError("no model")

    calls = calls_of(Counted())
    for _ in range(2):
        with pytest.raises(ExecutionError, match="setup raised OSError: no model") as e:
            calls.worker()
        assert isinstance(e.value.__cause__, OSError)
    assert tried == [1]


def test_all_copies_are_ended_even_if_one_fails(log):
    calls = calls_of(Unending())
    calls.new_worker()
    calls.new_worker()
    message = "^add_op 'Unending': teardown raised OSError: still open"
    with pytest.raises(ExecutionError, match=message):
        calls.close()
    assert [what for what, *_ in log].count("teardown") == 2


def test_a_factory_is_told_what_it_takes():
    told = []

    def both(*, deterministic, ctx):
        told.append((deterministic, ctx.get("io_options")))
        return PassthroughAccumulator()

    def one(ctx):
        told.append(ctx.get("io_options"))
        return PassthroughAccumulator()

    def anything(**named):
        told.append(sorted(named))
        return PassthroughAccumulator()

    for factory in (both, one, anything, PassthroughAccumulator):
        made = functions(accumulator=factory).worker().accumulator()
        assert isinstance(made, PassthroughAccumulator)
    assert told == [(True, "options"), "options", ["ctx", "deterministic"]]


def test_an_instance_makes_its_own_accumulator():
    class Counting(Kept):
        def accumulator(self, *, deterministic, ctx):
            assert deterministic
            assert ctx.get("io_options") == "options"
            return CountingAccumulator(7)

    made = calls_of(Counting()).worker().accumulator()
    assert isinstance(made, CountingAccumulator)
    assert made.max_batch == 7


def test_a_factory_that_fails_or_makes_something_else_is_refused():
    def fails():
        raise ValueError("no")

    with pytest.raises(ExecutionError, match=r"^add_op 'f': accumulator raised ValueError: no, w"):
        functions(accumulator=fails).worker().accumulator()
    with pytest.raises(
        ExecutionError, match=r"^add_op 'f': accumulator must return an Acc.* got \[\]"
    ):
        functions(accumulator=lambda: []).worker().accumulator()


def test_an_object_that_is_called_and_remembers_is_copied():
    class Numbering:
        def __init__(self):
            self.called = 0

        def __call__(self, elems):
            self.called += 1
            return elems

    many = Numbering()
    calls = functions(process_many=many, requires_serial_state=True)
    calls.new_worker().process(records(1))
    assert many.called == 0
    functions(process_many=many).worker().process(records(1))
    assert many.called == 1
