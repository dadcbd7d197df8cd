"""Neighbouring maps are one pass over the rows, each function with its own settings."""

from tests.planner.plans import fetch, shuffle
from zephon.planner.logical import MapTransform, Materialize, RowFunction
from zephon.planner.rewrites.fuse_maps import fuse_maps

FIRST = RowFunction(function=len, drop_none=False)
SECOND = RowFunction(function=str, fingerprint="v1")


def mapped(below, *functions, parallelism=4):
    return MapTransform(input=below, functions=functions, parallelism=parallelism)


def test_neighbours_become_one():
    plan = mapped(mapped(fetch(), FIRST, parallelism=2), SECOND, FIRST, parallelism=8)
    assert fuse_maps(plan) == mapped(fetch(), FIRST, SECOND, FIRST, parallelism=2)


def test_maps_that_others_stand_between_stay_apart():
    for between in (shuffle, lambda below: Materialize(input=below)):
        plan = mapped(between(mapped(fetch(), FIRST)), SECOND)
        assert fuse_maps(plan) is plan
