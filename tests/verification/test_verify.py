"""Verifying finds planted faults, and nothing where there is none."""

import itertools
import threading
import time

import pytest

from tests.verification import recipes
from zephon import Pipeline, running
from zephon.errors import DataError, ExecutionError, PlanError, WrongKindError
from zephon.exec import engine, hosting, launch
from zephon.exec.delivery import steps
from zephon.exec.lanes import Topology
from zephon.verification import verify

SMALL = {"steps": 4, "ranks": (1, 2, 3, 8), "cuts": 3}


@pytest.fixture(autouse=True)
def _no_rank_stays():
    yield
    assert not [each for each in threading.enumerate() if each.name.startswith("rank ")]


@pytest.mark.parametrize("recipe", [recipes.right, recipes.plain_rows])
def test_a_right_recipe_is_the_same_everywhere(recipe):
    found = verify(recipe, **SMALL)
    assert found.same, str(found)
    assert [run.ranks for run in found.runs] == [1, 2, 3, 8]
    assert all(run.hashes == found.runs[0].hashes for run in found.runs)
    assert len(set(found.runs[0].hashes)) == 4
    assert "left out" not in str(found)
    assert all(len(run.stretches) > 1 for run in found.runs[1:])
    assert (found.rows, found.lanes) == (24, 4)


def test_hashes_depend_on_the_recipe_alone():
    first = verify(recipes.right, **SMALL, seed=1).runs[0].hashes
    assert verify(recipes.right, steps=4, ranks=[8], cuts=1, seed=2).runs[0].hashes == first
    other = verify(
        lambda: recipes.right().options(global_batch_size=48), steps=2, ranks=[1], cuts=0
    )
    assert other.runs[0].hashes != first[:2]


@pytest.mark.parametrize(
    ("fault", "parts"),
    [
        (recipes.counting, "payload tokens"),
        (recipes.timing, "payload weight"),
        (recipes.by_pipeline, "payload tokens"),
    ],
)
def test_a_function_that_depends_on_more_than_its_row_is_found(fault, parts):
    found = verify(fault(), steps=2, ranks=(1, 3), cuts=1)
    assert not found.same
    for run in found.runs[1:]:
        assert run.difference is not None and run.difference.step == 0
        assert parts in run.difference.parts


def test_an_operator_that_forgets_is_found_behind_the_first_cut():
    few = {"steps": 16, "ranks": (1, 2)}
    assert verify(recipes.forgetful, **few, cuts=0).same
    found = verify(recipes.forgetful, **few, cuts=4)
    assert not found.same
    for run in found.runs[1:]:
        assert run.difference is not None
        assert run.difference.step >= run.stretches[0].stop.step


def test_ranks_that_share_a_step_wrongly_are_found(monkeypatch):
    right = Topology.share

    def wrong(self, step, delivered=0):
        rows = right(self, step, delivered)
        return rows[::-1] if (self.dp_degree, self.dp_group_id, step) == (3, 1, 2) else rows

    monkeypatch.setattr(Topology, "share", wrong)
    found = verify(recipes.right, **{**SMALL, "cuts": 0})
    differing = [run for run in found.runs if run.difference is not None]
    assert [run.ranks for run in differing] == [3]
    assert (differing[0].difference.step, differing[0].difference.row) == (2, 8)
    assert "meta lane_id" in differing[0].difference.parts


def test_a_recipe_that_changes_is_refused_by_its_own_checkpoints():
    seeds = itertools.count()

    def make():
        return recipes.packed(Pipeline(recipes.source()).shuffle(8, seed=next(seeds)))

    found = verify(make, steps=2, ranks=[1], cuts=2)
    assert not found.same
    (run,) = found.runs[1:]
    assert "CheckpointError: restore: " in run.failure


