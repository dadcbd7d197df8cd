"""The harness of the benchmarks: what it measures, and that it weighs nothing on that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.jobs import JOBS, contenders
from benchmarks.timing import Contender, Reading, Spread, alternate, run, start

ROOT = Path(__file__).parents[1]

JOB = """
from benchmarks.timing import measure

def batches():
    held = {held} * b"x"
    yield from (5, 10, 10)

measure(batches)
"""


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}")


def test_the_first_batch_is_timed_apart() -> None:
    reading = run(python(JOB.format(held=0)))
    assert reading.tokens == 20
    assert 0 < reading.seconds < 1
    assert 0 <= reading.first_batch < 1


def test_memory_is_that_of_the_job_and_not_of_the_imports() -> None:
    """Measured from a small process, as benchmarks do: this one holds more than the job."""
    job = python(JOB.format(held=100_000_000))
    program = f"from benchmarks.timing import run; print(run({job!r}).growth_mb)"
    assert 90 < float(start(python(program))[0]) < 130


def test_contenders_take_turns(capfd: pytest.CaptureFixture[str]) -> None:
    job = python(JOB.format(held=0))
    found = alternate([Contender("a", job), Contender("b", job)], rounds=2)
    assert {name: len(readings) for name, readings in found.items()} == {"a": 2, "b": 2}
    assert [line.split()[2] for line in capfd.readouterr().err.splitlines()] == ["a", "b"] * 2


def test_a_failing_contender_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"exit code 1\n[\s\S]*no such thing"):
        start(python("raise ValueError('no such thing')"))


def test_the_harness_imports_no_library() -> None:
    """A child's peak memory includes what its parent held when it started the child."""
    program = (
        "import benchmarks.__main__; print(*(m for m in sys.modules if m in {'numpy', 'zephon'}))"
    )
    assert start(python(program))[0].split() == []


def test_a_rate_is_millions_of_tokens_a_second() -> None:
    reading = Reading(tokens=3_000_000, seconds=2.0, first_batch=0.1, imports_kb=1000, peak_kb=2000)
    assert reading.rate == 1.5
    assert reading.growth_mb == pytest.approx(1.024)
    assert str(Spread.of([2.0, 1.0, 4.0])) == "2.00 [1.00 to 4.00]"


@pytest.mark.parametrize("name", JOBS)
def test_every_job_has_contenders(name: str, tmp_path: Path) -> None:
    names = [contender.name for contender in contenders(name, tmp_path)]
    assert names == ["zephon", "roofline"] if JOBS[name].roofline else ["zephon"]
