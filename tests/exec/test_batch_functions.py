"""Functions on delivered batches: what they return is delivered, and what they do wrong is said."""

import pytest

from zephon.errors import ExecutionError
from zephon.exec.batch_functions import mapped
from zephon.planner.logical import Batch, MapBatch
from zephon.types import SampleBatch, SampleMeta, SampleRecord


def batch(*payloads):
    metas = [SampleMeta(sample_id=(0, 3, n), lane_id=0, chunk_id=0) for n in range(len(payloads))]
    return SampleBatch([SampleRecord(m, p) for m, p in zip(metas, payloads, strict=True)])


def call(function, **changes):
    return MapBatch(input=Batch(microbatch_size=1), function=function, **changes)


def test_functions_are_called_one_after_the_other():
    def first(found):
        return SampleBatch(found.records[:2])

    def second(found):
        return SampleBatch(found.records[1:])

    made = mapped(batch("a", "b", "c"), [call(first), call(second)])
    assert [record.payload for record in made] == ["b"]


def test_none_drops_the_batch_and_no_later_function_sees_it():
    def never(found):
        raise AssertionError

    assert mapped(batch("a"), [call(lambda found: None), call(never)]) is None


def test_none_lets_the_batch_pass_where_that_is_asked_for():
    given = batch("a")
    assert mapped(given, [call(lambda found: None, drop_none=False)]) is given


def test_what_a_function_raises_names_the_batch():
    def broken(found):
        raise KeyError("x")

    with pytest.raises(
        ExecutionError, match=r"raised KeyError: 'x', on the batch that begins with"
    ):
        mapped(batch("a"), [call(broken)])


def test_anything_but_a_batch_is_refused():
    with pytest.raises(ExecutionError, match="must return a SampleBatch or None, got a dict"):
        mapped(batch("a"), [call(lambda found: {})])