def test_an_error_of_a_later_run_is_its_failure_and_one_of_the_first_is_raised():
    made = itertools.count()

    def make():
        number = next(made)

        def fails_late(row):
            if number > 4 and len(row["tokens"]) == 7:
                raise ValueError("too often")
            return row

        return recipes.of_a_function(fails_late)()

    found = verify(make, **SMALL)
    failed = [run for run in found.runs if run.failure]
    assert failed and all("too often" in run.failure for run in failed)
    assert found.runs[0].failure is None and not found.same
    assert "FAILED on 8 ranks in step " in str(found)

    def fails(row):
        raise ValueError("at once")

    with pytest.raises((DataError, ExecutionError), match="at once"):
        verify(recipes.of_a_function(fails), **SMALL)


def test_one_topology_is_compared_with_itself_cut():
    found = verify(recipes.right, steps=3, ranks=[2])
    assert [run.ranks for run in found.runs] == [2, 2] and found.same
    assert len(found.runs[0].stretches) == 1 < len(found.runs[1].stretches)


def test_ranks_that_do_not_divide_a_step_are_left_out():
    found = verify(recipes.right, steps=1, ranks=[1, 5, 2, 7, 2], cuts=0)
    assert [run.ranks for run in found.runs] == [1, 2]
    assert found.skipped == (5, 7)
    assert "  5 and 7 ranks: skipped, 24 rows of a step do not divide among them" in str(found)


def test_a_microbatch_that_does_not_divide_a_share_becomes_one_that_does():
    found = verify(lambda: recipes.packed(Pipeline(recipes.source()), microbatch=5), **SMALL)
    assert found.same
    assert found.runs[0].stretches[0].manner.microbatch == 4
    assert found.runs[-1].stretches[0].manner.microbatch == 3


def test_functions_of_batches_are_left_out_and_said_so():
    calls = itertools.count()
    found = verify(lambda: recipes.right().map_batch(lambda b: next(calls) and None), **SMALL)
    assert found.same and found.map_batch and "map_batch is left out" in str(found)
    assert next(calls) == 0


@pytest.mark.parametrize("dropping", [False, True])
def test_to_the_end_all_hold_the_same_steps(dropping):
    """Where a function drops rows, no rank knows beforehand how many steps there are."""

    def make():
        made = Pipeline(recipes.source(passes=3))
        if dropping:
            made.map_transform(lambda row: None if len(row["tokens"]) == 5 else row)
        return recipes.packed(made, rows=8)

    found = verify(make, ranks=[1, 2, 8], cuts=3, to_end=True)
    assert found.same and found.to_end and all(run.ended for run in found.runs), str(found)
    expected = 3 * sum(
        len(r["tokens"]) for r in recipes.ROWS if not dropping or len(r["tokens"]) != 5
    )
    assert 0.8 * expected <= len(found.runs[0].hashes) * 8 * 17 <= expected


def test_steps_beyond_the_end_are_not_missed():
    found = verify(lambda: recipes.right(passes=2), steps=500, ranks=[1, 3], cuts=2)
    assert found.same and found.runs[0].ended
    assert f"the data end after {len(found.runs[0].hashes)} steps" in str(found)


def end_early(monkeypatch, ranks):
    """Let so many ranks end after three steps, and any others where they do."""

    def wrong(topology, *given, **named):
        if topology.dp_degree == ranks:
            named["last_step"] = 3
        return steps(topology, *given, **named)

    monkeypatch.setattr(engine, "steps", wrong)


def test_a_rank_that_ends_early_or_late_is_found(monkeypatch):
    end_early(monkeypatch, 2)
    found = verify(lambda: recipes.right(passes=6), ranks=[1, 2], cuts=0, to_end=True)
    assert not found.same and found.runs[1].difference.step == 3
    steps = len(found.runs[0].hashes)
    assert f"the data end after 3 steps against {steps}" in str(found)
    end_early(monkeypatch, 1)
    found = verify(lambda: recipes.right(passes=6), ranks=[1, 2], cuts=0, to_end=True)
    assert not found.same and found.runs[1].difference.step == 3
    assert "the data end after 4 steps against 3" in str(found)


