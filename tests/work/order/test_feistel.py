import numpy as np

from zephon import seeds
from zephon.work.order import feistel as feistel_module
from zephon.work.order.feistel import feistel


def one(positions: np.ndarray, size: int, key: int, *, inverse: bool = False) -> np.ndarray:
    lengths, sizes = np.array([len(positions)]), np.array([size])
    return feistel(positions, lengths, sizes, np.array([key], dtype=np.uint64), inverse=inverse)


def test_small_ranges_are_permuted_too() -> None:
    # order.py never asks for them, but the arithmetic holds from one item on.
    for size in range(1, 70):
        items = one(np.arange(size), size, 5)
        assert sorted(items.tolist()) == list(range(size))
        assert (one(items, size, 5, inverse=True) == np.arange(size)).all()


def test_a_range_that_fills_its_rectangle_badly_walks_back_inside() -> None:
    for size in (65, 82, 101, 10_001, 1_000_001):
        items = one(np.arange(size), size, 9)
        assert (np.bincount(items, minlength=size) == 1).all()


def test_blocks_of_work_do_not_show(monkeypatch) -> None:
    positions = seeds.generator(1).integers(10**9, size=1000)
    sizes, lengths = np.array([10**9, 10**12]), np.array([400, 600])
    keys = seeds.subkeys(3, np.arange(2))
    whole = feistel(positions, lengths, sizes, keys)
    monkeypatch.setattr(feistel_module, "_BLOCK", 7)
    assert (feistel(positions, lengths, sizes, keys) == whole).all()


def test_neighbours_part_within_two_of_a_thousand() -> None:
    # Six rounds fail this by far at 64 items: one pair in 512 would stay as it is.
    size, ranges = 64, 40_000
    lengths = np.full(ranges, size)
    items = feistel(
        np.tile(np.arange(size), ranges), lengths, lengths, seeds.subkeys(8, np.arange(ranges))
    ).reshape(ranges, size)
    stayed = ((items[:, 1:] - items[:, :-1]) % size == 1).mean()
    assert abs(stayed - 1 / (size - 1)) < 6e-4
