"""The demo as a newcomer runs it, on less data; and the parts that it is made of."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from zephon.cli import main
from zephon.demo.material import make_code, make_prose, modules
from zephon.demo.progress import Progress
from zephon.demo.tokenizer import VOCABULARY, decode, train


@pytest.fixture(scope="module")
def sources() -> list[dict[str, str]]:
    return modules()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    data = tmp_path_factory.mktemp("demo")
    words = ("demo", "--data", str(data), "--documents", "300", "--batches", "10", "--steps", "2")
    program = "import sys; from zephon.cli import main; sys.exit(main())"
    done = subprocess.run(
        (sys.executable, "-c", program, *words), capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_it_shows_the_plan(shown: str) -> None:
    plan = shown[shown.index("\nPlan") : shown.index("\nBatches")]
    assert "wrap" in plan
    assert "2049" in plan.replace(",", "")


def test_it_shows_plain_lines_where_there_is_no_terminal(shown: str) -> None:
    assert "\r" not in shown
    assert "\x1b" not in shown
    assert "M tokens/s" in shown
    assert "target 70%" in shown


def test_every_rank_count_gives_the_same_steps(shown: str) -> None:
    table = shown[shown.index("\nGlobal steps") :].splitlines()
    (head,) = [line for line in table if "8 ranks" in line]
    assert all(f"{ranks} rank" in head for ranks in (1, 2, 3, 4, 8))
    steps = [line.split() for line in table if line.split()[:1] in (["0"], ["1"])]
    assert [len(set(cells[1:])) for cells in steps] == [1, 1]
    assert [len(cells) for cells in steps] == [6, 6]
    assert steps[0][1] != steps[1][1]


def test_the_sources_are_modules_and_not_their_tests(sources: list[dict[str, str]]) -> None:
    paths = {document["path"] for document in sources}
    assert {"argparse.py", "json/decoder.py"} <= paths
    assert not any({"test", "tests"} & set(path.split("/")) for path in paths)


def test_code_is_parquet_with_every_source(tmp_path: Path, sources: list[dict[str, str]]) -> None:
    made = make_code(tmp_path / "code", sources[:50])
    rows = pq.read_table(made.path).to_pylist()
    assert sorted(row["path"] for row in rows) == sorted(row["path"] for row in sources[:50])
    assert [row["text"] for row in rows] == list(made.texts)
    assert len(list(made.path.iterdir())) == 4


def test_prose_is_json_lines_in_three_forms(tmp_path: Path, sources: list[dict[str, str]]) -> None:
    made = make_prose(tmp_path / "prose", sources[:50], limit=40)
    names = sorted(path.name for path in made.path.iterdir())
    assert names == ["prose-0.jsonl", "prose-1.jsonl", "prose-2.jsonl.gz", "prose-3.jsonl.zst"]
    plain = (made.path / names[0]).read_text(encoding="utf-8")
    packed = gzip.decompress((made.path / names[2]).read_bytes()).decode()
    texts = [json.loads(line)["text"] for line in (plain + packed).splitlines()]
    assert texts == [*made.texts[:10], *made.texts[20:30]]


def test_training_twice_gives_one_tokenizer(tmp_path: Path, sources: list[dict[str, str]]) -> None:
    texts = [document["text"] for document in sources[:100]]
    assert train(tmp_path / "one", texts) == train(tmp_path / "two", texts) == VOCABULARY
    first, second = (tmp_path / name / "tokenizer.json" for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()
    assert decode(tmp_path / "one", [0, 1]) == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()])
def test_progress_compares_shares_with_targets(out: io.StringIO) -> None:
    progress = Progress(out, total=10, targets={"a": 0.75, "b": 0.25})
    assert not progress.due()
    progress.close({"a": 4, "b": 1}, {"a": 100, "b": 300})
    shown = out.getvalue()
    assert "[##########----------]  50 %" in shown
    assert "a 80.0% (target 75%)  b 20.0% (target 25%)" in shown
    assert "400 tokens" in shown
    assert "a 25.0%, b 75.0%" in shown
    assert ("\r" in shown) == out.isatty()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "must be a whole number of at least 1, got '0'"),
        (["--batches", "-3"], "must be a whole number of at least 1, got '-3'"),
        (["--data", __file__], "--data must be a directory that can be written"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) if "--data" not in arguments else nullcontext():
        assert main(["demo", *arguments]) != 0
    assert message in capsys.readouterr().err
