"""The benchmark of pointers: that it looks at what it times, on an index of a few shards."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.pointers import CALL, ORDERS, check, lane_of, rate, show, write_index
from benchmarks.pointers import Figures as Found
from zephon.work.order.passes import Passes, Places
from zephon.work.order.runs import Runs


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_is_checked_and_timed(tmp_path, capsys, name: str) -> None:
    check(ORDERS[name])
    stream = lane_of(write_index(tmp_path, 200, 50_000), ORDERS[name], components=2)
    speed = rate(stream, CALL, calls=2)
    assert speed > 0
    show(name, [Found(near=speed, far=speed, first=1.0, seek=2.0, memory=3.0)])
    assert "M pointers/s, at 9/10" in capsys.readouterr().out


def test_an_order_that_repeats_rows_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Passes.rows_at

    def repeated(passes: Passes, runs: Runs) -> Places:
        places = right(passes, runs)
        return Places(places.pass_index, places.shard, np.zeros_like(places.row))

    monkeypatch.setattr(Passes, "rows_at", repeated)
    with pytest.raises(RuntimeError, match="does not give each row once"):
        check(ORDERS["global"])


def test_an_order_that_depends_on_the_call_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Passes.rows_at

    def reversed_when_many(passes: Passes, runs: Runs) -> Places:
        places = right(passes, runs)
        return Places(places.pass_index, places.shard[::-1], places.row[::-1])

    monkeypatch.setattr(Passes, "rows_at", reversed_when_many)
    with pytest.raises(RuntimeError, match="depends on how many are asked for at once"):
        check(ORDERS["global"])
