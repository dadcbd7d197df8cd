"""Fields that a call reads, checked against what is known of the data."""

import pytest

from tests.planner.test_aligned import fetch
from zephon.errors import PlanError
from zephon.io.fields import Column
from zephon.planner.checks import check_reads

IDS = Column(path="ids", kind="tokens")


def test_a_field_that_is_there_or_may_be_passes():
    check_reads((IDS,), fetch({"ids": "tokens"}, {"ids": "unknown"}), "pack_flat")
    check_reads((IDS,), fetch({}, complete=False), "pack_flat")
    check_reads((IDS,), fetch({"ids": "text"}, complete=False), "pack_flat")
    check_reads((Column(path="ids", kind="text", missing="empty"),), fetch({}), "tokenize")
    check_reads((Column(path="ids.a", kind="text"),), fetch({"ids": "other"}), "tokenize")


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"idx": "tokens"}, r"no field 'ids' in dataset 'd1'; .*'idx'"),
        ({"ids": "text"}, r"'ids' of dataset 'd1' must hold lists of integers, it holds text"),
        ({"ids": "numbers"}, r"must hold lists of integers, it holds lists of numbers"),
        ({"ids": "scalar"}, r"must hold lists of integers, it holds scalar"),
    ],
)
def test_a_field_that_cannot_be_is_refused(kinds, message):
    with pytest.raises(PlanError, match=rf"^pack_flat: .*{message}"):
        check_reads((IDS,), fetch({"ids": "tokens"}, kinds), "pack_flat")
