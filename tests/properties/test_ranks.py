"""The same global steps on any number of ranks."""

import pytest

from tests.properties.recipes import packed, rows

R = 48
RANKS = (1, 2, 3, 4, 6, 8, 16)


def steps_of(degree, *, microbatch, lanes, steps):
    """Run every rank in turn; give each step's rows in the canonical order."""
    per_rank = []
    for group in range(degree):
        pipeline = packed(
            max_length=9,
            microbatch=microbatch,
            global_batch_size=R,
            canonical_replicas=lanes,
            dp_degree=degree,
            dp_group_id=group,
        )
        share = R // degree
        found = rows(pipeline, steps * share // microbatch)
        per_rank.append([found[t * share : (t + 1) * share] for t in range(steps)])
    return [[row for rank in per_rank for row in rank[t]] for t in range(steps)]


@pytest.mark.parametrize("lanes", [None, 1, 3, 6, 48])
def test_any_number_of_ranks_delivers_the_same_steps(lanes):
    steps = 2
    oracle = steps_of(1, microbatch=1, lanes=lanes, steps=steps)
    assert all(len(step) == R for step in oracle)
    for degree in RANKS:
        for microbatch in {1, R // degree}:
            found = steps_of(degree, microbatch=microbatch, lanes=lanes, steps=steps)
            assert found == oracle, (degree, microbatch)


def test_a_number_of_ranks_that_was_never_thought_of_is_refused():
    with pytest.raises(ValueError, match="global_batch_size=48 must be a multiple of dp_degree=5"):
        rows(packed(global_batch_size=R, dp_degree=5, dp_group_id=0))


def test_data_shorter_than_a_step_are_refused_and_named():
    with pytest.raises(ValueError, match=r"global_batch_size=4096 .* lane \d+ has \d+"):
        rows(packed(microbatch=1, global_batch_size=4096))


def test_without_a_global_batch_ranks_own_lanes_and_lose_none():
    whole = packed(microbatch=1, canonical_replicas=6, work={"chunk_size": 4})
    by_lane = {}
    for row in rows(whole):
        by_lane.setdefault(row[1], []).append(row)
    for degree in (2, 3, 4):
        found = {}
        for group in range(degree):
            part = packed(
                microbatch=1,
                canonical_replicas=6,
                dp_degree=degree,
                dp_group_id=group,
                work={"chunk_size": 4},
            )
            for row in rows(part):
                found.setdefault(row[1], []).append(row)
        assert found == by_lane


def test_without_a_global_batch_more_ranks_than_lanes_are_refused():
    with pytest.raises(ValueError, match="set global_batch_size"):
        rows(packed(canonical_replicas=2, dp_degree=4, dp_group_id=0))


def test_batches_take_turns_among_lanes_and_hold_one_lane_each():
    lanes = [batch.lane_ids for batch in packed(microbatch=2, canonical_replicas=3)]
    assert all(len(set(ids)) == 1 for ids in lanes)
    assert [ids[0] for ids in lanes[:6]] == [0, 1, 2, 0, 1, 2]


def test_incomplete_steps_cannot_be_shared():
    with pytest.raises(ValueError, match="drop_last=False cannot go with global_batch_size"):
        rows(packed(global_batch_size=R, drop_last=False))
