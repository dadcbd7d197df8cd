"""What a run gets to work with where nobody said: workers, queue."""

from tests.properties.recipes import packed, source, two_datasets
from zephon import Pipeline
from zephon.exec.launch import workers_of
from zephon.exec.runners import usable_cores
from zephon.options import RuntimeOptions


def test_workers_are_no_more_than_asked_for():
    plan = packed()._compiled()
    assert workers_of(plan, RuntimeOptions(runner="threads", max_workers=1)).count == 1
    assert workers_of(plan, RuntimeOptions(runner="inline")).runner == "inline"
    assert workers_of(plan, RuntimeOptions(prefetch_batches=3)).queue == 3


def test_worker_processes_are_no_more_than_may_be_inside_a_function():
    pipe = Pipeline(source(two_datasets())).map_transform(len, parallelism=1)
    count = workers_of(pipe._compiled(), RuntimeOptions(runner="process")).count
    assert count == 1
    wide = Pipeline(source(two_datasets())).map_transform(len, parallelism=2)
    assert workers_of(wide._compiled(), RuntimeOptions(runner="process")).count == min(
        2, usable_cores()
    )
