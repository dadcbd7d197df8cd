"""A static mixture that counts tokens, behind a tokenizer or by estimates."""

import numpy as np
import pytest

from tests.work.static_mixture.draws import MIXTURE
from zephon.errors import ExecutionError, PlanError
from zephon.work import StaticMixtureWorkSource
from zephon.work.budget import tokens
from zephon.work.schedule import MixtureSchedule
from zephon.work.token_estimation import TokenEstimation


def test_tokens_are_counted_behind_a_tokenizer(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, mixture_unit="tokens")
    assert source.mixture_unit == "tokens"
    with pytest.raises(ExecutionError, match="total_samples is known only once the data are read"):
        _ = source.total_samples
    with pytest.raises(PlanError, match="lane_stream: mixture_unit='tokens'"):
        source.lane_stream(0, 1)
    with pytest.raises(PlanError, match="the mixture must count tokens"):
        StaticMixtureWorkSource(two, MIXTURE).token_lane(0, 1)


@pytest.mark.parametrize("lanes", [1, 4, 64])
def test_the_strands_of_a_lane_hold_its_rows(two, lanes) -> None:
    class Unread:
        name = "never"

        def counts(self) -> np.ndarray:
            raise AssertionError("a dataset of weight zero is not looked at")

    source = StaticMixtureWorkSource(
        [two[0], Unread(), two[1]],
        MIXTURE | {"never": 0},
        mixture_unit="tokens",
        exhausted_policy={"prose": "redistribute", "code": "stop"},
        budget={"prose": tokens(1000)},
    )
    rows = []
    for lane in range(lanes):
        parts = source.token_lane(lane, lanes)
        assert parts.at_end == ("finish", "finish", "stop")
        assert parts.budgets == (1000 / lanes, None, None)
        assert parts.courses.weights_at(0.0).tolist() == [0.7, 0.0, 0.3]
        assert parts.strands[1].length == 0
        assert len(parts.strands[1].draw(0, 5)) == 0
        for component, strand in enumerate(parts.strands):
            refs = strand.draw(0, 1000)
            assert len(refs) == strand.length
            assert refs.ordinal.tolist() == list(range(len(refs)))
            assert (refs.component == component).all() and (refs.lane == lane).all()
            rows += zip(refs.component.tolist(), refs.shard.tolist(), refs.row.tolist(),
                        strict=True)  # fmt: skip
    assert len(rows) == len(set(rows)) == 115 + 60


def test_estimated_tokens_need_an_estimate_first(two) -> None:
    source = StaticMixtureWorkSource(
        two, MIXTURE, exhausted_policy="repeat", token_estimation=TokenEstimation()
    )
    assert source.requires_token_priming
    assert source.token_costs is None
    with pytest.raises(RuntimeError, match="must be estimated before the first draw"):
        _ = source.total_samples
    for costs in ({"prose": 10.0}, {"prose": 1e30, "code": 1.0}, {"prose": 0.0, "code": 1.0}):
        with pytest.raises(PlanError, match=r"a mean row of dataset .* from 1 to 2\^40 tokens"):
            source.set_token_costs(costs)
    source.set_token_costs({"prose": 10.0, "code": 100.0})
    assert not source.requires_token_priming
    assert source.recipe()["token_costs"] == {"prose": 10.0, "code": 100.0}
    component = source.lane_stream(0, 1).draw(0, 5000).component
    # By tokens 70 to 30, so by rows 7 to 0.3.
    assert np.bincount(component)[0] / 5000 == pytest.approx(7 / 7.3, abs=2e-3)


def test_estimated_tokens_carry_budgets_and_schedules(shape) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6])]
    source = StaticMixtureWorkSource(
        datasets,
        {"a": 0.5, "b": 0.5},
        exhausted_policy="repeat",
        token_estimation=TokenEstimation(),
        budget={"a": tokens(5000)},
        schedule=MixtureSchedule({8000: {"a": 0.25, "b": 0.75}}, unit="tokens"),
    )
    source.set_token_costs({"a": 10.0, "b": 20.0})
    component = source.lane_stream(0, 1).draw(0, 5000).component
    assert np.bincount(component)[0] == 500
    # 400 of a within the first 8000 tokens, the last 100 within 4000 more, beside 150 of b.
    last = int(np.flatnonzero(component == 0)[-1])
    assert abs(last - (400 + 200 + 100 + 150)) <= 4
