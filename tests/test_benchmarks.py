"""The harness of the benchmarks: what it measures, and that it weighs nothing on that."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import (
    checkpoint,
    packing,
    pairs,
    restore,
    resumable,
    shuffle_memory,
    training,
)
from benchmarks.__main__ import line
from benchmarks.delivered import Counts, Delivered, count_plainly
from benchmarks.jobs import JOBS, WRAP, Job, contenders
from benchmarks.ours import batches, check, described
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
        "import benchmarks.__main__, benchmarks.shuffle_memory, benchmarks.checkpoint, "
        "benchmarks.restore, benchmarks.resumable; "
        "print(*(m for m in sys.modules if m in {'numpy', 'zephon'}))"
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


@pytest.mark.parametrize("name", JOBS)
def test_the_public_package_is_given_the_same_job(name: str, tmp_path: Path) -> None:
    (tmp_path / "peer-venv" / "bin").mkdir(parents=True)
    (tmp_path / "peer-venv" / "bin" / "python").touch()
    job = JOBS[name]
    theirs = {each.name: each.command for each in contenders(name, tmp_path)}
    described = json.loads(theirs["public"][3])
    assert described["source"] == job.source()
    assert described["steps"] == [[step, dict(keywords)] for step, keywords in job.steps]
    assert ("tuned" in theirs) == (not job.text)
    if not job.text:
        assert theirs["tuned"][: len(theirs["public"])] == theirs["public"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of lists, as far apart in length as the real ones but shorter; one of long."""
    folder, draw = tmp_path_factory.mktemp("corpus"), np.random.default_rng(0)
    for name, mean, count in (
        ("tokens-275", 10, 24_000),
        ("tokens-2200", 80, 1_500),
        ("long", 1_100, 1_500),
    ):
        lengths = draw.integers(1, 2 * mean, count)
        tokens = pa.array(draw.integers(0, 50_000, lengths.sum()), pa.int32())
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        table = pa.table(
            {"input_ids": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), tokens)}
        )
        (folder / name).mkdir()
        for shard in range(3):
            part = table.slice(count // 3 * shard, count // 3)
            pq.write_table(part, folder / name / f"{shard}.parquet", row_group_size=500)
    return folder


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if not job.text])
def test_jobs_on_lists_give_what_their_data_say(name: str, corpus: Path) -> None:
    check(JOBS[name], corpus)


@pytest.mark.parametrize("name", packing.ALGORITHMS)
def test_packing_counts_what_was_delivered(name: str, corpus: Path) -> None:
    """`figures_of` itself compares with a slow count and with the policy alone."""
    figures = packing.figures_of(packing.ALGORITHMS[name], corpus, "long")
    cuts = name in {"wrap", "best_fit_wrap"}
    assert 0.8 < figures.fill <= 1
    assert (figures.fill == 1) == cuts
    assert (figures.cut > 0) == cuts
    assert (figures.left_out == 0) == cuts


def test_a_document_in_two_rows_is_cut_and_one_in_two_batches_is_not_two(corpus: Path) -> None:
    """Lists of about 80 in rows of 2,049: nearly each row begins in the middle of one."""
    job = Job(title="", data={"tokens-2200": 1.0}, text=False, steps=(WRAP,))
    found = list(batches(described(job, corpus)))
    delivered = Delivered()
    for batch in found:
        delivered.add(batch)
    counts = delivered.counts()
    assert counts == count_plainly(found)
    assert counts.tokens == counts.rows * 2049 == len(found) * 8 * 2049
    assert 0.9 * counts.rows < counts.cut < counts.rows
    assert Counts(rows=2, tokens=30, padding=10, documents=8, cut=2).fill == 0.75
    assert Counts(rows=2, tokens=30, padding=10, documents=8, cut=2).cut_share == 0.25


def test_a_batch_that_came_twice_is_seen(corpus: Path) -> None:
    job = Job(title="", data={"tokens-2200": 1.0}, text=False, steps=(WRAP,))
    first, *_ = batches(described(job, corpus))
    lengths = [[np.full(500, 10_000)] * 3]
    once, twice = Delivered(), Delivered()
    for delivered, times in ((once, 1), (twice, 2)):
        for _ in range(times):
            delivered.add(first)
    assert once.check(lengths).tolist() == [10_000 * (1_500 - once.counts().documents)]
    with pytest.raises(AssertionError, match="parts of a document do not meet"):
        twice.check(lengths)


READING = Reading(tokens=3_000_000, seconds=1.0, first_batch=0.1, imports_kb=0, peak_kb=1_000_000)


def test_tables_have_a_cell_under_each_head() -> None:
    figures = packing.Figures(fill=0.995, cut=0.125, left_out=0.0, microseconds=1.5)
    names = list(packing.ALGORITHMS)
    lines = packing.table(dict.fromkeys(names, figures), {n: [READING] for n in names}).split("\n")
    assert {row.count("|") for row in lines} == {8}
    assert lines[2] == "| wrap | 3.0 [3.0 to 3.0] | 99.50 | 0.50 | 12.50 | 0.00 | 1.50 |"

    shape = training.Shape(rows=1, length=100, documents=5)
    twice = training.Shape(rows=1, length=100, documents=10)
    quick = training.Figures(Spread.of([0.5]), 100)
    slower = training.Figures(Spread.of([0.6]), 100)
    lines = training.table({shape: quick, twice: slower}).split("\n")
    assert {row.count("|") for row in lines} == {7}
    assert lines[3] == "| 1 x 100 | 10 | 0.60 [0.60 to 0.60] | 20000 | 6000.0 | 100 |"


