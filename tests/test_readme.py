"""The README is run: its Python in order on small real data, its paths and commands looked up."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from tests.odd_files.table import table
from zephon import Dataset, Pipeline, StaticMixtureWorkSource, cli
from zephon.demo.material import make_code, make_prose, modules
from zephon.demo.tokenizer import train
from zephon.recipe import load_recipe
from zephon.steps import Steps

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OUTSIDE = ("data/", "bench-data/")  # what a reader brings, or what a command makes


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and the line of the README where it starts."""

    language: str
    text: str
    line: int


def blocks() -> list[Block]:
    """List the fenced blocks, in order."""
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    return [Block(m[1], m[2], README[: m.start()].count("\n") + 1) for m in found]


def test_the_python_runs_and_prints_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `text` block right after a Python block is what that prints; `...` stands for anything."""
    sources = modules()[:150]
    made = [
        make_prose(tmp_path / "data/prose", sources),
        make_code(tmp_path / "data/code", sources),
    ]
    train(tmp_path / "data/tokenizer", [text for dataset in made for text in dataset.texts])
    monkeypatch.chdir(tmp_path)

    names: dict[str, object] = {"__name__": "__main__"}
    listed = blocks()
    assert any(block.language == "python" for block in listed)
    for block, following in zip(listed, [*listed[1:], None], strict=True):
        if block.language != "python":
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block.text, f"README.md line {block.line}", "exec"), names)
        if following is not None and following.language == "text" and adjacent(block, following):
            same = doctest.OutputChecker().check_output(
                following.text, printed.getvalue(), doctest.ELLIPSIS
            )
            assert same, f"README.md line {following.line}: it prints\n{printed.getvalue()}"


def test_the_toml_recipe_is_the_calls_that_it_mirrors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_prose(tmp_path / "data/prose", modules()[:40])
    train(tmp_path / "data/tokenizer", ["to be or not to be"] * 9)
    monkeypatch.chdir(tmp_path)
    (recipe,) = [block.text for block in blocks() if block.language == "toml"]
    Path("job.toml").write_text(recipe, encoding="utf-8")
    prose = Dataset.from_path("prose", "data/prose", schema={"text": "string"})
    calls = (
        Pipeline(StaticMixtureWorkSource([prose], {"prose": 1}, seed=42))
        .filter(pl.sql_expr("LENGTH(text) > 500"))
        .tokenize(tokenizer_id="data/tokenizer", field="text")
        .pack_flat(max_length=513, algorithm="wrap")
        .batch(8)
        .options(global_batch_size=16)
    )
    assert load_recipe("job.toml")().fingerprint() == calls.fingerprint()


def adjacent(block: Block, following: Block) -> bool:
    """Tell whether no more than an empty line stands between two blocks."""
    return following.line - (block.line + block.text.count("\n") + 2) <= 1


def test_the_table_of_odd_files_is_that_of_their_tests() -> None:
    section = README.split("\n### What happens when my file has …\n")[1].split("\n## ")[0]
    assert table() in section, "make it anew: python -m tests.odd_files.table"


def test_every_path_it_names_exists() -> None:
    named = set(re.findall(r"`([\w./-]+/[\w./-]*|[\w-]+\.(?:md|toml|txt|py))`", README))
    named |= {target for target in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in target}
    missing = [
        path for path in named if not path.startswith(OUTSIDE) and not (ROOT / path).exists()
    ]
    assert not missing, f"README.md names {missing}, which are not there"


def test_every_command_it_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b", README)) <= targets
    commands = {command.name for command in cli.COMMANDS}
    assert set(re.findall(r"`zephon ([a-z]+)", README)) <= commands
    for module in re.findall(r"python -m (benchmarks\.\w+)", README):
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists(), module


def test_the_table_of_steps_names_every_call() -> None:
    """What a user can call to add a step, and nothing else, stands in the first column."""
    section = README.split("\n## Steps\n")[1].split("\n\n`head(n)`")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = re.findall(r"`(\w+)`", "\n".join(rows))
    calls = {name for name in dir(Steps) if not name.startswith("_")}
    assert sorted(named) == sorted(calls)
