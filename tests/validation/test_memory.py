"""What was found of an operator is known as long as the operator lives, and not of another."""

from dataclasses import replace

from tests.validation.operators import Pairs, Shout, given, made_of, shouted
from zephon.validation.memory import Memory
from zephon.validation.report import issue

FOUND = (issue("OP_MUTATES_SELF", "op", "it changes; do not"),)


def test_an_operator_is_known_again_wherever_it_stands():
    memory = Memory()
    node = made_of(shouted)
    assert memory.recall(node) is None
    memory.keep(node, FOUND)
    assert memory.recall(node) == FOUND
    assert memory.recall(replace(node, input=node)) == FOUND


def test_an_operator_that_was_told_something_else_is_not_known():
    memory = Memory()
    memory.keep(made_of(shouted), FOUND)
    for other in (
        made_of(shouted, name="other"),
        made_of(shouted, calibration_replayable=True),
        made_of(shouted, accumulator=Pairs),
        made_of(lambda records: records),
    ):
        assert memory.recall(other) is None


def test_an_instance_is_forgotten_with_its_pipeline():
    memory = Memory()
    node = given(Shout())
    memory.keep(node, FOUND)
    assert len(memory) == 1
    del node
    assert len(memory) == 0


def test_what_cannot_be_watched_is_not_kept():
    class Slotted:
        __slots__ = ()

        def __call__(self, records):
            return records

    memory = Memory()
    node = made_of(Slotted())
    memory.keep(node, FOUND)
    assert memory.recall(node) is None
