"""What a checkpoint says of a user's function: the same while its source and what it holds are."""

import functools
import importlib.util
import itertools
import json
import warnings
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

from zephon.exec import function_identity as functions
from zephon.exec.function_identity import identity_of

numbers = itertools.count()


@pytest.fixture(autouse=True)
def _warn_anew(monkeypatch):
    monkeypatch.setattr(functions, "_warned", set())


@pytest.fixture
def made(tmp_path):
    """Give a function that imports source text as module ``own`` and gives one name of it."""

    def make(text, name="f"):
        path = tmp_path / f"own_{next(numbers)}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("own", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name)

    return make


def known(function):
    """Describe a function that must be known by more than its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = identity_of(function)
    assert json.loads(json.dumps(found)) == found
    assert "opaque" not in json.dumps(found)
    return found


def length(row):
    return len(row["input_ids"])


class Rows:
    factor = 2

    def measure(self, row):
        return self.factor * len(row)

    @classmethod
    def of_class(cls, row):
        return cls.factor * len(row)

    @staticmethod
    def of_none(row):
        return len(row)

    def __call__(self, row):
        return len(row)


# Names and source


def test_a_function_stays_what_it_was_when_its_file_is_written_anew(made):
    function = made("def f(row):\n    return row\n")
    before = known(function)
    file = Path(function.__code__.co_filename)
    file.write_text("# first\ndef g(row):\n    return None\n")
    assert known(function) == before
    file.unlink()
    assert known(function) == before


def test_a_function_is_known_by_its_name_and_its_source():
    found = known(length)
    assert found["name"] == "tests.exec.test_function_identity.length"
    assert len(found["source"]) == 64
    assert set(found) == {"name", "source"}
    assert found == known(length)


BODY = "def f(row):\n    return len(row['a']) + 1\n"


@pytest.mark.parametrize(
    "same",
    [
        "# a comment\n\n\nX = 5\ndef f(row):\n    return len(row['a']) + 1\n",
        "def f(row):  # why\n    # because\n    return len(row['a']) + 1\n",
        'def f(row):\n    return (len(row["a"])\n            + 1)\n',
        "def f( row ):\n\n        return len( row['a'] )+1\n",
        "if True:\n    def f(row):\n        return len(row['a']) + 1\n",
    ],
)
def test_comments_formatting_and_place_do_not_count(made, same):
    assert known(made(BODY)) == known(made(same))


@pytest.mark.parametrize(
    "other",
    [
        "def f(row):\n    return len(row['a']) + 2\n",
        "def f(row):\n    return len(row['b']) + 1\n",
        "def f(row):\n    return len(row['a']) - 1\n",
        "def f(row, more=0):\n    return len(row['a']) + 1\n",
        "def f(row):\n    return None\n",
        "def f(row):\n    return\n",
        "f = lambda row: len(row['a']) + 1\n",
    ],
)
def test_an_edit_is_seen(made, other):
    assert known(made(BODY)) != known(made(other))


def test_no_two_of_many_small_bodies_are_alike(made):
    bodies = ["None", "", "0", "False", "''", "[]", "()", "{}", "[[]]", "[None]", "0.0", "b''"]
    texts = [f"def f(row):\n    return {body}\n" for body in bodies]
    assert len({known(made(text))["source"] for text in texts}) == len(bodies)


def test_a_function_of_another_name_is_another(made):
    assert known(made(BODY)) != known(made(BODY.replace("def f", "def g"), "g"))


def test_the_same_name_in_another_scope_is_another(made):
    text = (
        "def outer():\n    def f(row):\n        return 1\n    return f\ndef f(row):\n    return 1\n"
    )
    assert known(made(text)) != known(made(text, "outer")())


# Lambdas


@pytest.mark.parametrize(
    "line",
    [
        "f = lambda row: len(row['a'])",
        "f = (lambda row: len(row['a']))",
        "f = {'a': lambda row: len(row['a'])}['a']",
        "f = dict(a=lambda row: len(row['a']), b=3)['a']",
        "f = dict(\n    a=lambda row: len(row['a']),\n    b=3,\n)['a']",
        "f = dict(\n    b=3,\n    a=lambda row: len(row['a']))['a']",
        "f = dict(b=3,\n    a=lambda row: len(row['a']), c=4)['a']",
        "f = dict(\n    a=lambda row: len(\n        row['a']\n    ),\n)['a']",
        "f = [\n    lambda row: len(row['a']),\n    lambda row: 5,\n][0]",
        "f = (dict\n    .fromkeys('a', lambda row: len(row['a']))\n    .get('a'))",
        "f = (dict(a=3)\n    .get('b', lambda row: len(row['a'])))",
        "f = dict.fromkeys('a',\n    lambda row: len(row['a'])).get('a')",
    ],
)
def test_a_lambda_is_found_wherever_it_stands(made, line):
    found = known(made(line + "\n"))
    assert found == known(made("f = lambda row: len(row['a'])\n"))
    assert found != known(made(line.replace("len(", "sum(") + "\n"))


def test_a_lambda_with_another_in_it_is_its_own(made):
    one = made("f = lambda row: (\n    lambda: row)()\n")
    two = made("f = lambda row: (\n    lambda: [row])()\n")
    assert known(one) != known(two)


def test_two_lambdas_on_a_line_are_known_by_name_alone(made):
    one, two = made("f = (lambda row: 1, lambda row: 2)\n")
    message = r"source of own\.<lambda> cannot be read, .*, line 1, column 17\)"
    with pytest.warns(RuntimeWarning, match=message):
        assert identity_of(one) == {"name": "own.<lambda>", "opaque": True}
    with pytest.warns(RuntimeWarning, match=r", line 1, column 32\)"):
        assert identity_of(two) == identity_of(one)


def test_a_lambda_whose_end_is_not_found_is_known_by_name_alone(made):
    """Half of a lambda would hide an edit of the other half."""
    found = made("f = dict(\n    a=lambda row: len(row)\n    + 1,\n)['a']\n")
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert identity_of(found) == {"name": "own.<lambda>", "opaque": True}


# What a function brings with it


def test_what_is_closed_over_counts():
    def times(factor):
        return lambda row: factor * len(row)

    assert known(times(2)) == known(times(2))
    assert known(times(2)) != known(times(3))
    assert known(times(0.1)) != known(times(0.2))
    assert known(times((1, {"a": "b"}))) != known(times((1, {"a": "c"})))
    assert known(times(length)) != known(times(len))
    assert known(times(True)) != known(times("True"))


def test_functions_that_are_closed_over_are_looked_into(made):
    text = "def outer(g):\n    def f(row):\n        return g(row)\n    return f\n"
    outer = made(text, "outer")
    assert known(outer(made(BODY))) == known(outer(made(BODY)))
    assert known(outer(made(BODY))) != known(outer(made(BODY.replace("1", "2"))))


def test_defaults_count_as_they_are():
    """``n=n`` is how a loop gives each function its own number."""
    one, two, again = ((lambda row, n=n: n) for n in (1, 2, 1))
    assert known(one) == known(again)
    assert known(one) != known(two)

    def keyword(n):
        def f(row, *, n=n):
            return n

        return f

    assert known(keyword(1)) != known(keyword(2))


def test_a_function_that_calls_itself_has_an_end():
    def outer(leaf):
        def depth(row):
            return 1 + max(map(depth, row)) if isinstance(row, list) else leaf

        return depth

    assert known(outer(0)) == known(outer(0))
    assert known(outer(0)) != known(outer(1))


def test_two_functions_that_call_each_other_have_an_end():
    def outer(leaf):
        def even(n):
            return leaf if n == 0 else odd(n - 1)

        def odd(n):
            return n if n == 0 else even(n - 1)

        return even

    assert known(outer(0)) != known(outer(1))


def test_a_list_that_holds_itself_has_an_end():
    def times(factor):
        return lambda row: factor

    within = [1]
    within.append(within)
    assert known(times(within)) != known(times([1, 2]))


def test_what_has_no_value_yet_is_left_out():
    def outer():
        def f(row):
            return later

        found = known(f)
        later = 5
        return found, known(f)

    before, after = outer()
    assert "closure" not in before
    assert after["closure"] == {"later": 5}


def test_objects_that_are_closed_over_are_named_by_their_type():
    def times(factor):
        return lambda row: factor

    found = identity_of(times(object()))
    assert found["closure"] == {"factor": {"type": "builtins.object", "opaque": True}}


# Other callables


def test_a_partial_is_what_it_calls_and_what_it_is_given():
    def scaled(row, by, plus=0):
        return by * len(row) + plus

    part = functools.partial
    assert known(part(scaled, by=2)) == known(part(scaled, by=2))
    assert known(part(scaled, by=2)) != known(part(scaled, by=3))
    assert known(part(scaled, plus=2, by=3)) == known(part(scaled, by=3, plus=2))
    assert known(part(scaled, ("by", 2))) != known(part(scaled, by=2))
    assert known(part(scaled, by=2)) != known(part(length, by=2))
    assert known(part(part(scaled, by=2), plus=3)) == known(part(scaled, by=2, plus=3))


def test_a_decorated_function_is_decorator_and_function(made):
    text = """
