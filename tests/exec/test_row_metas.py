"""Who the row of a reference is."""

from dataclasses import replace

import numpy as np

from zephon.exec.assemble import Naming
from zephon.exec.row_metas import row_namer
from zephon.types import SampleMeta
from zephon.work.refs import Refs

NAMING = Naming(
    component_id=np.array([5, 7], np.int32),
    dataset_id=np.array([11, 12]),
    shard_id=np.array([100, 101, 200, 201]),
    first_shard=np.array([0, 2]),
    chunk_size=10,
)


def refs(**changes):
    made = Refs.of(
        np.array([0, 1, 1], np.int32),
        np.array([1, 0, 1]),
        np.array([3, 4, 5]),
        np.zeros(3, np.int32),
        np.array([9, 10, 25]),
        lane=6,
    )
    return replace(made, **changes)


def test_public_names():
    name = row_namer(NAMING)
    assert [name(refs(), i) for i in range(3)] == [
        SampleMeta((11, 101, 3), 6, 0, 9, {5: 1}),
        SampleMeta((12, 200, 4), 6, 1, 0, {7: 1}),
        SampleMeta((12, 201, 5), 6, 2, 5, {7: 1}),
    ]


def test_parts_of_a_row():
    parts = refs(child=np.array([0, 1, 0], np.int32), last_child=np.array([False, True, True]))
    found = [row_namer(NAMING)(parts, i) for i in range(3)]
    assert [meta.lineage for meta in found] == [(0,), (1,), ()]
    assert [meta.component_sample_counts for meta in found] == [{5: 0}, {7: 1}, {7: 1}]
