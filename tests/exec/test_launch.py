"""What a run gets to work with where nobody said: workers, queue, memory."""

from tests.properties.recipes import packed, source, two_datasets
from zephon.exec.lanes import make_topology
from zephon.exec.launch import CACHE_SHARE, budget_of, workers_of
from zephon.options import DEFAULT_MEMORY_BUDGET, MOST_DEFAULT_BUDGET, RuntimeOptions


class BigGroups:
    """A work source whose row groups are large, for the arithmetic of budgets alone."""

    def __init__(self, group_bytes):
        inner = type("Data", (), {"mean_group_bytes": lambda self: group_bytes})()
        self.components = [type("Part", (), {"weight": 1.0, "dataset": inner})()]


def topology(lanes):
    return make_topology(
        global_batch_size=lanes, canonical_replicas=lanes, dp_degree=1, dp_group_id=0,
        mapping_strategy="contiguous",
    )  # fmt: skip


def test_the_default_budget_grows_with_lanes_up_to_a_bound():
    options = RuntimeOptions()
    assert budget_of(options, BigGroups(1 << 20), topology(1)) == DEFAULT_MEMORY_BUDGET
    assert budget_of(options, BigGroups(6 << 20), topology(64)) == int((64 * 6 << 20) / CACHE_SHARE)
    assert budget_of(options, BigGroups(1 << 30), topology(64)) == MOST_DEFAULT_BUDGET


def test_a_budget_that_was_set_is_kept():
    options = RuntimeOptions(memory_budget="7mb")
    assert budget_of(options, BigGroups(1 << 30), topology(64)) == 7 << 20


def test_small_data_get_the_least_budget():
    assert budget_of(RuntimeOptions(), source(two_datasets()), topology(4)) == DEFAULT_MEMORY_BUDGET


def test_workers_are_no_more_than_asked_for():
    plan = packed()._compiled()
    assert workers_of(plan, RuntimeOptions(runner="threads", max_workers=1)).count == 1
    assert workers_of(plan, RuntimeOptions(runner="inline")).runner == "inline"
    assert workers_of(plan, RuntimeOptions(prefetch_batches=3)).queue == 3
