"""Recipes by name: Python files that are run, and what is said where one is none."""

import re
import sys

import pytest

from zephon import Pipeline
from zephon.errors import PlanError
from zephon.recipe import load_recipe

GOOD = """
from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource

rows = Dataset.from_dict("rows", {0: InMemoryShard([{"text": "to be"}, {"text": "or not"}])})


def loud(row):
    return {"text": row["text"].upper()}


def make():
    source = StaticMixtureWorkSource(datasets=[rows], mixture={"rows": 1.0})
    return Pipeline(source).map_transform(loud)
"""


@pytest.fixture(autouse=True)
def _modules_as_before():
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("job_"):
            del sys.modules[name]


def written(folder, text, name="job_recipe.py"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def refusal(name):
    with pytest.raises(PlanError) as raised:
        load_recipe(name)()
    return str(raised.value)


def test_a_function_makes_a_new_pipeline_at_every_call(tmp_path):
    recipe = load_recipe(written(tmp_path, GOOD) + ":make")
    one, other = recipe(), recipe()
    assert isinstance(one, Pipeline) and one is not other
    assert [record.payload["text"] for record in one] == ["TO BE", "OR NOT"]
    assert one.fingerprint() == other.fingerprint()


def test_a_function_is_known_by_the_name_of_its_file(tmp_path):
    """The same file in another directory, run again, has the same fingerprint."""
    (tmp_path / "moved").mkdir()
    first = load_recipe(written(tmp_path, GOOD) + ":make")().fingerprint()
    assert load_recipe(written(tmp_path / "moved", GOOD) + ":make")().fingerprint() == first


def test_a_file_that_was_changed_is_run_anew(tmp_path):
    first = load_recipe(written(tmp_path, GOOD) + ":make")().fingerprint()
    changed = GOOD.replace("upper", "lower")
    assert load_recipe(written(tmp_path, changed) + ":make")().fingerprint() != first


def test_a_recipe_imports_what_lies_beside_it(tmp_path):
    written(tmp_path, "WORDS = ['beside']\n", "job_words.py")
    text = GOOD.replace("from zephon import", "from job_words import WORDS\nfrom zephon import", 1)
    text = text.replace('{"text": "or not"}', '{"text": WORDS[0]}')
    recipe = load_recipe(written(tmp_path, text) + ":make")
    assert [record.payload["text"] for record in recipe()] == ["TO BE", "BESIDE"]


def test_worker_processes_find_its_functions(tmp_path):
    recipe = load_recipe(written(tmp_path, GOOD) + ":make")
    made = recipe().options(runner="process", max_workers=1)
    assert [record.payload["text"] for record in made] == ["TO BE", "OR NOT"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no data here')", r"line 1 raised ValueError: no data here"),
        ("x = 1\nimport sys\nsys.exit('stop')", r"line 3 raised SystemExit: stop"),
        ("def make(:", r"line 1 raised SyntaxError"),
        ("def make():\n    return {}['gone']", r"line 2 raised KeyError: 'gone'"),
        ("def make(path):\n    return path", r"raised TypeError: .*missing 1 required positional"),
        ("def make():\n    return [1]", r"expected a Pipeline, got list; return what"),
        ("def make():\n    yield 1", r"expected a Pipeline, got generator"),
        ("def mak():\n    pass", r"has no function 'make'; did you mean 'mak'\?"),
        ("make = 3", r"has no function 'make'; there are none"),
        (GOOD + "\nonly = make()\n\ndef make():\n    return only", None),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(tmp_path, body, said):
    name = written(tmp_path, body) + ":make"
    if said is None:
        recipe = load_recipe(name)
        recipe()
        with pytest.raises(PlanError, match=r"a new Pipeline at every call, got one twice"):
            recipe()
        return
    told = refusal(name)
    assert told.startswith(f"recipe {name!r}: ")
    assert re.search(said, told), told


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("{}/gone.py:make", "there is no file"),
        ("{}/gone.toml", "there is no file"),
        (
            "{}/job.py",
            "the function that makes the pipeline is missing; write '{}/job.py:function'",
        ),
        ("{}/job.yaml", "expected 'file.py:function' or 'file.toml'"),
        ("{}", "expected 'file.py:function' or 'file.toml'"),
        ("", "expected 'file.py:function' or 'file.toml'"),
        ("{}/folder.py:make", "cannot be read"),
        ("{}/latin.toml", "cannot be read"),
    ],
)
def test_a_name_that_names_no_recipe_is_refused(tmp_path, name, said):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe")
    assert said.format(tmp_path) in refusal(name.format(tmp_path))


def test_a_file_does_not_take_the_name_of_a_module_that_is_loaded(tmp_path):
    assert "a module 'json' is loaded already" in refusal(
        written(tmp_path, GOOD, "json.py") + ":make"
    )
    assert sys.modules["json"].loads("1") == 1
