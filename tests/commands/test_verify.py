"""The command `zephon verify`: what it prints, and its exit codes."""

import sys

import pytest

from zephon import cli
from zephon.recipe import load_recipe

RECIPES = """
import itertools
from tests.verification import recipes
from tests.verification.recipes import right

calls = itertools.count()


def endless_steps():
    return right().options(global_batch_size=None)


def counts():
    return recipes.of_a_function(lambda row: {**row, "tokens": [next(calls), *row["tokens"][1:]]})()


def fails():
    raise RuntimeError("no data here")


def interrupted():
    raise KeyboardInterrupt
"""
SMALL = ("--steps", "2", "--ranks", "1,2,5", "--cuts", "1")


@pytest.fixture
def file(tmp_path):
    before = list(sys.path)
    path = tmp_path / "job_verified.py"
    path.write_text(RECIPES)
    yield path
    sys.path[:] = before
    sys.modules.pop("job_verified", None)


def test_the_same_everywhere_is_0(file, capsys):
    assert cli.main(["verify", f"{file}:right", *SMALL]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Global steps of 24 rows in 4 lanes: SHA-256 of all that each row holds"
    assert shown[1].split() == ["step", "1", "rank", "2", "ranks"]
    for number, line in enumerate(shown[2:4]):
        step, one, other = line.split()
        assert (int(step), one) == (number, other) and len(one) == 8
    assert shown[4] == "Restarts, by the number of ranks at the beginning:"
    assert shown[5].startswith("  2 ranks: after step 0: 1 rank, ")
    assert shown[6] == "  5 ranks: skipped, 24 rows of a step do not divide among them"
    assert shown[7:] == ["same: 2 steps on 2 topologies with 1 cut"]


def test_a_difference_is_1_and_says_where(file, capsys):
    assert cli.main(["verify", f"{file}:counts", *SMALL]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(
        "DIFFERENT at step 0: 2 ranks against 1 rank, first in row 0, of lane 0: "
    )
    assert "payload tokens" in last


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fails", "line 18 raised RuntimeError: no data here"),
        ("endless_steps", "no global_batch_size"),
        ("count", "has no function 'count'; did you mean 'counts'?"),
    ],
)
def test_what_cannot_be_verified_is_2(file, name, said, capsys):
    assert cli.main(["verify", f"{file}:{name}", *SMALL]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("zephon verify: ") and said in told.err


@pytest.mark.parametrize(
    "words", [("--ranks", "1,two"), ("--steps", "many"), ("--ranks", ""), ("--nonsense",)]
)
def test_a_wrong_word_is_2(file, words, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["verify", f"{file}:right", *words])
    assert end.value.code == 2
    assert "usage: zephon" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--steps", "0"), ("--cuts", "-1"), ("--runners", "fast")])
def test_a_number_that_cannot_be_is_2(file, words, capsys):
    assert cli.main(["verify", f"{file}:right", *words]) == 2
    assert capsys.readouterr().err.startswith(f"zephon verify: {words[0][2:]} must be ")


def test_an_interrupt_is_130(file, capsys):
    assert cli.main(["verify", f"{file}:interrupted", *SMALL]) == 130


def test_a_toml_recipe_is_verified(tmp_path, capsys):
    from tests.verification.recipes import ROWS
    from tests.written import dataset

    dataset("parquet", tmp_path / "words", ROWS, name="words")
    path = tmp_path / "job.toml"
    path.write_text(
        f"""
        [[datasets]]
        name = "words"
        path = "{tmp_path}/words"

        [source]
        mixture = {{ words = 1 }}
        stop_after_passes = 9

        [[steps]]
        call = "pack_flat"
        max_length = 17
        algorithm = "wrap"
        tokens_field = "tokens"

        [[steps]]
        batch = 4

        [options]
        global_batch_size = 24
        mtp_mode = true
        aggregate_dir = "{tmp_path}/run"
        """
    )
    assert load_recipe(path)().fingerprint() == load_recipe(path)().fingerprint()
    assert cli.main(["verify", str(path), *SMALL]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  mtp_mode, aggregate_dir are left out: the ranks are threads of this process",
        "same: 2 steps on 2 topologies with 1 cut",
    ]
