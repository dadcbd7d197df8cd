"""A mixture in which shards were added: passes before have the rows of then, later ones all."""

from collections import Counter

import numpy as np
import pytest

from zephon.work import StaticMixtureWorkSource
from zephon.work.former import former_plan
from zephon.work.order.dealt import Former

LANES = 3
ORDERS = {
    "as they are": {"shuffle_shards": False},
    "shards": {},
    "rows": {"shuffle_within_shard": True},
    "blocks": {"shuffle_block_size": 16, "shuffle_within_shard": True},
    "automatic blocks": {"shuffle_block_size": "auto"},
    "all": {"shuffle_block_size": "global"},
    "always alike": {"reshuffle_on_repeat": False},
}


def made(shape, counts, **work):
    settings = {"chunk_size": 2, "exhausted_policy": "repeat", "seed": 5, **work}
    return StaticMixtureWorkSource([shape("a", counts)], {"a": 1.0}, **settings)


def grown(shape, before, after, stop, **work):
    """Make a source that was read with the rows of ``before`` in its first ``stop`` passes."""
    was, now = made(shape, before, **work), made(shape, after, **work)
    plan = former_plan(was.recipe(), {"a": 0}, {"a": np.array(before)})
    return was, now.grown({"a": (Former(stop, plan.reading[0].passes),)})


@pytest.mark.parametrize("order", ORDERS)
def test_earlier_passes_stay_and_later_ones_have_all_rows(shape, order):
    before, after = [40, 0, 0, 11], [40, 7, 25, 11]
    was, now = grown(shape, before, after, 2, **ORDERS[order])
    plain = made(shape, after, **ORDERS[order])
    came = {number: Counter() for number in range(4)}
    for lane in range(LANES):
        stream, old = now.lane_stream(lane, LANES), was.lane_stream(lane, LANES)
        found = stream.draw(0, 200)
        first = int((found.pass_index < 2).sum())
        for name in ("shard", "row", "pass_index"):
            ours, theirs = (getattr(each, name) for each in (found, old.draw(0, first)))
            assert np.array_equal(ours[:first], theirs)
        apart = [stream.draw(at, 1) for at in range(first - 3, first + 3)]
        assert [int(each.row[0]) for each in apart] == found.row[first - 3 : first + 3].tolist()
        for number, shard, row in zip(found.pass_index, found.shard, found.row, strict=True):
            if number in came:
                came[int(number)][int(shard), int(row)] += 1
    for number, counts in came.items():
        expected = before if number < 2 else after
        assert counts == Counter((s, r) for s, rows in enumerate(expected) for r in range(rows))
    # A pass of the rows of now is in the order that it has where they were always there.
    whole = [source.lane_stream(0, 1).draw(0, 400) for source in (now, plain)]
    ours, theirs = (each.take(each.pass_index == 3) for each in whole)
    assert ours.row.tolist() == theirs.row.tolist()
    assert ours.shard.tolist() == theirs.shard.tolist()


@pytest.mark.parametrize(
    ("ends", "rows"),
    [
        ({"exhausted_policy": None, "stop_after_passes": 2}, 10 + 31),
        ({"exhausted_policy": None, "stop_after_passes": 1}, 10),
        ({"exhausted_policy": "stop"}, 10),
        ({"max_repeats": 2}, 10 + 31 + 31),
    ],
)
def test_ends_count_the_rows_of_each_pass(shape, ends, rows):
    _, now = grown(shape, [10, 0], [10, 21], 1, **ends)
    assert sum(now.lane_stream(lane, LANES).length for lane in range(LANES)) == rows


def test_passes_are_begun_by_the_lane_that_is_furthest(shape):
    _, now = grown(shape, [10, 0], [10, 21], 1)
    lanes = now.lanes(LANES, None)
    assert lanes.passes_begun("a", [0, 0, 0]) == 0
    assert lanes.passes_begun("a", [0, 1, 0]) == 1
    assert lanes.passes_begun("a", [4, 3, 3]) == 1
    assert lanes.passes_begun("a", [4, 4, 3]) == 2
    assert lanes.passes_begun("a", [14, 14, 14]) == 3
