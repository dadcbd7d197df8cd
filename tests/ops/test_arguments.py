"""What the calls that add operators of the user take, and what they refuse."""

import pytest

from tests.ops.test_base import Counting, Serial, Twice, Unbegun
from zephon.errors import PlanError, SerialStateError, WrongKindError
from zephon.ops import CountingAccumulator, PassthroughAccumulator
from zephon.ops.arguments import custom_op, stateful
from zephon.planner.logical import CustomOp, Stateful


def same(elems):
    return elems


def functions(**changes):
    return custom_op("same", **{"process_many": same, "preserves_cursor_order": True, **changes})


def test_functions_become_the_fields_of_a_node():
    node = CustomOp(**functions())
    assert (node.name, node.instance, node.process_many) == ("same", None, same)
    assert node == CustomOp(
        name="same", process_many=same, preserves_cursor_order=True, parallelism=1
    )


def test_an_instance_says_what_it_is_itself():
    op = Twice()
    assert CustomOp(**custom_op(op)) == CustomOp(
        name="Twice", instance=op, preserves_cursor_order=True, indexable=True, parallelism=1
    )
    named = CustomOp(**custom_op(op, name="double", parallelism=3, fingerprint="v1"))
    assert (named.name, named.parallelism, named.fingerprint) == ("double", 3, "v1")


def test_what_remembers_is_marked():
    assert not functions()["remembers"]
    assert not functions(accumulator=PassthroughAccumulator)["remembers"]
    assert functions(accumulator=lambda: CountingAccumulator(2))["remembers"]
    assert functions(requires_serial_state=True)["remembers"]
    assert not custom_op(Twice())["remembers"]
    assert custom_op(Counting())["remembers"]
    assert custom_op(Serial())["remembers"]


def test_samples_may_be_records_or_make_them():
    assert functions(validation_samples=same)["validation_samples"] is same
    assert functions(validation_samples=[1, 2])["validation_samples"] == (1, 2)


REFUSED = {
    "no name": (lambda: custom_op(""), r"add_op: the name must not be empty"),
    "no functions": (lambda: custom_op("a"), r"add_op 'a': process_many is missing"),
    "no order": (
        lambda: custom_op("a", process_many=same),
        r"add_op 'a': preserves_cursor_order is missing; pass True if records leave in the order",
    ),
    "two names": (
        lambda: functions(name="b"),
        r"add_op 'same': the name .* is the first argument, got name='b' too; leave name= out",
    ),
    "order that is none": (
        lambda: functions(preserves_cursor_order=1),
        r"add_op 'same': preserves_cursor_order must be True or False, got 1",
    ),
    "both": (
        lambda: custom_op(Twice(), process_many=same, indexable=False),
        r"add_op: an instance of BaseOp says all but its name itself, got process_many, indexable ",
    ),
    "empty name": (lambda: custom_op(Twice(), name=""), r"add_op: the name must not be empty"),
    "not begun": (lambda: custom_op(Unbegun()), r"add_op: Unbegun.__init__ must call super\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operators_that_cannot_be_are_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(PlanError, match=f"^{message}") as caught:
        call()
    assert isinstance(caught.value, ValueError)


class Vague(Twice):
    def traits(self):
        return {"preserves_cursor_order": True}


WRONG_KIND = {
    "a number": (lambda: custom_op(5), r"add_op: an instance of BaseOp was wanted, .* got 5"),
    "a class": (lambda: custom_op(Twice), r"add_op: .* got the class Twice; pass one of them"),
    "no function": (
        lambda: functions(process_many=3),
        r"add_op 'same': process_many must be a function, got 3",
    ),
    "no factory": (
        lambda: functions(accumulator=CountingAccumulator(2)),
        r"add_op 'same': accumulator must be a function, got <zephon",
    ),
    "no traits": (lambda: custom_op(Vague()), r"add_op: Vague.traits\(\) must return an OpTraits"),
    "a name of no letters": (lambda: custom_op(Twice(), name=5), r"add_op: the name must be a str"),
}


@pytest.mark.parametrize("name", WRONG_KIND)
def test_what_is_of_another_kind_is_refused(name):
    call, message = WRONG_KIND[name]
    with pytest.raises(WrongKindError, match=f"^{message}") as caught:
        call()
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    "call",
    [
        lambda: functions(requires_serial_state=True, parallelism=2),
        lambda: custom_op(Serial(), parallelism=4),
    ],
)
def test_what_remembers_by_itself_runs_on_one_thread(call):
    with pytest.raises(SerialStateError, match=r"requires_serial_state=True wants parallelism=1"):
        call()
    assert issubclass(SerialStateError, RuntimeError)


def push(state, elems):
    return state, elems


def state_fields(**changes):
    return stateful("s", **{"init_state": list, "push": push, **changes})


def test_functions_with_a_state_become_the_fields_of_a_node():
    node = Stateful(**state_fields(flush=list, preserves_cursor_order=False))
    assert node == Stateful(
        name="s",
        init_state=list,
        push=push,
        flush=list,
        preserves_cursor_order=False,
        parallelism=1,
    )


@pytest.mark.parametrize(
    "name",
    ["init_state", "push", "flush", "should_flush", "transform", "snapshot", "restore"],
)
def test_what_a_state_needs_are_functions(name):
    message = f"^stateful_transform 's': {name} must be a function, got 3; pass one"
    with pytest.raises(TypeError, match=message):
        state_fields(**{name: 3})


@pytest.mark.parametrize("name", ["init_state", "push"])
def test_a_state_needs_a_beginning_and_a_step(name):
    with pytest.raises(TypeError, match=f"{name} must be a function, got None"):
        state_fields(**{name: None})


STATES_REFUSED = {
    "no name": (lambda: stateful("", init_state=list, push=push), "stateful_transform: the name m"),
    "half": (
        lambda: state_fields(snapshot=list),
        "stateful_transform 's': snapshot and restore go together, got snapshot alone; pass res",
    ),
    "other half": (
        lambda: state_fields(restore=list),
        "stateful_transform 's': snapshot and restore go together, got restore alone; pass snap",
    ),
    "records that would be lost": (
        lambda: state_fields(preserves_cursor_order=False),
        "stateful_transform 's': preserves_cursor_order=False says that it holds records, got n",
    ),
    "order that is none": (
        lambda: state_fields(preserves_cursor_order="no"),
        "stateful_transform 's': preserves_cursor_order must be True or False, got 'no'",
    ),
}


@pytest.mark.parametrize("name", STATES_REFUSED)
def test_states_that_cannot_be_are_refused(name):
    call, message = STATES_REFUSED[name]
    with pytest.raises(PlanError, match=f"^{message}"):
        call()


@pytest.mark.parametrize("saves", [{"flush": list}, {"snapshot": list, "restore": list}])
def test_records_may_be_held_where_something_saves_them(saves):
    assert state_fields(preserves_cursor_order=False, **saves)["preserves_cursor_order"] is False
