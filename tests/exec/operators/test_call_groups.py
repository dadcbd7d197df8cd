"""Operators of the user on windows of draws: which rows come together, where outputs stand."""

import re
import threading
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from tests.exec.operators.morsels import children, lineages, morsel, naming
from zephon.errors import LineageError
from zephon.exec.block import DROPPED, FILTERED, MERGED
from zephon.exec.operator import RowError
from zephon.exec.operators.call_groups import CallGroupsOp
from zephon.ops import BaseOp, OpTraits, pack_meta, spawn_child, tombstones_for_record
from zephon.ops.arguments import custom_op
from zephon.ops.context import OpServices
from zephon.planner import physical
from zephon.planner.logical import CustomOp
from zephon.types import ContributorRef, SampleMeta, SampleRecord


def operator(function, *, by_component=False, names=naming, **step):
    fields = custom_op("f", process_many=function, preserves_cursor_order=True)
    node = physical.CallGroups(op=CustomOp(**fields), **step)
    return CallGroupsOp(node, OpServices(), names, at_once=1, by_component=by_component)


def called(function, rows, **more):
    return operator(function, **more).run(rows)


def at(ordinals, lane=0, component=0):
    """Make rows that stand at these draws."""
    made = morsel([{"n": n} for n in ordinals])
    count = len(ordinals)
    refs = replace(
        made.refs,
        ordinal=np.array(ordinals, np.int64),
        row=np.array(ordinals, np.int64),
        lane=np.broadcast_to(np.array(lane, np.int32), count),
        component=np.broadcast_to(np.array(component, np.int32), count),
    )
    return replace(made, refs=refs)


def numbers(elems):
    return [each.payload["n"] for each in elems]


def merged(*elems):
    cursors = [each.meta.cursor for each in elems]
    refs = [ContributorRef(cursor) for cursor in cursors]
    meta = pack_meta(
        cursors[0], refs, lane_id=elems[0].meta.lane_id, component_sample_counts={0: len(refs)}
    )
    return SampleRecord(meta, numbers(elems))


def test_rows_that_pass_stand_where_they_stood():
    rows = [{"n": 0}, {"n": 1}]
    made = called(list, morsel(rows))
    assert made.payload is not None
    assert made.payload.rows() == rows
    assert [made.payload.meta(i) for i in range(2)] == [naming(made.refs, i) for i in range(2)]
    assert children(made) == [(0, 0, True), (1, 0, True)]
    assert (made.columns.num_columns, made.columns.num_rows) == (0, 2)
    assert (made.frame, len(made.lost)) == (None, 0)


def test_the_operator_gets_what_is_left_of_each_window():
    seen = []

    def note(elems):
        seen.append(numbers(elems))
        return elems

    called(note, at([3, 9, 63, 64, 70, 200]))
    assert seen == [[3, 9, 63], [64, 70], [200]]


def test_lanes_never_come_together():
    seen = []

    def note(elems):
        seen.append((elems[0].meta.lane_id, numbers(elems)))
        return elems

    def of_lane(refs, row):
        return replace(naming(refs, row), lane_id=int(refs.lane[row]))

    called(note, at([1, 2, 3, 4], lane=[0, 0, 1, 1]), names=of_lane)
    assert seen == [(0, [1, 2]), (1, [3, 4])]


@pytest.mark.parametrize(("by_component", "groups"), [(False, [[1, 5]]), (True, [[1], [5]])])
def test_components_come_together_unless_each_counts_its_own_draws(by_component, groups):
    seen = []

    def note(elems):
        seen.append(numbers(elems))
        return elems

    called(note, at([1, 5], component=[0, 1]), by_component=by_component)
    assert seen == groups


def test_draws_that_give_nothing_are_dropped_and_earlier_losses_stay():
    below = at([0, 1, 2, 3]).keep(np.array([0, 2, 3]), FILTERED)
    made = called(lambda elems: [*tombstones_for_record(elems[0]), elems[1]], below)
    assert children(made) == [(2, 0, True)]
    assert lost(made) == [(1, FILTERED), (0, DROPPED), (3, DROPPED)]


def test_nothing_left_at_all_is_an_empty_morsel():
    made = called(lambda elems: [], at([0, 70]))
    assert (len(made.refs), made.columns.num_rows, len(made.payload)) == (0, 0, 0)
    assert made.lost.refs.ordinal.tolist() == [0, 70]
    empty = called(list, morsel([]))
    assert (len(empty.refs), len(empty.lost), empty.payload.has_metas) == (0, 0, True)


def test_children_stand_at_their_draw_in_order_the_last_marked():
    def split(elems):
        return [
            SampleRecord(spawn_child(each.meta, i, is_last_child=i == 1), i)
            for each in elems
            for i in range(2)
        ]

    made = called(split, at([4, 5]))
    assert children(made) == [(4, 0, False), (4, 1, True), (5, 0, False), (5, 1, True)]
    assert lineages(made) == [(0,), (1,), (0,), (1,)]
    assert made.refs.row.tolist() == [4, 4, 5, 5]


def lost(made):
    return list(zip(made.lost.refs.ordinal.tolist(), made.lost.reason.tolist(), strict=True))


def test_a_merged_row_stands_at_its_first_and_the_others_are_no_loss():
    made = called(lambda e: [merged(e[0], e[2]), e[1]], at([4, 5, 6, 7]))
    assert children(made) == [(4, 0, True), (5, 0, True)]
    assert made.refs.row.tolist() == [4, 5]
    assert made.payload.rows() == [[4, 6], {"n": 5}]
    assert lost(made) == [(6, MERGED), (7, DROPPED)]