def test_a_recipe_sets_its_own_ranks_in_vain():
    found = verify(lambda: recipes.right().options(world_size=8, global_rank=5), **SMALL)
    assert found.same and len(found.runs[0].hashes) == 4


@pytest.mark.parametrize("place", ["aggregate_dir", "aggregate_store"])
def test_nothing_is_hosted_and_nobody_meets(place, tmp_path, monkeypatch):
    """Filters make lanes uneven, so ranks that can meet would do so before the first step."""
    meeting = {"aggregate_dir": str(tmp_path / "run"), "aggregate_store": {}}[place]

    def make():
        made = Pipeline(recipes.source()).map_transform(lambda row: row if row["weight"] else None)
        return recipes.packed(made).options(mtp_mode=True, **{place: meeting})

    def apart(*args, **named):
        raise AssertionError("hosted, or met")

    monkeypatch.setattr(hosting, "open_hosted", apart)
    monkeypatch.setattr(running, "open_ranks", apart)
    found = verify(make, steps=2, ranks=(1, 2), cuts=2)
    assert found.same, str(found)
    assert f"  mtp_mode, {place} are left out: the ranks are threads of this process" in str(found)
    assert not (tmp_path / "run").exists() and not (meeting if place == "aggregate_store" else ())


@pytest.mark.parametrize("how", [{"runner": "process"}, {"per_stage_runner": {0: "process"}}])
def test_many_ranks_start_no_processes_of_their_own(how, monkeypatch):
    """Thirty-two of them would each start as many as there are cores."""

    def started(*args, **named):
        raise AssertionError("a process was started")

    monkeypatch.setattr(launch, "RemoteSegment", started)
    with pytest.raises(AssertionError, match="a process was started"):
        verify(lambda: recipes.right().options(**how), **{**SMALL, "ranks": [1]})
    found = verify(lambda: recipes.right().options(**how), **{**SMALL, "ranks": [2, 8]})
    assert found.same
    assert "  runner='process' on several ranks is left out: the ranks are threads" in str(found)


def test_runs_may_go_on_in_worker_processes():
    found = verify(recipes.right, steps=2, ranks=[1, 2], cuts=1, runners=["process"])
    assert found.same
    assert [each.manner.runner for each in found.runs[1].stretches] == [None, "process"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"steps": 1.5}, "steps must be a whole number, got 1.5"),
        ({"cuts": -1}, "cuts must be at least 0"),
        ({"ranks": []}, "ranks must name at least one"),
        ({"ranks": [0]}, r"ranks\[0\] must be at least 1"),
        ({"ranks": [5, 7]}, "ranks must divide global_batch_size=24, got 5, 7"),
        ({"runners": ["fast"]}, "runners must be some of threads, inline, process"),
        ({"runners": []}, "runners must be some of"),
    ],
)
def test_arguments_that_cannot_be_are_refused(settings, said):
    with pytest.raises(PlanError, match=f"^verify: {said}"):
        verify(recipes.right, **settings)


def test_without_a_global_batch_there_are_no_steps():
    with pytest.raises(PlanError, match=r"no global_batch_size; .*add options"):
        verify(lambda: Pipeline(recipes.source()))


@pytest.mark.parametrize("recipe", [3, lambda: 3])
def test_what_is_no_recipe_is_refused(recipe):
    with pytest.raises(WrongKindError, match="recipe must be a function that makes a Pipeline"):
        verify(recipe)


def test_an_interrupted_run_ends_at_once():
    """Ranks that wait, and those inside a function, end; the interrupt goes on."""
    import _thread

    calls = itertools.count()

    def interrupts(row):
        if next(calls) == 40:
            _thread.interrupt_main()
        time.sleep(0.001)
        return row

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        verify(recipes.of_a_function(interrupts), steps=10_000, ranks=[4], cuts=0)
    assert time.monotonic() - started < 20
