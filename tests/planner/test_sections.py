"""Where a plan is cut: at steps that must see rows in the order of their lane."""

import pytest

from tests.planner.plans import batch, pack, shuffle, tokenize
from tests.planner.typed_plans import mapped, typed_fetch
from zephon.planner.logical import CustomOp, Stateful
from zephon.planner.sections import sections_of
from zephon.planner.tree import source_first


def custom(below, **changes):
    return CustomOp(input=below, **{"name": "mine", "process_many": list, **changes})


def stateful(below, **changes):
    return Stateful(input=below, **{"name": "mine", "init_state": list, "push": zip, **changes})


def cut(plan):
    """Name the steps of each section, with the operator that it begins with."""
    return [
        [*([section.entry.call.upper()] if section.entry else []), *(n.call for n in section.steps)]
        for section in sections_of(source_first(plan))
    ]


@pytest.mark.parametrize(
    "plan",
    [
        batch(tokenize(mapped(typed_fetch()))),
        mapped(shuffle(typed_fetch())),
        custom(tokenize(typed_fetch())),
        custom(mapped(typed_fetch())),
    ],
)
def test_what_looks_at_each_row_or_window_by_itself_is_not_cut_off(plan):
    assert len(cut(plan)) == 1


def test_a_function_behind_packing_begins_a_section():
    assert cut(batch(mapped(pack(tokenize(typed_fetch()))))) == [
        ["Pipeline", "tokenize", "pack_flat"],
        ["MAP_TRANSFORM"],
    ]


def test_what_remembers_begins_a_section():
    assert cut(pack(tokenize(stateful(typed_fetch())))) == [
        ["Pipeline"],
        ["STATEFUL_TRANSFORM", "tokenize", "pack_flat"],
    ]
    assert cut(custom(typed_fetch(), remembers=True)) == [["Pipeline"], ["ADD_OP"]]


def test_what_changes_the_order_begins_a_section():
    assert cut(custom(typed_fetch(), preserves_cursor_order=False)) == [["Pipeline"], ["ADD_OP"]]


def test_groups_behind_a_shuffle_are_made_in_order():
    assert cut(custom(shuffle(typed_fetch()))) == [["Pipeline", "shuffle"], ["ADD_OP"]]


def test_groups_of_rows_that_an_operator_gave_are_made_in_order():
    assert cut(custom(stateful(typed_fetch()))) == [
        ["Pipeline"],
        ["STATEFUL_TRANSFORM"],
        ["ADD_OP"],
    ]


def test_groups_of_a_source_that_draws_once_are_made_in_order():
    fetch = typed_fetch()
    own = type(fetch)(components=fetch.components, decided_by="Mine")
    assert cut(custom(own)) == [["Pipeline"], ["ADD_OP"]]
    assert len(cut(mapped(own))) == 1
