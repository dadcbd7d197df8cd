"""From the floors of a plan to what stands between them."""

from tests.written import in_order
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.exec.entries import entries_of
from zephon.exec.floors import floors_of
from zephon.exec.parts import Materials
from zephon.io.group_cache import GroupCache
from zephon.planner.compiler import compile_plan


def entries(build):
    rows = [{"n": n, "input_ids": [n]} for n in range(9)]
    source = in_order(Dataset.from_dict("d", {0: InMemoryShard(rows)}))
    plan = compile_plan(build(Pipeline(source))._node)
    return entries_of(floors_of(plan), Materials(source, {}, GroupCache(0)), lambda layout: None)


def through(state, records):
    return state, records


def keeps(state):
    return state


def packed(pipe):
    return pipe.pack_flat(4, algorithm="wrap", tokens_field="input_ids")


def test_a_plan_of_one_floor_has_none():
    assert entries(packed) == []


def test_each_floor_but_the_first_has_one_lowest_first():
    found = entries(
        lambda p: (
            p.stateful_transform("a", init_state=list, push=through)
            .shuffle(3)
            .stateful_transform(
                "b", init_state=list, push=through, snapshot=keeps, restore=keeps, flush=keeps
            )
        )
    )
    assert [each.step.label for each in found] == [
        "stateful_transform 'a'",
        "stateful_transform 'b'",
    ]
    assert [each.every > 0 for each in found] == [True, False]
    assert [each.step.gives_all_back for each in found] == [False, True]
    assert [list(each.step.datasets) for each in found] == [[0], [0]]


def test_tokens_are_carried_where_the_floors_above_have_none():
    behind = entries(lambda p: packed(p).map_transform(dict).shuffle(2))
    assert [each.carries_tokens for each in behind] == [True]
    assert len(behind[0].noted) == len(behind[0].measures) + 1
    below = entries(lambda p: packed(p.stateful_transform("a", init_state=list, push=through)))
    assert [each.carries_tokens for each in below] == [False]
    assert below[0].noted == below[0].measures
