"""What a run gets to work with where nobody said: workers, queue."""

from tests.properties.recipes import packed
from zephon.exec.launch import workers_of
from zephon.options import RuntimeOptions


def test_workers_are_no_more_than_asked_for():
    plan = packed()._compiled()
    assert workers_of(plan, RuntimeOptions(runner="threads", max_workers=1)).count == 1
    assert workers_of(plan, RuntimeOptions(runner="inline")).runner == "inline"
    assert workers_of(plan, RuntimeOptions(prefetch_batches=3)).queue == 3
