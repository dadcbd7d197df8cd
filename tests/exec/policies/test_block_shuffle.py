"""The block shuffle against its loop; sizes of blocks; every order of a block alike."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, feed, held_after, plain, streams
from tests.exec.policies.known import Known
from zephon import seeds
from zephon.exec.policies.block_shuffle import BlockShuffle, block_sizes
from zephon.exec.policies.policy import AT_END

GROWTHS = st.sampled_from([None, 1.01, 1.5, 4.0])


def obvious(units, buffer_size, growth, seed, stage, lane):
    size = buffer_size if growth is None else max(1, min(128, buffer_size // 16))
    block, number, out = [], 0, []

    def leave(trigger):
        key = seeds.key(seed, "block shuffle", stage, lane, number)
        hashes = seeds.subkeys(key, np.arange(len(block))).tolist()
        out.extend((block[i], trigger) for i in sorted(range(len(block)), key=hashes.__getitem__))

    for row, trigger in plain(units):
        block.append(row)
        if len(block) == size:
            leave(trigger)
            block, number = [], number + 1
            if growth is not None:
                size = int(min(buffer_size, -(-size * growth // 1)))
    leave(AT_END)
    return out


@settings(deadline=None, max_examples=40)
@given(streams(), st.sampled_from([1, 2, 7, 40, 100]), GROWTHS, GROUPINGS, st.data())
def test_it_is_its_loop_however_pushed_and_wherever_resumed(
    stream, buffer_size, growth, groups, data
):
    known, units = stream
    policy = BlockShuffle(buffer_size=buffer_size, seed=4, stage=1, warmup_growth=growth)
    at = data.draw(st.integers(0, len(units)))
    assert held_after(policy, units, known, groups, at) == held_after(policy, units, known, [1], at)
    out, _ = feed(policy, units, known, groups, lane=2, resume_at=at)
    assert out == obvious(units, buffer_size, growth, 4, 1, 2)


@pytest.mark.parametrize(
    ("buffer_size", "growth", "sizes"),
    [
        (8192, None, [8192]),
        (1, 1.5, [1]),
        (20, 1.5, [1, 2, 3, 5, 8, 12, 18, 20]),
        (8192, 1e300, [128, 8192]),
        (32, 1.0001, list(range(2, 33))),
    ],
)
def test_blocks_grow_from_a_sixteenth_and_at_least_by_one(buffer_size, growth, sizes):
    assert block_sizes(buffer_size, growth) == sizes


def test_nothing_leaves_its_block_and_every_order_is_as_likely():
    known = Known([1] * 4 * 2400)
    out, _ = feed(BlockShuffle(buffer_size=4, seed=0, stage=0), known.units(), known, [999])
    seqs = np.array([row[0][0] for row, _ in out]).reshape(-1, 4)
    assert np.array_equal(np.sort(seqs), np.arange(4 * 2400).reshape(-1, 4))
    orders = Counter(map(tuple, (seqs % 4).tolist()))
    assert len(orders) == len(list(permutations(range(4))))
    assert sum((n - 100) ** 2 / 100 for n in orders.values()) < 49.7  # chi-square, 23, p = 0.001


def test_lanes_and_stages_do_not_shuffle_alike():
    known = Known([1] * 50)
    orders = {
        tuple(
            row[0][0]
            for row, _ in feed(
                BlockShuffle(buffer_size=50, seed=0, stage=s), known.units(), known, [50], lane=lane
            )[0]
        )
        for s, lane in [(0, 0), (1, 0), (0, 1)]
    }
    assert len(orders) == 3
