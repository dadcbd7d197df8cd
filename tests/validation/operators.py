"""Operators as ``add_op`` makes them, and what the checks say of them."""

from zephon.ops import Accumulator, BaseOp, OpTraits
from zephon.ops.arguments import custom_op
from zephon.planner.logical import CustomOp
from zephon.types import SampleRecord
from zephon.validation import validate_pipeline
from zephon.validation.samples import generic_records


def same(records):
    return records


def shouted(records):
    return [SampleRecord(r.meta, {"text": r.payload["text"].upper()}) for r in records]


def made_of(process_many, name="op", **said):
    said = {"preserves_cursor_order": True, **said}
    return CustomOp(**custom_op(name, process_many=process_many, **said))


def grouped_by(accumulator, process_many=same, **said):
    return made_of(process_many, accumulator=accumulator, **said)


def given(op):
    return CustomOp(**custom_op(op))


def codes(node):
    return [each.code for each in validate_pipeline(node)]


def only(node):
    (issue,) = validate_pipeline(node)
    return issue


class Shout(BaseOp):
    """A healthy operator with records of its own."""

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def process_many(self, elems):
        return shouted(elems)

    def validation_samples(self):
        return generic_records()


class Pairs(Accumulator):
    """A healthy accumulator, for tests to break: groups of two records of a lane."""

    size = 2

    def __init__(self):
        self.held = {}

    def push_many(self, elems):
        ready = []
        for record in elems:
            group = self.held.setdefault(record.meta.lane_id, [])
            group.append(record)
            if len(group) == self.size:
                ready.append((self.held.pop(record.meta.lane_id), 0))
        return ready

    def flush(self, *, reset=False, lane_id=None):
        lanes = list(self.held) if lane_id is None else [lane_id]
        return [(self.held.pop(lane), 0) for lane in lanes if lane in self.held]

    def has_pending_data(self, lane_id=None):
        return bool(self.held) if lane_id is None else lane_id in self.held
