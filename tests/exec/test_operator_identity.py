"""What a checkpoint knows operators by: their class, its source, and what they were given."""

import json
from typing import ClassVar

import pytest

from zephon.exec.operator_identity import identity_of_operator
from zephon.ops import BaseOp, OpContext, OpTraits


class Keep(BaseOp):
    def __init__(self, least=1):
        super().__init__()
        self.least = least

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def process_many(self, elems):
        return [each for each in elems if each.payload["n"] >= self.least]


class KeepMore(Keep):
    @property
    def more(self):
        return self.least + 1


def test_equal_operators_are_one_and_what_they_were_given_counts():
    assert identity_of_operator(Keep(2)) == identity_of_operator(Keep(2))
    assert identity_of_operator(Keep(2)) != identity_of_operator(Keep(3))
    assert identity_of_operator(Keep(2))["kept"] == {"least": 2}
    assert json.loads(json.dumps(identity_of_operator(Keep()))) == identity_of_operator(Keep())


def test_where_it_stands_does_not_count():
    op = Keep()
    op.setup(OpContext({}))
    assert identity_of_operator(op) == identity_of_operator(Keep())


def test_methods_count_those_of_the_classes_above_too():
    own, derived = (identity_of_operator(each)["methods"] for each in (Keep(), KeepMore()))
    assert list(own) == ["__init__", "process_many", "traits"]
    assert list(derived) == ["__init__", "more", "process_many", "traits"]
    assert derived["process_many"] == own["process_many"]
    assert "source" in own["process_many"]


def test_another_body_is_another_operator():
    def other(self, elems):
        return elems

    changed = type("Keep", (Keep,), {"process_many": other, "__module__": Keep.__module__})
    names = [identity_of_operator(each)["operator"] for each in (Keep(), changed())]
    assert names[0] == names[1]
    assert identity_of_operator(changed()) != identity_of_operator(Keep())


@pytest.mark.parametrize("values", [(2, 3), ("a", "b"), ((1,), (2,)), ([1], [2]), ({"a"}, {"b"})])
def test_values_of_the_class_count(values):
    changed = [type("Keep", (Keep,), {"bound": value, "__module__": __name__}) for value in values]
    first, second = (identity_of_operator(kind()) for kind in changed)
    assert first != second
    assert first == identity_of_operator(changed[0]())
    assert identity_of_operator(type("Keep", (Keep,), {"__module__": __name__})()) != first


def test_what_a_class_remembers_in_hiding_does_not_count():
    class Caching(Keep):
        _seen: ClassVar[dict] = {}

    before = identity_of_operator(Caching())
    Caching._seen["a"] = 1
    assert identity_of_operator(Caching()) == before


def test_what_cannot_be_told_is_said():
    class Unknown:
        pass

    with pytest.warns(RuntimeWarning, match="Unknown"):
        found = identity_of_operator(Keep(Unknown()))
    assert found["kept"]["least"]["opaque"] is True
