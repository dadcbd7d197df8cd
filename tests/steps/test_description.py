"""What all calls share: words are checked, and a call still says what it takes."""

import inspect
import pickle

import pytest

from tests.steps.test_functions import pipeline
from zephon import Pipeline
from zephon.errors import PlanError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p: p.map_transform(len, drop_nones=True),
            r"^map_transform: there is no argument 'drop_nones'; did you mean 'drop_none'\?$",
        ),
        (
            lambda p: p.add_op("x", proces_many=list, preserves_cursor_order=True),
            "^add_op: .*'proces_many'; did you mean 'process_many'",
        ),
        (
            lambda p: p.tokenize(field="text", trucation=True),
            "^tokenize: .*'trucation'; did you mean 'truncation'",
        ),
        (lambda p: p.batch(2, drop_lst=True), "^batch: .*did you mean 'drop_last'"),
        (lambda p: p.take(rows=3), "^take: there is no argument 'rows'; known are: n$"),
        (lambda p: p.filter(k=3), "^filter: there is no argument 'k'; there are none"),
        (lambda p: p.explain(verbos=1), "^explain: there is no argument 'verbos'"),
    ],
)
def test_a_misspelt_word_is_refused_with_the_nearest_right_one(call, message):
    with pytest.raises(TypeError, match=message) as told:
        call(pipeline())
    assert isinstance(told.value, PlanError)


def test_words_that_name_what_is_made_stay_free():
    import polars as pl

    assert [r.payload for r in pipeline().select(anything=pl.col("k")).take(1)] == [{"anything": 0}]


def test_a_call_still_says_what_it_takes():
    found = inspect.signature(Pipeline.map_transform)
    assert list(found.parameters)[:3] == ["self", "fn", "drop_none"]
    assert found.parameters["drop_none"].default is True
    assert Pipeline.map_transform.__qualname__ == "FunctionSteps.map_transform"
    assert Pipeline.map_transform.__doc__.startswith("Replace each row by what a function makes")
    assert pickle.loads(pickle.dumps(Pipeline.map_transform)) is Pipeline.map_transform


def test_calls_of_a_class_that_the_user_derives_are_left_alone():
    class Own(Pipeline):
        def note(self, **words):
            return words

        def map_transform(self, fn, **words):
            return super().map_transform(fn, drop_none=words.pop("forget", True), **words)

    own = Own(pipeline()._source)
    assert own.note(drop_nones=1) == {"drop_nones": 1}
    own.map_transform(len, forget=False)
    with pytest.raises(TypeError, match="did you mean 'drop_none'"):
        Own(pipeline()._source).map_transform(len, drop_nons=False)
