"""Writes to self and calls that answer differently are read in the source, aliases seen through."""

import datetime as when
import functools
import random
import secrets
import time
import uuid
from random import Random, shuffle

import numpy as np
import pytest

from tests.validation.operators import Shout, shouted
from zephon.validation.source_checks import check_source


def found(function, remembers=False):
    return [(e.code, e.message) for e in check_source("op", [function], remembers=remembers)]


def one(function):
    ((code, message),) = found(function)
    assert message.startswith("processing must ")
    return code, message.split("got ")[1].split(";")[0].removeprefix("a call of ")


class Writes(Shout):
    def process_many(self, elems):
        self.count = len(elems)
        return elems


class WritesBelow(Shout):
    def process_many(self, elems):
        return [self._count(e) for e in elems]

    def _count(self, elem):
        (self.count, _other) = 1, 2
        return elem


class SetsAttributes(Shout):
    def process_many(self, elems):
        setattr(self, elems[0].payload, 1)
        return elems


class Appends(Shout):
    def process_many(self, elems):
        self.seen.append(1)
        return elems


class SetsItems(Shout):
    def process_many(self, elems):
        self.seen["a"] = 1
        return elems


class SetsBelow(Shout):
    def process_many(self, elems):
        self.counts.total += 1
        return elems


class Reads(Shout):
    def process_many(self, elems):
        kept = list(self.words)
        kept.append(self.table["a"].size)
        self.check(elems)
        count = self.count
        count += 1
        return elems

    @staticmethod
    def check(elems):
        elems.seen = True


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        (Writes, "self.count in Writes.process_many"),
        (WritesBelow, "self.count in WritesBelow._count"),
        (SetsAttributes, "setattr in SetsAttributes.process_many"),
    ],
)
def test_an_assignment_to_self(operator, told):
    assert one(operator().process_many) == ("OP_WRITES_TO_SELF", told)


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        (Appends, "self.seen.append() in Appends.process_many"),
        (SetsItems, "self.seen['a'] in SetsItems.process_many"),
        (SetsBelow, "self.counts.total in SetsBelow.process_many"),
    ],
)
def test_a_change_of_what_self_holds(operator, told):
    assert one(operator().process_many) == ("OP_MUTATES_SELF", told)


def test_an_operator_may_say_that_it_remembers():
    assert found(Writes().process_many, remembers=True) == []
    assert found(Appends().process_many, remembers=True) == []


def test_reading_self_is_fine():
    assert found(Reads().process_many) == []
    assert found(Shout().process_many) == []
    assert found(shouted) == []
    assert found(len) == []


def by_module(records):
    return random.random()


def by_name(records):
    shuffle(records)


def by_alias(records):
    return when.datetime.now()


def by_import(records):
    import time as clock

    return clock.time()


def by_import_from(records):
    from os import urandom

    return urandom(3)


def by_numpy(records):
    return np.random.rand(3)


def by_unseeded_generator(records):
    return np.random.default_rng()


def by_unseeded_random(records):
    return Random()


def by_token(records):
    return secrets.token_hex(3)


def by_uuid(records):
    return uuid.uuid4()


def by_hash(records):
    return hash(records[0].payload["text"])


def by_helper(records):
    return by_uuid(records)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (by_module, "random.random() in by_module"),
        (by_name, "shuffle() in by_name"),
        (by_alias, "datetime.now() in by_alias"),
        (by_import, "time.time() in by_import"),
        (by_import_from, "os.urandom() in by_import_from"),
        (by_numpy, "np.random.rand() in by_numpy"),
        (by_unseeded_generator, "np.random.default_rng() in by_unseeded_generator"),
        (by_unseeded_random, "Random() in by_unseeded_random"),
        (by_token, "secrets.token_hex() in by_token"),
        (by_uuid, "uuid.uuid4() in by_uuid"),
        (by_hash, "hash() in by_hash"),
        (by_helper, "uuid.uuid4() in by_uuid"),
        (functools.partial(by_uuid), "uuid.uuid4() in by_uuid"),
    ],
)
def test_a_call_that_answers_differently(function, told):
    assert one(function) == ("OP_NONDETERMINISTIC_STDLIB_CALL", told)


def seeded(records):
    return Random(records[0].meta.sample_id[2]), np.random.default_rng(3)


def measures(records):
    begin = time.perf_counter()
    time.sleep(0)
    return when.timedelta(seconds=time.perf_counter() - begin)


def own_names(records, time=None, random=None):
    return time.time() + random.random()


@pytest.mark.parametrize("function", [seeded, measures, own_names])
def test_calls_that_only_look_like_it(function):
    assert found(function) == []


def test_a_lambda_and_an_object_are_read():
    class Called:
        def __call__(self, records):
            self.count = 1

    assert one(Called())[0] == "OP_WRITES_TO_SELF"
    drawn = lambda records: random.random()  # noqa: E731
    assert one(drawn)[0] == "OP_NONDETERMINISTIC_STDLIB_CALL"


def test_a_function_around_the_operator_is_seen():
    clock = time.time

    def stamped(records):
        return clock()

    assert one(stamped)[1].startswith("time.time() in ")


def test_what_has_no_source_is_passed_over():
    made = {}
    exec("def f(records):\n    return hash(records)", made)
    assert found(made["f"]) == []