import functools

def times(factor):
    def decorate(g):
        @functools.wraps(g)
        def wrapper(row):
            return factor * g(row)
        return wrapper
    return decorate

@times(2)
def f(row):
    return len(row)
"""
    found = known(made(text))
    assert found["name"] == "own.f"
    assert found == known(made("# moved\n" + text))
    assert found != known(made(text.replace("@times(2)", "@times(3)")))
    assert found != known(made(text.replace("len(row)", "sum(row)")))
    assert found != known(made(text.replace("factor *", "factor +")))


def test_methods_of_a_class_are_functions():
    assert known(Rows.of_class)["name"] == "tests.exec.test_function_identity.Rows.of_class"
    assert known(Rows.of_none)["name"] == "tests.exec.test_function_identity.Rows.of_none"
    assert known(Rows.of_class) != known(Rows.of_none)
    assert known(Rows.measure)["name"] == "tests.exec.test_function_identity.Rows.measure"


class Longer:
    """Called like a function; counts how often."""

    def __init__(self, by):
        self.by = by
        self.calls = 0

    def __call__(self, row):
        self.calls += 1
        return [*row, self.by]

    def again(self, row):
        return self(self(row))


class Slotted:
    __slots__ = ("by",)

    def __init__(self, by):
        self.by = by

    def __call__(self, row):
        return [*row, self.by]


@pytest.mark.parametrize(
    "made", [Longer, Slotted, lambda by: Longer(by).again, lambda by: Longer(Longer(by))]
)
def test_an_object_is_known_by_its_class_and_what_it_holds(made):
    assert known(made(1)) == known(made(1))
    assert known(made(1)) != known(made(2))
    assert known(Longer(1)) != known(Longer(1).again)


def test_the_methods_of_an_object_count(made):
    text = "class A:\n    def __call__(self, row):\n        return 1\nf = A()\n"
    assert known(made(text)) == known(made("# moved\n" + text))
    assert known(made(text)) != known(made(text.replace("return 1", "return 2")))
    assert known(made(text)) != known(made(text.replace("class A:", "class A:\n    @property"
                                      "\n    def more(self):\n        return 3\n")))  # fmt: skip


def test_what_an_object_keeps_while_it_runs_makes_no_other_of_it():
    one = Longer(1)
    before = known(one)
    one([])
    assert known(one) == before == known(Longer(1))


def test_an_object_that_holds_itself_has_an_end():
    one = Longer(1)
    one.by = one
    itself = {"name": "tests.exec.test_function_identity.Longer"}
    assert known(one)["attributes"] == {"by": itself, "calls": 0}


def test_what_wraps_a_function_is_known_by_that(made):
    text = "import functools\n@functools.lru_cache\ndef f(row):\n    return 1\n"
    assert known(made(text)) == known(made("# moved\n" + text))
    assert known(made(text)) != known(made(text.replace("return 1", "return 2")))


def test_what_an_object_holds_and_cannot_be_told_is_said():
    message = r"a value of type builtins\.object that .*Longer uses cannot be read"
    with pytest.warns(RuntimeWarning, match=message):
        found = identity_of(Longer(object()))
    assert found["attributes"]["by"] == {"type": "builtins.object", "opaque": True}
    with pytest.warns(RuntimeWarning, match=r"the source of operator\.itemgetter cannot be read"):
        assert identity_of(itemgetter(1)) == {"name": "operator.itemgetter", "opaque": True}


def test_a_function_without_source_is_known_by_name_alone():
    space = {"__name__": "typed"}
    exec("def f(row): return 1", space)
    message = r"the source of typed\.f cannot be read, so a checkpoint knows it by its name alone"
    with pytest.warns(RuntimeWarning, match=message):
        assert identity_of(space["f"]) == {"name": "typed.f", "opaque": True}
    with warnings.catch_warnings():  # once is enough
        warnings.simplefilter("error")
        identity_of(space["f"])


def test_builtins_and_types_are_their_names():
    assert known(len) == {"name": "builtins.len"}
    assert known(dict) == {"name": "builtins.dict"}


def test_arrays_and_sets_count_by_their_content():
    def over(value):
        return identity_of(lambda row: (row, value))

    assert over(np.arange(3)) == over(np.arange(3))
    assert over(np.arange(3)) != over(np.arange(4))
    assert over(np.arange(3)) != over(np.arange(3.0))
    assert over({"a", "b", 3}) == over({3, "b", "a"})
    assert over({"a"}) != over({"b"})


def test_a_value_that_cannot_be_told_is_said_once():
    class Odd:
        pass

    value = Odd()
    with pytest.warns(RuntimeWarning, match=r"a value of type .*Odd that .*<lambda> uses cannot"):
        found = identity_of(lambda row: (row, value))
    assert found["closure"]["value"]["opaque"]
