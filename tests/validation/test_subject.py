"""Checks call copies: what runs later is as it was, and large things are shared."""

import functools

from tests.validation.operators import Pairs, Shout, given, made_of, same
from zephon.validation.subject import Subject, fresh_function, own_method, takes


class Remembers:
    def __init__(self):
        self.seen = []

    def run(self, records):
        self.seen.append(len(records))
        return records


def test_a_copy_of_a_function_begins_anew():
    seen, count = [], 0

    def remember(records, *, before=[]):  # noqa: B006
        nonlocal count
        count += 1
        seen.append(count)
        before.append(count)
        return count, list(seen), list(before)

    first, second = fresh_function(remember), fresh_function(remember)
    assert first([]) == (1, [1], [1])
    assert first([]) == (2, [1, 2], [1, 2])
    assert second([]) == (1, [1], [1])
    assert (seen, count) == ([], 0)


def test_a_copy_of_a_method_or_a_partial_begins_anew():
    remembers = Remembers()
    fresh_function(remembers.run)([1])
    fresh_function(functools.partial(Remembers.run, remembers))([1])
    assert remembers.seen == []


def test_what_is_large_is_shared():
    vocabulary = dict.fromkeys(range(20_000))
    assert fresh_function(lambda records: vocabulary)([]) is vocabulary


def test_an_instance_is_copied():
    op = Shout()
    op.words = []
    copied = Subject(given(op)).fresh()
    copied.process_many.__self__.words.append(1)
    assert op.words == []


def test_the_state_of_a_copy_shows_what_it_holds():
    copied = Subject(made_of(Remembers().run)).fresh()
    before = copied.state()
    copied.process_many([])
    assert copied.state() != before


def test_an_accumulator_is_made_by_the_operator_or_its_factory():
    assert Subject(made_of(same)).accumulator_factory() is None
    for node in (made_of(same, accumulator=Pairs), given(WithPairs())):
        make = Subject(node).accumulator_factory()
        assert make is not None
        assert isinstance(make(), Pairs)


class WithPairs(Shout):
    def accumulator(self, *, deterministic, ctx):
        return Pairs()


def test_only_methods_that_are_the_operators_own_count():
    assert own_method(Shout(), "process_one") is None
    assert own_method(Shout(), "process_many") is not None


def test_keywords_that_a_function_takes():
    assert takes(lambda *, reset, lane_id=None: None, "reset", "lane_id")
    assert takes(lambda **said: None, "reset", "lane_id")
    assert not takes(lambda reset: None, "reset", "lane_id")
    assert not takes(lambda reset, lane_id, /: None, "reset", "lane_id")
