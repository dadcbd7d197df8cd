"""Steps that may not stand together: a row that would be measured twice, or in parts."""

import pytest

from tests.planner.plans import batch, fetch, mix, pack, tokenize
from zephon.errors import PlanError
from zephon.planner.step_order import check_measures

SPLIT = {"split_long_samples": True, "max_length": 7}


def size_of(row):
    return len(row)


def weighed(below, function=size_of):
    return mix(below, weight_by="function", weight_function=function)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (weighed(weighed(fetch()), len), "an earlier ensure_mixture weighs rows by something else"),
        (weighed(tokenize(weighed(fetch()))), "weighs rows as they are before tokenize"),
    ],
    ids=["another function", "another row"],
)
def test_two_weights_of_a_row_are_refused(plan, message):
    with pytest.raises(PlanError, match=f"ensure_mixture: .*{message}"):
        check_measures(plan)
    check_measures(weighed(weighed(fetch())))


def test_a_row_that_is_split_later_is_not_measured():
    with pytest.raises(PlanError, match="ensure_mixture: what a row measures is not known of its"):
        check_measures(batch(pack(tokenize(weighed(fetch()), **SPLIT))))
    check_measures(batch(pack(weighed(tokenize(**SPLIT)))))