def test_rows_that_leave_in_another_order_are_refused():
    def late(elems):
        return elems if elems[0].payload["n"] == 4 else [elems[1], elems[0]]

    message = r"^records must leave in the order .* got sample \(7, 0, 164\) after a later one, fro"
    with pytest.raises(RowError) as caught:
        called(late, at([4, 5, 64, 65]))
    assert re.match(message, caught.value.problem)
    assert (caught.value.row, caught.value.way_out) == (2, "pass preserves_cursor_order=False")
    assert isinstance(caught.value.__cause__, LineageError)


def test_every_draw_counts_once_for_its_own_component():
    """At each draw the first row is of the draw's component, and the other draws are lost ones."""

    def change(elems):
        parts = [SampleRecord(spawn_child(elems[2].meta, i), i) for i in range(2)]
        return [*parts, merged(elems[3], elems[1], elems[4]), *elems[6:]]

    given = at(list(range(8)), component=[0, 1, 2, 3, 4, 5, 6, 7])
    made = called(change, given)
    first = np.flatnonzero(np.diff(made.refs.ordinal, prepend=-1))
    counted = [*made.refs.component[first].tolist(), *made.lost.refs.component.tolist()]
    assert sorted(counted) == given.refs.component.tolist()
    assert children(made)[:3] == [(2, 0, False), (2, 1, True), (3, 0, True)]
    assert lost(made) == [(0, DROPPED), (1, MERGED), (4, MERGED), (5, DROPPED)]


def test_rows_that_say_who_they_are_are_asked():
    metas = [SampleMeta((1, 1, n), 0, 2, n, {5: 1}, tags={"own": n}) for n in range(2)]
    made = called(list, morsel([{}, {}], metas))
    assert [made.payload.meta(i) for i in range(2)] == metas


def test_rows_that_were_merged_before_are_one_origin():
    first = called(lambda e: [merged(*e[:2]), e[2]], at([4, 5, 6]))
    seen = []

    def note(elems):
        seen.append([each.payload for each in elems])
        return elems[:1]

    made = called(note, first)
    assert seen == [[[4, 5], {"n": 6}]]
    assert children(made) == [(4, 0, True)]
    assert lost(made) == [(5, MERGED), (6, DROPPED)]


def test_the_operator_gets_tokens_over_whole_rows():
    seen = []

    def note(elems):
        seen.extend(each.payload for each in elems)
        return elems

    rows = morsel([{"text": "a", "input_ids": 0}], input_ids=[[1, 2]])
    step = {"token_fields": ("input_ids",), "masks": ("attention_mask",)}
    called(note, rows, **step)
    assert seen == [{"text": "a", "input_ids": [1, 2], "attention_mask": [1, 1]}]


def test_rows_below_stay_as_they_were():
    rows = [{"n": [1]}]

    def change(elems):
        elems[0].payload["n"].append(2)
        return elems

    assert called(change, morsel(rows)).payload.rows() == [{"n": [1, 2]}]
    assert rows == [{"n": [1]}]


def test_a_record_that_is_given_another_meta_in_place_is_known_by_what_it_was():
    def rename(elems):
        for each in elems:
            each.meta = spawn_child(each.meta, 3, is_last_child=True)
        return elems

    assert lineages(called(rename, at([4, 5]))) == [(3,), (3,)]


def test_a_failing_window_is_told_by_its_first_row_with_the_cause():
    def fail(elems):
        if elems[0].payload["n"] >= 64:
            raise ValueError("boom")
        return elems

    with pytest.raises(RowError) as caught:
        called(fail, at([1, 2, 64, 65]))
    assert caught.value.row == 2
    assert caught.value.problem == (
        "process_many raised ValueError: boom, for the 2 records that begin"
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert operator(fail).label == "add_op 'f'"


def test_a_row_of_another_window_is_refused():
    held = []

    def hold(elems):
        held.extend(elems)
        return held[:1]

    with pytest.raises(RowError, match="records must be made of those that went in") as caught:
        called(hold, at([1, 64]))
    assert caught.value.row == 1


@pytest.mark.parametrize("at_once", [1, 2])
def test_so_many_threads_are_inside_as_may_be(at_once):
    together = threading.Barrier(at_once)
    inside, most = [], []

    def work(elems):
        inside.append(1)
        together.wait(timeout=10)  # raises if fewer are let in
        most.append(len(inside))
        together.wait(timeout=10)
        inside.pop()
        return elems

    fields = custom_op("f", process_many=work, preserves_cursor_order=True)
    node = physical.CallGroups(op=CustomOp(**fields))
    op = CallGroupsOp(node, OpServices(), naming, at_once=at_once)
    threads = [threading.Thread(target=op.run, args=(at([0, 64]),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [at_once] * 8


class Ended(BaseOp):
    log: ClassVar[list] = []

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def process_many(self, elems):
        return elems

    def teardown(self):
        self.log.append("ended")


def test_closing_ends_the_copies():
    node = physical.CallGroups(op=CustomOp(**custom_op(Ended())))
    op = CallGroupsOp(node, OpServices(), naming, at_once=2)
    op.run(morsel([{}]))
    op.close()
    assert Ended.log == ["ended"]
