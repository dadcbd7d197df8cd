"""Groups of components that may share a row: what they take, what they are, what they refuse."""

import pickle

import pytest

from zephon.errors import PlanError
from zephon.ops import DomainGroups


def test_groups_keep_their_order_and_that_of_their_members():
    groups = DomainGroups({"code": ["rust", "python"], "text": ("prose",)})
    assert groups.members == (("code", ("rust", "python")), ("text", ("prose",)))


@pytest.mark.parametrize("container", [list, tuple, iter, dict.fromkeys])
def test_members_may_be_in_anything_that_has_an_order(container):
    assert DomainGroups({"g": container(["b", "a"])}).members == (("g", ("b", "a")),)


def test_members_in_a_set_are_sorted_since_a_set_has_another_order_in_each_process():
    names = [f"component {i}" for i in range(40)]
    wanted = (("g", tuple(sorted(names))),)
    assert DomainGroups({"g": set(names)}).members == wanted
    assert DomainGroups({"g": frozenset(names)}).members == wanted


def test_equal_groups_are_equal_print_as_what_makes_them_and_travel():
    groups = DomainGroups({"code": ["python", "rust"]})
    assert groups == DomainGroups({"code": ("python", "rust")})
    assert hash(groups) == hash(DomainGroups({"code": ("python", "rust")}))
    assert groups != DomainGroups({"code": ["python"]})
    assert groups != DomainGroups({"text": ["python", "rust"]})
    assert groups != (("code", ("python", "rust")),)
    assert eval(repr(groups)) == groups
    assert pickle.loads(pickle.dumps(groups)) == groups


REFUSED = {
    "nothing": ({}, r"groups must be a dict from group to names, with one at least, got {}"),
    "no dict": ([("g", ["a"])], r"groups must be a dict .* got \[\('g', \['a'\]\)\]"),
    "none": (None, r"groups must be a dict .* got None"),
    "no member": ({"g": []}, r"group 'g' must name one component at least, by strings, got \(\)"),
    "one string": ({"g": "prose"}, r"members of group 'g' must be a list .*; write \['prose'\]"),
    "bytes": ({"g": b"prose"}, r"members of group 'g' must be a list of names, got b'prose'"),
    "a number": ({"g": 5}, r"members of group 'g' must be a list of names, got 5"),
    "numbers": ({"g": ["a", 5]}, r"group 'g' must name .* by strings, got \('a', 5\)"),
    "twice": ({"g": ["a", "a"]}, r"component 'a' is in group 'g' twice; name each component once"),
    "in two": ({"g": ["a"], "h": ["b", "a"]}, r"'a' is in group 'h' and in group 'g'; name each"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_groups_that_cannot_be_are_refused_where_they_are_made(name):
    groups, message = REFUSED[name]
    with pytest.raises(PlanError, match=f"^DomainGroups: .*{message}") as caught:
        DomainGroups(groups)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
