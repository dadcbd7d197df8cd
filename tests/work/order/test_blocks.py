import numpy as np
import pytest

from zephon import seeds
from zephon.work.order.blocks import Blocks
from zephon.work.order.permutation import Permutation
from zephon.work.order.runs import Runs


def runs(*parts: tuple[int, int, int]) -> Runs:
    pass_index, start, length = (np.array(column) for column in zip(*parts, strict=True))
    return Runs(pass_index, start, length)


@pytest.mark.parametrize("size", [2, 7, 10, 64, 99, 100])
def test_each_block_moves_within_itself(size: int) -> None:
    blocks = Blocks(rows=100, size=size, key=5, fresh=True)
    taken = blocks.positions(runs((0, 0, 100), (1, 0, 100)))
    for pass_index, order in enumerate(taken.reshape(2, 100)):
        for number, start in enumerate(range(0, 100, size)):
            block = order[start : start + size]
            key = seeds.subkeys(seeds.subkeys(5, pass_index), number)
            expected = Permutation(len(block), int(key[0])).at(np.arange(len(block)))
            assert (block == start + expected).all()
    assert blocks.whole == (size == 100)


def test_runs_that_meet_in_a_block_are_cut_where_it_ends() -> None:
    blocks = Blocks(rows=100, size=30, key=5, fresh=True)
    whole = blocks.positions(runs((4, 0, 100), (5, 0, 100)))
    taken = blocks.positions(runs((4, 3, 1), (4, 5, 2), (4, 25, 70), (4, 99, 1), (5, 0, 31)))
    at = np.r_[3, 5:7, 25:95, 99, 100:131]
    assert (taken == whole[at]).all()


def test_a_fixed_order_is_that_of_pass_0() -> None:
    fixed, fresh = (Blocks(rows=90, size=40, key=1, fresh=fresh) for fresh in (False, True))
    first = fresh.positions(runs((0, 0, 90)))
    assert (fixed.positions(runs((7, 0, 90))) == first).all()
    assert (fresh.positions(runs((7, 0, 90))) != first).any()


def test_blocks_of_any_size_are_found_anywhere() -> None:
    rows = 10**15 + 7
    for size in (2, 1000, 10**9, rows - 1, rows):
        blocks = Blocks(rows=rows, size=size, key=3, fresh=True)
        start = rows - 500
        taken = blocks.positions(runs((2**31 - 1, start, 500)))
        assert (taken // size == np.arange(start, rows) // size).all()
        assert len(np.unique(taken)) == 500
        assert taken.max() < rows
