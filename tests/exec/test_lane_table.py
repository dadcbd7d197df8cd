"""Trees of several lanes as one table and back; what does not fit is refused."""

import copy
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon.errors import CheckpointError
from zephon.exec.lane_table import Verbatim, table_of, trees_of
from zephon.exec.saved_values import array, flag, integers, listed, pack, told, unpack, whole

INTS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=4)
LEAVES = INTS.map(lambda values: np.array(values, np.int64)) | st.builds(
    Verbatim, st.none() | st.integers() | st.dictionaries(st.sampled_from("01x"), st.integers())
)
NAMES = st.sampled_from(["rows", "log", "ordinal", "0 of", "-1"])
TREES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=3)
)
LANES = st.dictionaries(st.integers(0, 999), st.dictionaries(NAMES, TREES, max_size=4), max_size=4)


def plain(tree):
    """Write a tree as lists; what is empty is not written down."""
    if isinstance(tree, Verbatim):
        return tree
    if isinstance(tree, np.ndarray):
        return tree.tolist()
    if isinstance(tree, list):
        tree = {str(n): each for n, each in enumerate(tree)}
    found = {name: plain(each) for name, each in tree.items()}
    return {name: each for name, each in sorted(found.items()) if each != {}}


@settings(max_examples=150, deadline=None)
@given(LANES)
def test_trees_come_back_as_they_were(trees):
    table = json.loads(json.dumps(table_of(trees)))
    found = trees_of(table)
    assert list(found) == sorted(trees)
    assert {lane: plain(tree) for lane, tree in found.items()} == {
        lane: plain(tree) for lane, tree in trees.items()
    }
    some = sorted(trees)[::2]
    assert list(trees_of(table, [*some, 1000])) == some
    assert table_of(found) == table


def tree(*, stages=2, **more):
    documents = {"row": np.array([5, 7]), "child": np.array([], np.int64)}
    numbers = [{"sizes": np.arange(3), "numbers": {}} for _ in range(stages)]
    return {"rows": np.array([3]), "documents": documents, "stages": numbers, **more}


def test_the_order_of_lanes_and_names_does_not_show():
    one = tree(source=Verbatim({"chunk": 3}))
    table = table_of({2: one, 0: tree(), 1: tree(stages=3)})
    again = table_of({0: tree(), 1: tree(stages=3), 2: dict(reversed(one.items()))})
    assert json.dumps(table) == json.dumps(again)
    assert unpack(table["lanes"]).tolist() == [0, 1, 2]


def test_what_a_lane_lacks_is_told_from_what_is_empty():
    trees = trees_of(table_of({0: tree(), 1: tree(stages=1, stopped=np.array([1]))}))
    assert "stopped" not in trees[0]
    assert len(trees[0]["stages"]) == 2
    assert len(trees[1]["stages"]) == 1
    assert trees[0]["documents"]["child"].tolist() == []


def test_a_list_stays_one():
    (found,) = trees_of(table_of({4: tree()})).values()
    assert isinstance(found["stages"], list)
    assert listed(found, "stages")[1]["sizes"].tolist() == [0, 1, 2]
    assert listed(found, "measures") == []


def test_the_table_is_small_whatever_the_number_of_lanes():
    def size(lanes):
        return len(json.dumps(table_of({lane: tree() for lane in range(lanes)})))

    assert size(64) < 1.5 * size(1)


def test_who_changes_a_table_changes_no_tree():
    """The memory of an operator is in the next checkpoint, too, whatever became of this one."""
    memory = {"seen": [1, 2]}
    table = table_of({0: tree(snapshots=Verbatim([memory]))})
    table["verbatim"]["snapshots"]["0"][0]["seen"].clear()
    assert memory == {"seen": [1, 2]}


def broken(change):
    table = table_of({0: tree(source=Verbatim(3)), 1: tree()})
    change(table)
    return table


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.pop("lanes"),
        lambda t: t.pop("columns"),
        lambda t: t.update(lanes=pack(np.array([0, 0]))),
        lambda t: t.update(lanes=pack(np.array([0]))),
        lambda t: t.update(sizes=[]),
        lambda t: t.update(sizes=None),
        lambda t: t["sizes"].__setitem__(0, pack(np.array([1, -2]))),
        lambda t: t["sizes"].__setitem__(0, pack(np.array([7, 1]))),
        lambda t: t["columns"].update(rows=[0, pack(np.arange(9))]),
        lambda t: t["columns"].update(rows=[99, t["columns"]["rows"][1]]),
        lambda t: t["columns"].update(rows="x"),
        lambda t: t["columns"].update({"rows/x": t["columns"]["rows"]}),
        lambda t: t["columns"].update({"documents": t["columns"]["rows"]}),
        lambda t: t["verbatim"].update(rows={"0": 3}),
        lambda t: t.update(verbatim=[3]),
    ],
)
def test_a_table_whose_parts_do_not_fit_is_refused(change):
    with pytest.raises(CheckpointError, match="restore: the lanes of the checkpoint are damaged: "):
        trees_of(broken(change))


def test_any_damage_is_refused_or_read():
    rng = random.Random(5)
    whole_table = broken(lambda t: None)
    odd = (None, -1, 99, 1.5, "x", "di1:", "vi8:AAAA", [], [[]], {}, {"x": 1}, pack(np.arange(5)))
    refused = 0
    for _ in range(400):
        table = copy.deepcopy(whole_table)
        place = table
        path = []
        while isinstance(place, dict | list) and place and (not path or rng.random() < 0.7):
            keys = list(place) if isinstance(place, dict) else range(len(place))
            path.append((place, rng.choice(list(keys))))
            place = place[path[-1][1]]
        above, key = path[-1]
        above[key] = rng.choice(odd)
        try:
            trees_of(table)
        except CheckpointError:
            refused += 1
    assert 100 < refused < 400


# What is read of a tree


def test_values_that_are_not_what_they_should_be_are_refused():
    saved = {"few": np.array([3, 4]), "one": np.array([3]), "less": np.array([-3]), "text": "x"}
    assert (whole(saved, "one"), integers(saved, "few").tolist()) == (3, [3, 4])
    assert whole(saved, "less", -3) == -3
    assert flag({"yes": np.array([1])}, "yes") is True
    for read, name in ((whole, "few"), (whole, "less"), (flag, "one"), (integers, "less")):
        with pytest.raises(ValueError, match=name):
            read(saved, name)
    with pytest.raises(ValueError, match="from 0 to 3, got 3, 4"):
        integers(saved, "few", 3)
    for read in (whole, flag, integers):
        with pytest.raises(TypeError, match="integers must be there, got 'x'"):
            read(saved, "text")
        with pytest.raises(KeyError):
            read(saved, "none")
    with pytest.raises(TypeError, match="integers must be there"):
        array([1, 2])
    with pytest.raises(TypeError, match="'text' must be numbered from 0 on"):
        listed(saved, "text")


def test_numbers_told_to_people_are_bounded():
    assert told("lane", [4]) == "lane 4"
    assert told("rank", range(3)) == "ranks 0, 1, 2"
    assert told("lane", []) == "no lanes"
    assert told("lane", range(1000)) == "lanes 0 to 999"
    assert told("lane", range(0, 2000, 2)) == "lanes 0, 2, 4, 6, 8, 10, 12, 14 and 992 more"
