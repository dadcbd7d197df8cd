"""Nodes refuse what cannot be, where it is said."""

import pytest

from tests.planner.plans import batch, pack, tokenize
from zephon.errors import PlanError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: batch(drop_last="no"), r"batch: drop_last must be True or False, got 'no'"),
        (lambda: pack(emit_positions=1), r"pack_flat: emit_positions must be True or False"),
        (lambda: tokenize(truncation="yes"), r"tokenize: truncation must be True or False"),
    ],
)
def test_a_switch_is_true_or_false(make, message):
    with pytest.raises(PlanError, match=message):
        make()
