"""Promises of operators: which must be made, and what they may be."""

from dataclasses import FrozenInstanceError

import pytest

from zephon.errors import PlanError
from zephon.ops import OpTraits


def test_only_the_order_must_be_promised():
    traits = OpTraits(preserves_cursor_order=True)
    assert traits == OpTraits(
        indexable=True,
        preserves_cursor_order=True,
        calibration_replayable=False,
        parallelism=1,
        batch_shape_sensitive=False,
        requires_serial_state=False,
    )
    with pytest.raises(TypeError, match="preserves_cursor_order"):
        OpTraits()  # pyright: ignore[reportCallIssue]


def test_promises_go_by_name_and_stay():
    with pytest.raises(TypeError, match="positional"):
        OpTraits(True)  # pyright: ignore[reportCallIssue]
    traits = OpTraits(preserves_cursor_order=True)
    with pytest.raises(FrozenInstanceError):
        traits.parallelism = 2  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "2", None])
def test_workers_are_counted_from_one(value):
    message = r"^OpTraits: parallelism must be an integer of at least 1, got "
    with pytest.raises(PlanError, match=message):
        OpTraits(preserves_cursor_order=True, parallelism=value)


@pytest.mark.parametrize(
    "name",
    [
        "indexable",
        "preserves_cursor_order",
        "calibration_replayable",
        "batch_shape_sensitive",
        "requires_serial_state",
    ],
)
def test_other_promises_are_true_or_false(name):
    with pytest.raises(PlanError, match=f"^OpTraits: {name} must be True or False, got 1; pass"):
        OpTraits(**{"preserves_cursor_order": True, name: 1})