def test_the_public_package_stands_in_the_table_twice_where_it_was_tuned() -> None:
    faster = Reading(tokens=60_000_000, seconds=1.0, first_batch=0.1, imports_kb=0)
    found = line("job", {"zephon": [faster], "public": [READING], "tuned": [READING]})
    cells = [cell.strip() for cell in found.strip("|").split("|")]
    assert cells[:5] == ["job", "60.0 [60.0 to 60.0]", "", "3.00 (3.00)", "20x (20x)"]
    assert line("job", {"zephon": [faster]}).count("|") == found.count("|")


def test_training_runs_as_many_bytecodes_for_few_tokens_as_for_many() -> None:
    small = training.Shape(rows=2, length=65, documents=3)
    large = training.Shape(rows=3, length=2_049, documents=300)
    found = training.measured((small, large), calls=1)
    assert 100 < found[small].bytecodes < 20_000
    assert found[large].bytecodes <= training.MOST_BYTECODES * found[small].bytecodes


def test_a_shape_is_paired_with_the_one_of_twice_the_documents() -> None:
    shapes = [training.Shape(1, 9, n) for n in (2, 4, 8)] + [training.Shape(2, 9, 16)]
    assert training.doubled(shapes) == [(shapes[0], shapes[1]), (shapes[1], shapes[2])]


def test_the_memory_of_a_shuffle_is_beside_its_tokens() -> None:
    place = shuffle_memory.PLACES["rows"]
    assert [step for step, _ in place.job(shuffled=True).steps] == ["pack_flat", "shuffle"]
    assert place.job(shuffled=False).steps == (WRAP,)
    grown = Reading(tokens=1, seconds=1.0, first_batch=0.1, imports_kb=0, peak_kb=1_050_000)
    found = shuffle_memory.line(place, 5_000_000, {"without": [READING], "shuffled": [grown]})
    assert found.endswith("| 20.0 | 1024 [1024 to 1024] | 1075 [1075 to 1075] | +51 | 2.6x |")


def test_saving_is_timed_after_each_of_some_batches(corpus: Path) -> None:
    found = checkpoint.saved(replace(checkpoint.CASES["best_fit"], batches=20), corpus)
    assert {len(found[name]) for name in ("seconds", "processor", "bytes_seconds")} == {15}
    assert found["bytes"] < found["json"] < 100_000
    theirs = {"seconds": [0.5], "processor": [0.4], "json": 2_000_000}
    cells = [each.strip() for each in checkpoint.line("wrap", [found], theirs).split("|")]
    assert cells[-4:-1] == ["500.0 [500.0 to 500.0]", "400.0 [400.0 to 400.0]", "2,000"]
    assert checkpoint.line("wrap", [found], None).count("|") == 10


@pytest.mark.parametrize("name", restore.CASES)
def test_a_restore_is_timed_up_to_the_batch_that_follows(
    name: str, corpus: Path, tmp_path: Path
) -> None:
    case = restore.CASES[name]
    positions = (50_000, 400_000)  # in the second pass
    restore.reach(case, corpus, tmp_path, positions)
    found = [restore.restore(case, corpus, tmp_path, position) for position in positions]
    assert [each["same"] for each in found] == [True, True]
    assert restore.line("a job", positions[0], found, []).startswith("| a job | 50,000 | 0.")
    (tmp_path / "50000").write_bytes((tmp_path / "400000").read_bytes())
    other = restore.restore(case, corpus, tmp_path, 50_000)
    with pytest.raises(ValueError, match="at 50,000: zephon goes on with another batch"):
        restore.line("a job", 50_000, [other], [])


def test_without_histories_a_run_gives_the_same(corpus: Path) -> None:
    """In a process of its own, since it takes them from every lane of the process."""
    program = f"""
from pathlib import Path
from benchmarks import resumable
from benchmarks.jobs import JOBS
from benchmarks.ours import batches, described

def told():
    for name in ("token_lists_275", "token_lists_best_fit", "token_lists_shuffle"):
        ran = batches(described(JOBS[name], Path({str(corpus)!r})))
        yield [(batch.ids, batch.to_training()["input_ids"].tolist()) for batch in ran]

with_histories = list(told())
resumable.leave_out_histories()
print(list(told()) == with_histories, min(map(len, with_histories)) > 10)
"""
    assert start(python(program))[0].split() == ["True", "True"]


def test_without_checks_a_run_gives_the_same(corpus: Path) -> None:
    """In a process of its own, since it takes them from the whole process."""
    program = f"""
from pathlib import Path
from benchmarks import robust
from benchmarks.jobs import JOBS
from benchmarks.ours import batches, described

def told():
    for name in ("token_lists_275", "token_lists_best_fit"):
        ran = batches(described(JOBS[name], Path({str(corpus)!r})))
        yield [(batch.ids, batch.to_training()["input_ids"].tolist()) for batch in ran]

with_checks = list(told())
robust.leave_out_checks()
print(list(told()) == with_checks, min(map(len, with_checks)) > 10)
"""
    assert start(python(program))[0].split() == ["True", "True"]


def test_all_tokens_of_a_pass_are_delivered_or_accounted_for(corpus: Path) -> None:
    found = resumable.counted(resumable.COUNTED["best_fit"], corpus)
    assert 0 < found["delivered"] < found["tokens"]
    assert found["delivered"] + sum(found["dropped"].values()) == found["tokens"]
    assert resumable.told({"tokens": 9, "delivered": 6, "dropped": {"why": 3}}) == "3 (3 why)"


def test_pairs_are_compared_by_the_interval_of_their_median() -> None:
    found = {"with": [1.0 + n / 100 for n in range(15)], "without": [1.0] * 15}
    assert pairs.line("a job", found).startswith("| a job | 1.070 [1.030 to 1.110] | 1.07 ")
    assert pairs.interval([1.0, 2.0, 3.0]) == (1.0, 3.0)
