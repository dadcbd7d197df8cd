"""A pipeline in another process: it is the same, though nobody there can read its functions."""

import copy
import importlib.util
import linecache
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import cloudpickle
import pytest

from tests.cells import cell
from tests.properties.recipes import packed, rows, source, two_datasets
from zephon import Pipeline
from zephon.exec import function_identity

ROOT = Path(__file__).parents[1]

# All that has a name or source of its own in the main program, and nowhere else.
SCRIPT = """
import pickle, subprocess, sys

import cloudpickle

from tests.custom_sources import Dealt
from tests.properties.recipes import rows
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.ops import BaseOp, OpTraits

CHILD = '''
import pickle, sys, warnings
warnings.simplefilter("error")
from tests.properties.recipes import rows
pipe = pickle.load(sys.stdin.buffer).batch(1).options(runner=sys.argv[1], max_workers=1)
found = [pipe.fingerprint(), pipe.checkpoint(), rows(pipe), pipe.checkpoint()]
pickle.dump(found, sys.stdout.buffer)
'''


class Mine(Dealt):
    pass


class Count(BaseOp):
    seen = 0

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def process_many(self, elems):
        self.seen += len(elems)
        return elems


class Longer:
    def __init__(self, least):
        self.least = least

    def __call__(self, row):
        return row if len(row["input_ids"]) >= self.least else None


def shifted(by):
    return lambda row: {**row, "input_ids": [each + by for each in row["input_ids"]]}


def build():
    data = Dataset.from_dict("a", {
        n: InMemoryShard([{"input_ids": [n, i] * (1 + i % 3)} for i in range(9)]) for n in range(2)
    })
    samples = [("a", (0, n, i)) for n in range(2) for i in range(9)]
    pipe = Pipeline(Mine({0: data}, samples)).map_transform(shifted(3)).add_op(Count())
    pipe.map_transform(Longer(3)).pack_flat(max_length=5, algorithm="wrap")
    return pipe.options(runner="inline", global_batch_size=2)


def check(pipe, skip, runner):
    sent = cloudpickle.dumps(pipe)
    pipe.batch(1)
    command = [sys.executable, "-c", CHILD, runner]
    done = subprocess.run(command, input=sent, stdout=subprocess.PIPE)
    fingerprint, begun, found, ended = pickle.loads(done.stdout)
    assert fingerprint == pipe.fingerprint() == build().batch(1).fingerprint()
    assert begun == pipe.checkpoint()
    assert rows(pipe) == found == rows(build().batch(1))[skip:] != []
    assert ended == pipe.checkpoint()
    assert rows(build().batch(1).restore(ended)) == []


if __name__ == "__main__":
    pipe = build()
    check(pipe, 0, "inline")
    items = iter(pipe)  # again, from the beginning
    next(items), next(items), next(items)
    state = pipe.checkpoint()
    items.close()
    check(build().restore(state), 3, "process")
    print("done")
"""


def test_a_pipeline_of_the_main_program_is_the_same_in_a_child(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.fixture
def cut():
    return cell("def cut(row):\n    return {'input_ids': row['input_ids'][:3]}\n", "cut")


def over(function):
    return Pipeline(source(two_datasets())).map_transform(function).options(runner="inline")


def test_a_function_of_a_notebook_is_known_after_it_was_sent_twice(cut):
    here = over(cut)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there = pickle.loads(cloudpickle.dumps(here))
        further = pickle.loads(cloudpickle.dumps(there))
        assert there.fingerprint() == further.fingerprint() == here.fingerprint()
        others = over(lambda row: row), over(cut).map_transform(cut)
        assert here.fingerprint() not in [each.fingerprint() for each in others]
        for each in (here, there, further, copy.copy(there), copy.deepcopy(further)):
            each.map_transform(rows_as_they_are).pack_flat(max_length=4, algorithm="wrap").batch(2)
        assert there.fingerprint() == further.fingerprint() == here.fingerprint()
    assert rows(further) == rows(here)
    assert rows(here.restore(there.checkpoint())) == rows(there)


def rows_as_they_are(row):
    return row


def test_what_is_said_of_a_step_by_name_is_not_said_again(cut):
    here = over(rows_as_they_are).map_transform(cut, fingerprint="1")
    there = pickle.loads(cloudpickle.dumps(here))
    assert there.fingerprint() == here.fingerprint()


def test_a_copy_here_knows_its_functions_as_they_are(cut):
    """What was kept of them is for another process: here they may still be given something."""
    kept = [1]
    here = over(lambda row: kept and row)
    copied = copy.copy(here)
    there = pickle.loads(cloudpickle.dumps(here))
    before = here.fingerprint()
    kept.append(2)
    assert copied.fingerprint() == here.fingerprint() != before == there.fingerprint()


def test_a_pickle_knows_its_functions_after_their_file_is_gone(tmp_path, monkeypatch):
    file = tmp_path / "functions_gone.py"
    file.write_text("def cut(row):\n    return {'input_ids': row['input_ids'][:3]}\n")
    spec = importlib.util.spec_from_file_location("functions_gone", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "functions_gone", module)
    spec.loader.exec_module(module)
    here = over(module.cut)
    sent, wanted = pickle.dumps(here), here.fingerprint()
    file.unlink()
    linecache.clearcache()
    monkeypatch.setattr(function_identity, "_trees", {})  # as another process has read none
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(sent).fingerprint() == wanted
    with pytest.warns(RuntimeWarning, match="source of functions_gone.cut cannot be read"):
        assert over(module.cut).fingerprint() != wanted


def test_what_runs_stays_behind_and_a_state_that_waits_goes_along():
    running = packed()
    items = iter(running)
    next(items), next(items)
    state, whole = running.checkpoint(), rows(packed())
    assert rows(pickle.loads(pickle.dumps(running))) == whole
    rest = rows(packed().restore(state))
    for carry in (copy.copy, copy.deepcopy, lambda pipe: pickle.loads(pickle.dumps(pipe))):
        other = carry(packed().restore(state, allow="partial_step"))
        assert other.checkpoint() == state
        assert rows(other) == rest
    assert sum(len(batch) for batch in items) + 4 == len(whole)
