"""Functions of one row on records in the order of a lane: payloads, metas, errors."""

import pytest

from tests.ops.records import offsets, record, records
from zephon.errors import DataError, ExecutionError
from zephon.exec.custom_steps import OpServices, custom_step
from zephon.ops import pack_meta
from zephon.planner.logical import DecodeText, ExpandChat, MapTransform, RowFunction
from zephon.types import ContributorRef, SampleRecord


def pushed(node, elems, lane=0):
    step = custom_step(node, OpServices())
    state, made = step.push(step.make_state(lane), elems)
    assert step.finish(state) == []
    assert not step.snapshots
    return made


def maps(function, drop_none=True):
    return MapTransform(functions=(RowFunction(function=function, drop_none=drop_none),))


def test_payloads_are_replaced_and_metas_stay():
    given = records(3, 4)
    made = pushed(maps(lambda payload: payload["n"] * 10), given)
    assert [each.payload for each in made] == [30, 40]
    assert [each.meta for each in made] == [each.meta for each in given]


def test_none_drops_a_record_or_leaves_it_as_it_was():
    odd = maps(lambda payload: payload if payload["n"] % 2 else None)
    assert offsets(pushed(odd, records(3, 4, 5))) == [3, 5]

    def change(payload):
        payload["n"] = -1

    kept = pushed(maps(change, drop_none=False), records(3))
    assert [each.payload for each in kept] == [{"n": 3}]


def test_text_is_decoded():
    made = pushed(DecodeText(), [record(0, payload={"text": b"a\r\nb"})])
    assert made[0].payload == {"text": "a\nb"}


def turns(*roles):
    return {"messages": [{"role": role, "content": str(at)} for at, role in enumerate(roles)]}


def test_conversations_become_children_the_last_of_which_uses_them_up():
    chat = record(0, payload=turns("user", "assistant", "user", "assistant"))
    first, last = pushed(ExpandChat(), [chat])
    assert [each.meta.lineage for each in (first, last)] == [(0,), (1,)]
    counts = [each.meta.component_sample_counts for each in (first, last)]
    assert counts == [{0: 0}, {0: 1}]
    assert len(first.payload["messages"]) == 2
    assert len(last.payload["messages"]) == 4


def test_a_conversation_of_one_answer_keeps_its_identity():
    chat = record(0, payload=turns("system", "user", "assistant"))
    (made,) = pushed(ExpandChat(), [chat])
    assert made.meta == chat.meta


def test_of_a_packed_record_only_the_last_child_closes_the_sources():
    cursor = record(0).meta.cursor
    meta = pack_meta(cursor, [ContributorRef(cursor)], lane_id=0, component_sample_counts={0: 1})
    chat = SampleRecord(meta, turns("user", "assistant", "user", "assistant"))
    made = pushed(ExpandChat(), [chat])
    closes = [ref.is_last_child for each in made for ref in each.meta.contribution_refs()]
    assert closes == [False, True]


def test_errors_name_the_record():
    def fail(payload):
        return 1 // (4 - payload["n"])

    message = (
        r"^map_transform: the function .*fail' raised ZeroDivision.* on sample \(0, 0, 4\) of l"
    )
    with pytest.raises(ExecutionError, match=message) as caught:
        pushed(maps(fail), records(3, 4))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    message = r"^expand_chat: no field 'messages'; .* on sample \(0, 0, 3\) of lane 2; name another"
    with pytest.raises(DataError, match=message):
        pushed(ExpandChat(), records(3, lane=2), lane=2)
    with pytest.raises(
        TypeError, match=r"^decode_text: a row must be a dict, got a list on sample"
    ):
        pushed(DecodeText(), [record(0, payload=[1])])
