"""Records made by hand."""

from zephon.types import SampleMeta, SampleRecord


def record(offset, lane=0, payload=None, **changes):
    """Make the record that a lane drew at an offset of chunk 0."""
    meta = SampleMeta((0, 0, offset), lane, 0, offset, **changes)
    return SampleRecord(meta, {"n": offset} if payload is None else payload)


def records(*offsets, lane=0):
    return [record(offset, lane) for offset in offsets]


def offsets(group):
    return [each.meta.chunk_offset for each in group]
