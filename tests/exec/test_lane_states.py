"""What lies under a lane, as JSON values; whatever is missing or damaged is refused."""

import json

import numpy as np
import pytest

from tests.exec.by_hand import (
    Counted,
)
from tests.exec.towers_by_hand import (
    COMPONENTS,
    GROUND,
    LENGTHS,
    often,
    start,
    whole,
)
from zephon.errors import CheckpointError
from zephon.exec.lane_states import lane_from_dict
from zephon.exec.lane_table import Verbatim, trees_of
from zephon.exec.towers import build_lane


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    often(monkeypatch)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("flushed", lambda s: s.pop("below"), "must say what feeds it"),
        ("flushed", lambda s: s["log"].pop("refs"), "of the checkpoint is damaged"),
        ("flushed", lambda s: s["below"].update(rows=np.array([3])), "is damaged"),
        ("flushed", lambda s: s["below"].update(groups=np.array([9])), "is damaged"),
        ("flushed", lambda s: s["below"]["units"].update(document=np.array([99])), "damaged"),
        ("flushed", lambda s: s["below"]["lane"].pop("rows"), "of the checkpoint is damaged"),
        ("flushed", lambda s: s.update(below=no_rows(s["below"])), "does not say which rows"),
        ("two floors", lambda s: s["below"]["lane"].pop("below"), "must say what feeds it"),
    ],
)
def test_a_state_that_lacks_what_lies_below_is_refused(name, change, message):
    states, _, _ = whole(name)
    for at in range(len(states) // 2, len(states)):
        saved = trees_of(json.loads(states[at]))[0]
        if saved["last_draw"].tolist()[0] % 3 == 0:
            break
    change(saved)
    with pytest.raises(CheckpointError, match=message):
        start(name, lane_from_dict(0, saved))


def no_rows(below):
    nothing = np.array([], np.int64)
    documents = {key: [] if key == "measures" else nothing for key in below["documents"]}
    return {
        **below,
        "intervals": nothing,
        "groups": nothing,
        "rows": nothing,
        "snapshots": Verbatim([]),
        "documents": documents,
        "units": dict.fromkeys(below["units"], nothing),
    }


def test_a_state_of_a_tower_does_not_fit_a_lane_without():
    states, _, _ = whole("flushed")
    state = lane_from_dict(0, trees_of(json.loads(states[5]))[0])
    with pytest.raises(CheckpointError, match="must say what feeds it"):
        build_lane(GROUND, [], 0, Counted(len(LENGTHS), 0, COMPONENTS), COMPONENTS, state)
